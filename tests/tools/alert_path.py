"""List the product functions that run between a failed assessment and the request to Slack, for ``make shape``.

A severe failure of a run goes the whole way, from the assessed answer to the request that `slack_sdk` is asked to
make, on a real warehouse and a local Slack. It goes once to warm the store, the imports and the caches; the second
time every function that is entered is noted, on every thread.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Final
from unittest.mock import patch

from flows.runtime.run import build_run_context
from flows.verify.alerts import EarlyAlerts, build_observation_context
from flows.verify.run_folder import VerifyRequest
from flows.verify.run_state import LiveRun
from monitors.config.file import parse_config
from monitors.records.base import Severity
from monitors.records.grades import Aspect, FailureKind
from tests.builders import case_result, gold_case
from tests.servers.slack import TOKEN, SlackServer
from tests.tools.entered_functions import Function, name_function

EXCLUDED: Final = ("monitors/alerts/redact.py", "monitors/facts/", "warehouse/", "monitors/storage.py")
"""Leaves that are the same whatever the path to them looks like: redaction, facts, warehouse, storage."""
RENDERING: Final = (
    "monitors/alerts/message.py",
    "monitors/alerts/wording.py",
    "monitors/alerts/terminal.py",
    "monitors/alerts/slack/render.py",
)

MAX_FUNCTIONS, MAX_RENDERING = 95, 27
"""The goals: at most so many functions without the excluded modules, and of these so many that render."""

REQUEST: Final = "chat_postMessage"
"""The method of `slack_sdk` at which the path ends."""


class Recorder:
    """Notes each distinct product function that is entered, until Slack is asked to post."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()
        self.is_over = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note what is called; `sys.setprofile` calls this."""
        if event != "call" or self.is_over:
            return
        if frame.f_code.co_name == REQUEST:
            self.is_over = True
        function = name_function(frame.f_code)
        if function is not None:
            self.functions.add(function)


def record_alert_path() -> frozenset[Function]:
    """The product functions that one alert enters from the failed assessment on, with the store warm."""
    credentials = patch.dict(os.environ, {"SLACK_BOT_TOKEN": TOKEN})
    with tempfile.TemporaryDirectory() as folder, SlackServer() as slack, credentials:
        return frozenset(asyncio.run(_send_two_alerts(Path(folder), slack)))


async def _send_two_alerts(folder: Path, slack: SlackServer) -> set[Function]:
    suite = folder / "suite.jsonl"
    suite.write_text(gold_case("first").model_dump_json() + "\n", encoding="utf-8")
    values = {
        "data_folder": str(folder / "data"),
        "targets": {"demo": {"url": "http://127.0.0.1:9", "suite": str(suite)}},
        "alerts": {"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url},
        "gate": {"min_severity_3_cases": 0},
    }
    config = parse_config(values, "lookout.toml")
    request = VerifyRequest(target="demo", config=config, fresh=True)
    await _send_alert("first", request, slack)
    recorder = Recorder()
    with ThreadPoolExecutor() as fresh:  # threads that run already are not profiled
        asyncio.get_running_loop().set_default_executor(fresh)
        await _send_alert("second", request, slack, recorder)
    if not recorder.is_over:
        raise RuntimeError("no alert was posted")
    return recorder.functions


async def _send_alert(
    case_id: str, request: VerifyRequest, slack: SlackServer, recorder: Recorder | None = None
) -> None:
    """Send the alert of one failed assessment as a run does while it asks; ``recorder`` notes what is entered."""
    run = LiveRun(build_run_context(request))
    failure = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)
    result = case_result(gold_case(case_id, severity=Severity.CRITICAL), failure)
    count = len(slack.messages) + 1
    with run.context.run_folder:
        async with EarlyAlerts(run, build_observation_context(run)) as alerts:
            await asyncio.sleep(0)  # its task waits for a result now
            threading.setprofile(recorder)
            sys.setprofile(recorder)
            try:
                alerts.on_result(result)
                await asyncio.to_thread(slack.wait_until, lambda: len(slack.messages) >= count)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)


def count_functions(functions: Iterable[Function]) -> tuple[int, int, int]:
    """How many there are; of these without the excluded modules; of these in rendering."""
    entered = list(functions)
    counted = [path for path, _ in entered if not path.startswith(EXCLUDED)]
    return len(entered), len(counted), sum(path in RENDERING for path in counted)


def main() -> None:
    """Print every function by module, and the counts: ``python -m tests.tools.alert_path``."""
    functions = record_alert_path()
    for path, name in sorted(functions):
        mark = " " if path.startswith(EXCLUDED) else "r" if path in RENDERING else "*"
        print(f"{mark} {path}: {name}")
    total, counted, rendering = count_functions(functions)
    print(f"{total} functions, {counted} without the excluded modules, {rendering} of these render")


if __name__ == "__main__":
    main()
