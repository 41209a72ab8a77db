"""A process that sends the heartbeats of a scheduler to an external watchdog, but runs nothing.

Start it with ``python -m tests.flows.pulsing_worker FOLDER``, and the check's URL in LOOKOUT_HEARTBEAT_URL. With a
Slack API URL as the second argument, it starts one run that hangs.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from flows.alerting.watchdog import run_under_watchdog
from flows.runtime.run import end_process_immediately
from flows.runtime.slack import build_notifier_without_run, build_recorded_heartbeat
from monitors.alerts.liveness import Beat
from monitors.config.file import Config, TargetConfig
from monitors.records.incidents import Capability


async def work(folder: Path) -> None:
    """Send the heartbeats of one run after the other until the process is killed."""
    target = TargetConfig(url="http://127.0.0.1:9", suite=folder / "suite.jsonl")
    config = Config(data_folder=folder, targets={"demo": target})
    while True:
        notifier = build_notifier_without_run(config, "demo", Capability.VERIFY)
        async with run_under_watchdog(
            notifier, build_recorded_heartbeat(config, "demo"), end_after_s=600, stop=end_process_immediately
        ):
            await asyncio.sleep(0)
        await build_recorded_heartbeat(config, "demo").ping(Beat.PROVED, run_id=notifier.run_id)


async def hang(folder: Path, slack_api_url: str) -> None:
    """Start a run and block its event loop forever, so that the run cannot stop itself."""
    target = TargetConfig(url="http://127.0.0.1:9", suite=folder / "suite.jsonl")
    alerts = {"slack_channel": "C0ALERTS", "slack_api_url": slack_api_url}
    values = {"data_folder": folder, "targets": {"demo": target}, "alerts": alerts}
    config = Config.model_validate(values)
    notifier = build_notifier_without_run(config, "demo", Capability.VERIFY)
    async with run_under_watchdog(
        notifier, build_recorded_heartbeat(config, "demo"), end_after_s=0.2, stop=end_process_immediately
    ):
        os.read(os.pipe()[0], 1)  # what hangs does not ask first


if __name__ == "__main__":
    job = work(Path(sys.argv[1])) if len(sys.argv) == 2 else hang(Path(sys.argv[1]), sys.argv[2])
    asyncio.run(job)
