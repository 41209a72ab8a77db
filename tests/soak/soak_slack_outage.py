"""Let Slack rate-limit, fail or hang for an hour: every alert arrives later, once and in order.

    python -m tests.soak.soak_slack_outage --minutes 60

In every minute of a simulated clock, a run finds a new fault and notifies. It uses the flow's own code, a real
warehouse and real HTTP. Then Slack answers again. The program prints the number of alerts, the number of requests
during the outage, the longest time in real seconds that a run waited for Slack, the deadline of one message for
comparison, and how much the memory of the process grew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flows.alerting.pipeline import notify, send_waiting_alerts
from tests.flows.alerting_testbed import AlertingTestbed
from tests.monitors.alerts.sample_observations import observation
from tests.servers.slack import SlackServer
from tests.warehouse.sample_rows import list_unsent_alerts

OUTAGES = ("429:3600", "500", "hang", "slow", "reset")
SEND_TIMEOUT_S = 0.5
LEAK = re.compile(r"leak-(\d+)")


class OutageResult(NamedTuple):
    """The result of one outage.

    ``numbers`` contains the number of each alert, in the order in which the alerts arrived. ``grown_mb`` is the
    growth of memory after the first sixth of the outage, in MB. ``waiting`` is the number of alerts that were not
    sent.
    """

    numbers: tuple[int, ...]
    requests: int
    slowest_s: float
    grown_mb: float
    waiting: int


def live_through(outage: str, minutes: int, folder: Path) -> OutageResult:
    """Simulate ``outage`` for ``minutes`` minutes with one alert a minute. Then send all waiting alerts."""
    with SlackServer() as slack:
        testbed = AlertingTestbed(folder, slack, send_timeout_s=SEND_TIMEOUT_S, send_retries=2)
        slack.always, slowest_s, before_mb = outage, 0.0, 0.0
        for minute in range(minutes):
            run_id = f"run-{minute}"
            began = time.monotonic()
            seen = [observation(f"leak-{minute}", run_id=run_id, seen_at=testbed.now)]
            asyncio.run(notify(testbed.notifier(run_id), seen))
            slowest_s = max(slowest_s, time.monotonic() - began)
            testbed.skip(minutes=1)
            before_mb = _rss_mb() if minute <= minutes // 6 else before_mb
        grown_mb, requests = _rss_mb() - before_mb, len(slack.requests)
        slack.always = None
        for _ in range(minutes):
            testbed.skip(minutes=2)
            asyncio.run(send_waiting_alerts(testbed.notifier("after")))
        numbers = tuple(int(LEAK.findall(json.dumps(one.blocks))[0]) for one in slack.messages)
        return OutageResult(numbers, requests, slowest_s, grown_mb, len(list_unsent_alerts(testbed.store)))


def _rss_mb() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 / 1e6


def faults_in(result: OutageResult, minutes: int) -> Sequence[str]:
    """Return the faults of the result."""
    wrong = {
        f"waiting: {result.waiting}": result.waiting,
        f"arrived as {result.numbers}": result.numbers != tuple(range(minutes)),
        f"{result.requests} requests": result.requests > 8 * minutes,
    }
    return [text for text, is_wrong in wrong.items() if is_wrong]


def main() -> int:
    """Simulate each kind of outage and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    minutes: int = parser.parse_args().minutes
    faults = 0
    for outage in OUTAGES:
        with tempfile.TemporaryDirectory() as folder:
            result = live_through(outage, minutes, Path(folder))
        wrong = faults_in(result, minutes)
        faults += len(wrong)
        print(
            f"{outage:<9} {minutes} alerts in {minutes} minutes: {len(result.numbers)} arrived, "
            f"{len(set(result.numbers))} different, {result.requests} requests meanwhile, slowest run "
            f"{result.slowest_s:.1f} s (deadline of a send {SEND_TIMEOUT_S} s), grown by {result.grown_mb:.1f} MB"
            f"{'; WRONG: ' + '; '.join(wrong) if wrong else ''}",
            flush=True,
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
