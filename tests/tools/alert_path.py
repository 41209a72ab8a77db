"""List the product functions that run between a failed assessment and the request to Slack, for ``make shape``.

It sends two alerts about severe failures, with a real warehouse and a local Slack server. The first alert loads all
imports and fills the caches. For the second alert, every function that any thread enters is recorded.
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
"""Path prefixes of modules that are not counted: redaction, facts, warehouse and storage."""
RENDERING: Final = (
    "monitors/alerts/message.py",
    "monitors/alerts/wording.py",
    "monitors/alerts/terminal.py",
    "monitors/alerts/slack/render.py",
)

MAX_FUNCTIONS, MAX_RENDERING = 95, 27
"""The maximum number of counted functions: in total, and in the modules that render messages."""

REQUEST: Final = "chat_postMessage"
"""The method of `slack_sdk` at which the path ends."""


class Recorder:
    """A profile function that records each product function that is entered before the request to Slack."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()
        self.is_over = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record the called function until the request to Slack. Python calls this method (`sys.setprofile`)."""
        if event != "call" or self.is_over:
            return
        if frame.f_code.co_name == REQUEST:
            self.is_over = True
        function = name_function(frame.f_code)
        if function is not None:
            self.functions.add(function)


def record_alert_path() -> frozenset[Function]:
    """Return the product functions that run from a failed assessment to the request to Slack.

    An earlier alert has loaded the imports and filled the caches.
    """
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
    """Send the alert about one failed assessment as a run does, and record the functions with ``recorder``."""
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
    """Return three counts: all functions, those outside `EXCLUDED`, and how many of these are in `RENDERING`."""
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
