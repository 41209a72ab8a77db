"""Test the delivery of alerts about one incident with random kills and network faults.

No alert is lost, and none is sent more than twice. The workers do what the flow does: decide and store in one step,
claim, send, store the receipt. A kill ends a worker between any two of these steps; stored data remains. The sender
is real and connects to a local Slack server. The store is a dictionary with the guarantees of the outbox. Other
tests kill workers that use the outbox itself.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot
from monitors.errors import NotifyTransient
from monitors.records.incidents import Alert
from tests.monitors.alerts.sample_observations import NIGHT, AlertDecider, observation
from tests.servers.slack import TOKEN, SlackServer

SCHEDULES = int(os.environ.get("SCHEDULES", "150"))
LEASE = timedelta(seconds=90)
FAULTS = ("ok", "ok", "429:0", "429:3600", "500", "503", "502", "lost", "reset", "html", "internal_error")


class Killed(BaseException):
    """Raised to simulate that the process is killed at this point."""


@dataclass
class Outbox:
    """The data that remains when a worker is killed."""

    case_id: str
    decider: AlertDecider = field(default_factory=AlertDecider)
    waiting: dict[str, Alert] = field(default_factory=dict)
    leases: dict[str, datetime] = field(default_factory=dict)
    now: datetime = NIGHT


class Worker:
    """A worker that decides on alerts and delivers them, and that is killed at step number ``kill_after``."""

    def __init__(self, outbox: Outbox, sender: SlackBot, kill_after: int) -> None:
        self.outbox = outbox
        self.sender = sender
        self.left = kill_after

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed

    async def work(self, run_id: str) -> None:
        """Do the work of one run: observe the fault, alert if it is new, and send pending messages."""
        outbox = self.outbox
        self.step()
        made = outbox.decider.decide_alerts(
            observation(outbox.case_id, run_id=run_id, seen_at=outbox.now), now=outbox.now
        )
        alerts = group_items_into_alerts(made.items, target="demo", run_id=run_id, now=outbox.now)
        outbox.waiting |= {alert.id: alert for alert in alerts}
        self.step()
        free = [key for key in outbox.waiting if outbox.leases.get(key, outbox.now) <= outbox.now]
        for key in free:
            outbox.leases[key] = outbox.now + LEASE
        for key in free:
            self.step()
            await self.deliver(outbox.waiting[key])

    async def deliver(self, alert: Alert) -> None:
        try:
            await self.sender.send(alert)
        except NotifyTransient:
            self.outbox.leases.pop(alert.id)
            return
        self.step()
        del self.outbox.waiting[alert.id]


async def play(slack: SlackServer, seed: int) -> Outbox:
    """Let workers do some runs with faults and kills, and then two runs without any.

    Return the data that remains.
    """
    chance = random.Random(seed)
    outbox = Outbox(f"leak-{seed}")
    settings = AlertSettings(
        slack_channel="C0ALERTS", slack_api_url=slack.api_url, send_retries=0, send_timeout_s=5.0
    )
    sender = SlackBot(settings, token=TOKEN, now=lambda: outbox.now)
    for visit in range(chance.randint(1, 6)):
        slack.misbehave(*(chance.choice(FAULTS) for _ in range(3)))
        with suppress(Killed):
            await Worker(outbox, sender, chance.choice([1, 2, 3, 4, 99])).work(f"run-{visit}")
        slack.behave()
        outbox.now += timedelta(seconds=chance.choice([7, 40, 100, 3600]))
    for visit in ("calm-1", "calm-2"):
        outbox.now += 2 * LEASE
        await Worker(outbox, sender, 99).work(visit)
    return outbox


@pytest.mark.timeout(900)
async def test_no_schedule_loses_a_page_or_sends_it_more_than_twice():
    """No alert is lost or sent more than twice, in any sequence of kills and faults.

    Repeated messages have the same visible id. The fault does not last until the first reminder is due, so there is
    only one alert.
    """
    counts: Counter[int] = Counter()
    with SlackServer() as slack:
        for seed in range(SCHEDULES):
            before = len(slack.messages)
            outbox = await play(slack, seed)
            posted = slack.messages[before:]
            ids = {message.metadata["event_payload"]["id"] for message in posted}
            assert outbox.waiting == {}, seed
            assert len(ids) == 1, seed
            assert all(next(iter(ids)) in message.text for message in posted)
            counts[len(posted)] += 1
    print(f"{SCHEDULES} schedules: messages per page {dict(counts)}")
    assert set(counts) <= {1, 2}
    assert counts[1] > 0.9 * SCHEDULES
