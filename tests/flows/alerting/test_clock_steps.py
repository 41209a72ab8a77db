"""The clock is set forth and back, by an hour or by days: nothing waits for the time that was, nothing is said twice."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from flows.alerting.pipeline import notify
from flows.alerting.send import send_waiting
from monitors.records.incidents import RunSummary
from monitors.records.operator_actions import Silence
from tests.flows.desks import Night
from tests.monitors.alerts.sightings import NIGHT, scope, sighting
from tests.servers.slack import SlackServer
from warehouse.queries.operator_actions import append_silence
from warehouse.queries.outbox import SendLease, claim_alerts

QUIET = RunSummary()
STEPS = {"an hour back": {"hours": -1}, "a day forth": {"days": 1}, "three days back": {"days": -3}}


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def night(tmp_path, slack):
    return Night(tmp_path, slack)


@pytest.fixture(params=STEPS.values(), ids=STEPS.keys())
def step(request):
    return request.param


def claimed(night: Night, owner: str) -> SendLease:
    return claim_alerts(night.store, night.store.journal, owner=owner, lease_s=90, limit=9, wait_s=5)


async def test_what_waited_when_the_clock_was_set_is_sent_by_the_next_visit(night, slack, step):
    slack.always = "500"
    await notify(night.desk(), [sighting()], summary=QUIET)
    night.skip(**step)
    slack.always = None
    await send_waiting(night.desk("visit"))
    night.skip(minutes=2)
    await send_waiting(night.desk("visit-2"))
    assert len(slack.messages) == 1


async def test_a_dead_workers_claim_ends_whatever_the_clock_says(night, slack, step):
    slack.always = "500"
    await notify(night.desk(), [sighting()], summary=QUIET)
    assert claimed(night, "ann").alerts
    night.skip(**step)
    night.skip(seconds=91)
    assert claimed(night, "bob").alerts


async def test_a_message_whose_reply_was_lost_is_found_again_after_a_step(night, slack, step):
    slack.misbehave("lost")
    await notify(night.desk(), [sighting()], summary=QUIET)
    night.skip(**step)
    for visit in range(2):
        night.skip(minutes=2)
        await send_waiting(night.desk(f"visit-{visit}"))
    assert len(slack.messages) == 1


async def test_a_fault_is_said_once_and_its_end_too(night, slack, step):
    """Seen before the step, not seen after it: the run that asked again resolves it, though it was seen in the future."""
    await notify(night.desk(), [sighting(seen_at=night.now)], summary=QUIET)
    night.skip(**step)
    ended = scope("run-2", "leak-1", began_at=night.now, ended_at=night.now + timedelta(minutes=5))
    night.skip(minutes=5)
    await notify(night.desk("run-2"), [], summary=QUIET, scope=ended)
    assert night.store.open_incidents("demo") == ()
    assert len(slack.messages) == 2
    assert slack.messages[1].thread_ts == slack.messages[0].ts


async def test_a_silence_holds_when_the_clock_is_set_back_before_its_start(night, slack):
    values = {"id": "s-1", "author": "a", "comment": "c", "starts_at": NIGHT, "ends_at": NIGHT + timedelta(days=1)}
    append_silence(night.store.journal, Silence.model_validate(values | {"case_id": "leak-1"}))
    night.skip(days=-3)
    await notify(night.desk(), [sighting(seen_at=night.now)], summary=QUIET)
    assert slack.messages == []


async def test_a_silence_that_a_person_ended_stays_ended(night, slack):
    values = {"id": "s-1", "author": "a", "comment": "c", "starts_at": NIGHT, "ends_at": NIGHT + timedelta(days=1)}
    ended = Silence.model_validate(values | {"case_id": "leak-1", "ended_by": "asha"})
    append_silence(night.store.journal, ended)
    night.skip(days=-3)
    await notify(night.desk(), [sighting(seen_at=night.now)], summary=QUIET)
    assert "leak-1" in json.dumps([one.blocks for one in slack.messages])
