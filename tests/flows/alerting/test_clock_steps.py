"""Test that alerts are sent once and without delay if the clock jumps forward or back by an hour or by days."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from flows.alerting.pipeline import notify, send_waiting_alerts
from monitors.records.incidents import RunSummary
from monitors.records.operator_actions import Silence
from tests.flows.alerting_testbed import AlertingTestbed
from tests.monitors.alerts.sample_observations import NIGHT, observation, scope
from warehouse.queries.operator_actions import append_silence
from warehouse.queries.outbox import SendLease, claim_alerts

QUIET = RunSummary()
STEPS = {"an hour back": {"hours": -1}, "a day forth": {"days": 1}, "three days back": {"days": -3}}


@pytest.fixture(params=STEPS.values(), ids=STEPS.keys())
def step(request):
    return request.param


def claimed(testbed: AlertingTestbed, owner: str) -> SendLease:
    return claim_alerts(testbed.store, owner=owner, lease_s=90, limit=9, wait_s=5)


@pytest.mark.whole_only
async def test_alerts_waiting_during_a_clock_change_are_sent_by_the_next_visit(testbed, slack, step):
    slack.always = "500"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    testbed.skip(**step)
    slack.always = None
    await send_waiting_alerts(testbed.notifier("visit"))
    testbed.skip(minutes=2)
    await send_waiting_alerts(testbed.notifier("visit-2"))
    assert len(slack.messages) == 1


@pytest.mark.whole_only
async def test_a_dead_workers_claim_ends_whatever_the_clock_says(testbed, slack, step):
    slack.always = "500"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    assert claimed(testbed, "ann").alerts
    testbed.skip(**step)
    testbed.skip(seconds=91)
    assert claimed(testbed, "bob").alerts


@pytest.mark.whole_only
async def test_a_message_whose_reply_was_lost_is_found_again_after_a_step(testbed, slack, step):
    slack.misbehave("lost")
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    testbed.skip(**step)
    for visit in range(2):
        testbed.skip(minutes=2)
        await send_waiting_alerts(testbed.notifier(f"visit-{visit}"))
    assert len(slack.messages) == 1


@pytest.mark.whole_only
async def test_a_fault_is_said_once_and_its_end_too(testbed, slack, step):
    """A fault and its recovery are each reported once, even if the clock jumps between them.

    This is also true if the clock jumps back, so that the fault seems to be in the future.
    """
    await notify(testbed.notifier(), [observation(seen_at=testbed.now)], summary=QUIET)
    testbed.skip(**step)
    ended = scope("run-2", "leak-1", began_at=testbed.now, ended_at=testbed.now + timedelta(minutes=5))
    testbed.skip(minutes=5)
    await notify(testbed.notifier("run-2"), [], summary=QUIET, scope=ended)
    assert testbed.store.list_open_incidents("demo") == ()
    assert len(slack.messages) == 2
    assert slack.messages[1].thread_ts == slack.messages[0].ts


async def test_a_silence_holds_when_the_clock_is_set_back_before_its_start(testbed, slack):
    values = {"id": "s-1", "author": "a", "comment": "c", "starts_at": NIGHT, "ends_at": NIGHT + timedelta(days=1)}
    append_silence(testbed.store.journal, Silence.model_validate(values | {"case_id": "leak-1"}))
    testbed.skip(days=-3)
    await notify(testbed.notifier(), [observation(seen_at=testbed.now)], summary=QUIET)
    assert slack.messages == []


async def test_a_silence_that_a_person_ended_stays_ended(testbed, slack):
    values = {"id": "s-1", "author": "a", "comment": "c", "starts_at": NIGHT, "ends_at": NIGHT + timedelta(days=1)}
    ended = Silence.model_validate(values | {"case_id": "leak-1", "ended_by": "asha"})
    append_silence(testbed.store.journal, ended)
    testbed.skip(days=-3)
    await notify(testbed.notifier(), [observation(seen_at=testbed.now)], summary=QUIET)
    assert "leak-1" in json.dumps([one.blocks for one in slack.messages])
