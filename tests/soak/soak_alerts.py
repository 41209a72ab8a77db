"""Report one incident during random kills and network faults, with the real alerting code and a real warehouse.

    python -m tests.soak.soak_alerts --schedules 1000

A schedule is a series of visits. Each visit is a process that finds the fault and notifies, as a run does. It is
killed with SIGKILL at a random moment, or when Slack has received its request. Meanwhile Slack refuses, hangs,
rate-limits, drops connections and loses replies. Then visits without faults follow until no message waits. In the
end, Slack must have the message at least once and at most twice, always with the same visible id.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from flows.alerting.notifier import Notifier, OperatorActions
from flows.alerting.pipeline import notify
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot
from monitors.alerts.terminal import TerminalSender
from tests.monitors.alerts.sample_observations import observation
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.sample_rows import list_unsent_alerts
from tests.warehouse.temporary_stores import REAL_PATIENCE, empty_warehouse
from warehouse.database.database import Ledger, write_ledger
from warehouse.database.store import Store

FAULTS = ("ok", "ok", "ok", "429:0", "429:3600", "500", "503", "502", "lost", "slow", "hang", "reset", "html",
          "internal_error")  # fmt: skip
MAX_LIFE_S = 0.6
"""The maximum time in seconds until a visit is killed.

A visit takes about 0.3 s on an idle machine, so most kills occur during the visit.
"""
SEND_TIMEOUT_S = 1.0
GIVE_UP_AFTER = 12
"""The maximum number of visits without faults at the end of a schedule. Usually two are enough."""
BEGAN = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


class Visit(NamedTuple):
    """The plan of one process: how Slack behaves, when the process is killed, and the delay until the next process.

    If the process is not killed, the time of the kill is ``None``.
    """

    faults: tuple[str, ...]
    killed_after_s: float | None
    killed_at_request: bool
    pause: timedelta


class Outcome(NamedTuple):
    """The result of one schedule.

    ``posted`` is the number of alert messages in Slack, and ``ids`` the number of different ids in them. ``kills``
    counts the kills that ended a running process. ``waiting`` is the number of messages that are not sent yet.
    """

    posted: int
    ids: int
    kills: int
    waiting: int


def schedule(seed: int) -> tuple[Visit, ...]:
    """Return the visits of the schedule with this seed."""
    chance = random.Random(seed)
    return tuple(
        Visit(
            faults=tuple(chance.choice(FAULTS) for _ in range(4)),
            killed_after_s=chance.choice([None, chance.uniform(0.0, MAX_LIFE_S)]),
            killed_at_request=chance.random() < 0.3,
            pause=timedelta(seconds=chance.choice([7, 40, 100, 3600])),
        )
        for _ in range(chance.randint(1, 5))
    )


def play(seed: int, slack: SlackServer, folder: Path) -> Outcome:
    """Run one schedule, then visits without faults until no message waits."""
    (folder / "warehouse.duckdb").write_bytes(empty_warehouse())
    write_ledger(folder / "warehouse.duckdb", Ledger(segments=0, as_of=BEGAN))
    before, now, kills = len(slack.messages), BEGAN, 0
    for number, visit in enumerate(schedule(seed)):
        slack.misbehave(*visit.faults)
        run = partial(_work, seed, folder, slack, now, f"run-{number}")
        kills += _visited(visit, slack, run)
        slack.behave()
        now += visit.pause
    waiting = 1
    for calm in range(GIVE_UP_AFTER):
        now += timedelta(minutes=4)
        waiting = _forked(partial(_work, seed, folder, slack, now, f"calm-{calm}"), None, None)
        if waiting == 0:
            break
    mine = [message for message in slack.messages[before:] if f"leak-{seed}" in str(message.blocks)]
    ids = {str(message.metadata["event_payload"]["id"]) for message in mine}
    shown = all(next(iter(ids)) in message.text for message in mine) if len(ids) == 1 else False
    return Outcome(posted=len(mine), ids=len(ids) if shown or not ids else 2, kills=kills, waiting=waiting)


def _visited(visit: Visit, slack: SlackServer, job: Callable[[], int]) -> bool:
    """Run one visit, and return whether its process was killed."""
    asked = len(slack.requests)

    def has_asked() -> bool:
        return len(slack.requests) > asked

    until = has_asked if visit.killed_at_request else None
    return _forked(job, visit.killed_after_s, until) < 0


def _forked(job: Callable[[], int], life_s: float | None, until: Callable[[], bool] | None) -> int:
    """Run ``job`` in a child process, which is killed after ``life_s`` seconds or when ``until`` returns true.

    Returns the exit code of the child, which is negative if the child was killed.
    """
    child = os.fork()
    if not child:
        code = 99
        try:
            code = job()
        finally:
            os._exit(code)
    deadline = None if life_s is None else time.monotonic() + life_s
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if (deadline is not None and time.monotonic() > deadline) or (until is not None and until()):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def _work(seed: int, folder: Path, slack: SlackServer, began: datetime, run_id: str) -> int:
    """Run one visit in this process, and return how many messages still wait."""
    ticking = time.monotonic()

    def now() -> datetime:
        return began + timedelta(seconds=time.monotonic() - ticking)

    settings = AlertSettings(
        slack_channel="C0ALERTS", slack_api_url=slack.api_url, send_retries=0, send_timeout_s=SEND_TIMEOUT_S
    )
    store = Store(folder, clock=now, entropy=os.urandom, patience=REAL_PATIENCE)
    notifier = Notifier(
        target="demo",
        run_id=run_id,
        settings=settings,
        store=store,
        journal=store.journal,
        sender=SlackBot(settings, token=TOKEN, now=now),
        terminal=TerminalSender(settings, console=_nowhere(), now=now),
        actions=OperatorActions(store=store, settings=settings, account_patterns=lambda _: (), now=now),
        now=now,
    )
    asyncio.run(notify(notifier, [observation(f"leak-{seed}", run_id=run_id, seen_at=now())]))
    return min(len(list_unsent_alerts(store)), 9)


def _nowhere() -> Console:
    return Console(file=io.StringIO())


def soak(schedules: int, first_seed: int) -> Counter[str]:
    """Run ``schedules`` schedules, with seeds from ``first_seed`` on. Return how often each result occurred."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place, SlackServer() as slack:
        for seed in range(first_seed, first_seed + schedules):
            folder = Path(place) / str(seed)
            folder.mkdir()
            outcome = play(seed, slack, folder)
            counts["kills"] += outcome.kills
            counts[f"posted {outcome.posted}"] += 1
            wrong = {
                "lost": outcome.posted == 0,
                "more than one duplicate": outcome.posted > 2,
                "another id": outcome.ids > 1,
                "never sent": outcome.waiting > 0,
            }
            for what in [name for name, is_so in wrong.items() if is_so]:
                counts[what] += 1
                print(f"seed {seed}: {what}: {outcome}", flush=True)
            if (seed - first_seed) % 50 == 49:
                print(f"{seed - first_seed + 1} schedules: {dict(counts)}", flush=True)
    return counts


def main() -> int:
    """Run the schedules and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    started = time.monotonic()
    counts = soak(asked.schedules, asked.seed)
    wrong = sum(counts[what] for what in ("lost", "more than one duplicate", "another id", "never sent"))
    print(
        f"{asked.schedules} schedules, {counts['kills']} kills: {counts['lost']} pages lost, {counts['posted 2']} with one "
        f"duplicate, {counts['more than one duplicate']} with more, {counts['another id']} with another id, "
        f"{counts['never sent']} never sent; {time.monotonic() - started:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
