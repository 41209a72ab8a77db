"""Follow a log while Lookout is killed: each line is stored once and sends one alert.

    python -m tests.soak.soak_follow_log --kills 100

A process follows the log repeatedly and is killed with SIGKILL at random moments, while lines are appended and the
log is rotated. After a last poll of the log without a kill, every line must be stored once and be in exactly one
message. The messages at Slack must equal the messages in the warehouse, each id once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from monitors.records.incidents import Alert, IncidentKind
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.followed_logs import Followed, entry
from tests.servers.slack import SlackServer

LOOKS_LIVED = 1.5
"""The maximum time until a kill, as a multiple of the duration of one poll, which is measured at the start."""


class RealNight(AlertingTestbed):
    """An alerting testbed that uses the real clock, because the killed processes use it too."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)


class Outcome(NamedTuple):
    """The numbers of kills, of lines that were written, stored and alerted, and of messages in the channel.

    ``alerted_twice`` and ``messages_twice`` are the numbers of duplicates.
    """

    kills: int
    written: int
    stored: int
    alerted: int
    alerted_twice: int
    messages: int
    messages_twice: int

    @property
    def is_right(self) -> bool:
        """Return whether no line and no message is missing or duplicated."""
        return self.written == self.stored == self.alerted and not self.alerted_twice and not self.messages_twice


def play(kills: int, seed: int, folder: Path) -> Outcome:
    """Append lines, rotate the log, follow it and kill the follower.

    Then poll until no line waits for its alert.
    """
    chance = random.Random(seed)
    with SlackServer() as slack:
        (folder / "data").mkdir()
        # With group_minutes = 0 each look's news is a message of its own, so that messages can be counted.
        log = Followed(folder, RealNight(folder / "data", slack, send_timeout_s=5.0), group_minutes=0)
        log.path.touch()
        _forked(log, None)
        log.append(entry(0))
        look_s = _timed(log)
        written, hit = 1, 0
        while hit < kills:
            for _ in range(chance.randint(1, 3)):
                log.append(entry(written))
                written += 1
            if chance.random() < 0.1:
                log.path.rename(log.path.with_name(f"{log.path.name}.{written}"))
                log.path.touch()
            hit += _forked(log, chance.uniform(0.0, LOOKS_LIVED * look_s)) < 0
        for _ in range(3):
            _forked(log, None)
            time.sleep(0.1)
        return _outcome(log, slack, hit, written)


def _timed(log: Followed) -> float:
    begun = time.monotonic()
    _forked(log, None)
    return time.monotonic() - begun


def _forked(log: Followed, life_s: float | None) -> int:
    """Poll the log once in a child process, which is killed after ``life_s`` seconds.

    Returns the exit code of the child, which is negative if the child was killed.
    """
    child = os.fork()
    if not child:
        code = 99
        try:
            log.begin_at(time.monotonic_ns())
            asyncio.run(log.look())
            code = 0
        finally:
            os._exit(code)
    deadline = None if life_s is None else time.monotonic() + life_s
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            assert code <= 0, f"a look ended with {code}"
            return code
        if deadline is not None and time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)


def _outcome(log: Followed, slack: SlackServer, hit: int, written: int) -> Outcome:
    store = log.testbed.store
    alerts = [Alert.model_validate_json(str(row[0])) for row in store.query("select record from alerts").rows]
    pages = [alert for alert in alerts if alert.kind is IncidentKind.HALLUCINATION]
    alert_counts = Counter(item.incident.fingerprint for alert in pages for item in alert.items)
    faults = [item.observation.reason for alert in alerts if alert not in pages for item in alert.items]
    assert not faults, faults
    ids = Counter(str(message.metadata["event_payload"]["id"]) for message in slack.messages)
    assert set(ids) == {alert.id for alert in alerts}, "a message is missing at Slack, or was never decided"
    return Outcome(
        kills=hit,
        written=written,
        stored=len(log.stored()),
        alerted=len(alert_counts),
        alerted_twice=sum(count > 1 for count in alert_counts.values()),
        messages=len(ids),
        messages_twice=sum(count > 1 for count in ids.values()),
    )


def main() -> int:
    """Print the figures; return 1 if a line was lost or duplicated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = play(asked.kills, asked.seed, Path(folder))
    print(", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in outcome._asdict().items()))
    return int(not outcome.is_right)


if __name__ == "__main__":
    sys.exit(main())
