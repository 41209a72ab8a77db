"""List the product functions that run between an item of live traffic and its stored grade, for ``make shape``.

A nightly run reads conversations from a file, checks all of them with rules, samples them, and grades the sample
with rules and with a judge at a local provider. The first nightly run loads the imports and fills the caches. In
the second, every function that a thread or a worker enters is recorded, from the first line that is read until the
judge's grades are in the journal.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Final
from unittest.mock import patch

from flows.nightly import census
from flows.nightly.context import build_nightly_context
from flows.nightly.run import NightlyRun
from monitors.config.file import Config, parse_config
from tests.builders import gold_case
from tests.flows.judged_run import KEY_VARIABLE, judge_at
from tests.servers.anthropic import KEY, AnthropicServer
from tests.tools.entered_functions import RECORD_VARIABLE, ROOT, WORKER, Function, name_function
from warehouse.journal.rows import AssessmentRow

EXCLUDED: Final = ("monitors/graders/", "monitors/facts/", "monitors/judge/")
"""Path prefixes of modules that are not counted, because they grade a reply."""

MAX_FUNCTIONS: Final = 249
"""The maximum number of functions outside the excluded modules.

History: 302, then 200 after the path was shortened, then 48 more for the formats of many loggers and 1 more for the
detection of languages.
"""

START: Final = ("monitors/sources/traffic/files.py", "FileTrafficSource.read_conversations")
END: Final = ("warehouse/journal/journal.py", "Journal.append")
"""The function that stores the last grades and ends the path."""

NIGHT: Final = datetime(2026, 3, 1, 1, tzinfo=UTC)
CONVERSATIONS: Final = 4
PASSAGE: Final = "The grace period: a customer has thirty days to renew the policy."
REPLY: Final = "You have thirty days to renew the policy."


class Recorder:
    """A profile function that records each product function from the first read item to the last stored grade."""

    def __init__(self) -> None:
        self.stored: frozenset[Function] = frozenset()
        self._functions: set[Function] = set()
        self._is_on = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record the called function. Python calls this method, see `sys.setprofile`."""
        if event not in ("call", "return"):
            return
        function = name_function(frame.f_code)
        if function is None:
            return
        if event == "return":
            if function == END and any(isinstance(row, AssessmentRow) for row in frame.f_locals["rows"]):
                self.stored = frozenset(self._functions)
        elif self._is_on or function == START:
            self._is_on = True
            self._functions.add(function)


def record_nightly_path() -> frozenset[Function]:
    """Return the product functions that a nightly run enters, from the first item it reads to the stored grades.

    An earlier nightly run has filled the caches.
    """
    with tempfile.TemporaryDirectory() as folder, AnthropicServer() as provider:
        worker_functions = Path(folder) / "worker_functions"
        worker_functions.touch()
        environment = {
            KEY_VARIABLE: KEY,
            RECORD_VARIABLE: str(worker_functions),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        }
        with patch.dict(os.environ, environment):
            functions = asyncio.run(_grade_two_nights(Path(folder), provider))
        lines = worker_functions.read_text(encoding="utf-8").splitlines()
    if not lines:
        raise RuntimeError("no worker took part")
    return functions | {(path, name) for path, name in (line.split("\t") for line in lines)}


async def _grade_two_nights(folder: Path, provider: AnthropicServer) -> frozenset[Function]:
    suite, log = folder / "suite.jsonl", folder / "log.jsonl"
    suite.write_text(gold_case("first").model_dump_json() + "\n", encoding="utf-8")
    judge = {"deadline_s": 60, "try_s": 30, "tries": 2, "most_pause_s": 1, "batch_poll_s": 0.05}
    values = {
        "data_folder": str(folder / "data"),
        "targets": {
            "demo": {
                "url": "http://127.0.0.1:9",
                "suite": str(suite),
                "model_family": "gpt",
                "traffic": {"sources": {"log": {"kind": "file", "at": str(log)}}},
            }
        },
        "judge": judge | judge_at(provider),
    }
    config = parse_config(json.loads(json.dumps(values)), "lookout.toml")
    await _grade_night(config, NIGHT, log)
    recorder = Recorder()
    with ThreadPoolExecutor() as fresh:  # threads that run already are not profiled
        asyncio.get_running_loop().set_default_executor(fresh)
        with (
            patch("os.cpu_count", return_value=2),
            patch.multiple(census, MODULE=WORKER, MIN_CHUNKS_FOR_WORKERS=1),
            patch("flows.nightly.read.CHUNK_SIZE", 1),
        ):
            await _grade_night(config, NIGHT + timedelta(days=1), log, recorder)
    if not recorder.stored:
        raise RuntimeError("no grade was stored")
    return recorder.stored


async def _grade_night(config: Config, ended: datetime, log: Path, recorder: Recorder | None = None) -> None:
    """Add the conversations of one night to ``log``, grade them, and record the functions with ``recorder``."""
    with log.open("a", encoding="utf-8") as lines:
        lines.writelines(_build_line(ended, number) for number in range(CONVERSATIONS))
    run = NightlyRun(build_nightly_context(config, "demo", ended + timedelta(minutes=5), due_at=ended))
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        report = await run.run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if (report.sampled, report.judging.judged) != (CONVERSATIONS, CONVERSATIONS):
        raise RuntimeError(f"{report.sampled} sampled and {report.judging.judged} judged of {CONVERSATIONS}")


def _build_line(ended: datetime, number: int) -> str:
    turn = {"question": "How long do I have?", "answer": REPLY, "context": [PASSAGE]}
    at = ended - timedelta(hours=2, seconds=number)
    value = {"id": f"{ended:%d}-{number}", "completed_at": at.isoformat(), "turns": [turn]}
    return json.dumps(value) + "\n"


def count_functions(functions: Iterable[Function]) -> tuple[int, int]:
    """Return the number of all functions, and the number of those outside the excluded modules."""
    entered = list(functions)
    return len(entered), sum(not path.startswith(EXCLUDED) for path, _ in entered)


def main() -> None:
    """Print every function by module, and the counts: ``python -m tests.tools.nightly_path``."""
    functions = record_nightly_path()
    for path, name in sorted(functions):
        print(f"{' ' if path.startswith(EXCLUDED) else '*'} {path}: {name}")
    total, counted = count_functions(functions)
    print(f"{total} functions, {counted} without the excluded modules")


if __name__ == "__main__":
    main()
