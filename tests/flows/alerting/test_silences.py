"""Test silences that begin later or recur: when they mute alerts, and the summary after a recurring period."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from flows.alerting.pipeline import notify, send_waiting_alerts
from flows.alerting.silence_summaries import record_silence_summaries
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentState, NotifyReason
from monitors.records.operator_actions import NO_END, Silence
from monitors.records.recurrence import Recurrence
from tests.flows.alerting_testbed import AlertingTestbed
from tests.monitors.alerts.sample_observations import HOUR, NIGHT, observation, scope
from tests.servers.slack_rules import texts
from warehouse.queries.operator_actions import append_silence

WINDOW_END = NIGHT + HOUR
"""The end of the silenced period. `NIGHT`, a Sunday at 03:00 in Berlin, is within this period."""


def silence(**changes: object) -> Silence:
    values: dict[str, object] = {
        "id": "S-weekly",
        "author": "asha",
        "comment": "the release window",
        "starts_at": NIGHT - timedelta(days=30),
        "ends_at": NO_END,
        "target": "demo",
        "recurrence": Recurrence(every="Sunday 02:00-04:00", zone="Europe/Berlin"),
    }
    return Silence.model_validate(values | changes)


def leak(testbed: AlertingTestbed, run_id: str, **changes: object):
    return observation(run_id=run_id, seen_at=testbed.now, **changes)


def watcher(testbed: AlertingTestbed):
    """Build a notifier for the target ``deploys``, as the flow that polls for deploys uses it."""
    return replace(testbed.notifier("watch"), target="deploys")


@pytest.mark.whole_only
async def test_a_period_is_summed_up_once_after_its_end_and_open_faults_alert_as_ever(testbed, slack):
    append_silence(testbed.store.journal, silence())
    rate = observation("limit-3", FailureKind.WRONG_FACT, run_id="run-1", seen_at=NIGHT, severity=Severity.MAJOR)
    await notify(testbed.notifier(), [leak(testbed, "run-1"), rate])
    testbed.skip(minutes=20)
    ended = scope("run-2", "limit-3", began_at=testbed.now, ended_at=testbed.now + timedelta(minutes=1))
    await notify(testbed.notifier("run-2"), [leak(testbed, "run-2")], scope=ended)
    await send_waiting_alerts(watcher(testbed))
    assert slack.messages == []

    testbed.now = WINDOW_END + timedelta(minutes=2)
    for visit in range(3):
        await send_waiting_alerts(watcher(testbed))
        testbed.skip(minutes=1 + visit)
    (summary,) = testbed.alerts()
    assert (summary.reason, summary.target, summary.severity) == (NotifyReason.SILENCED, "demo", Severity.CRITICAL)
    incidents = [shown.incident for shown in summary.items]
    assert [(incident.case_id, incident.state) for incident in incidents] == [
        ("leak-1", IncidentState.OPEN),
        ("limit-3", IncidentState.RESOLVED),
    ]
    assert len(slack.messages) == 1
    message = "\n".join(texts(slack.messages[0].blocks))
    for words in ("Sunday 02:00–04:00 Europe/Berlin", "2026-03-01 01:00 UTC", "the release window", "leak-1"):
        assert words in message

    await notify(testbed.notifier("run-3"), [leak(testbed, "run-3")])
    assert [alert.reason for alert in testbed.alerts()] == [NotifyReason.SILENCED, NotifyReason.FIRST_SEEN]
    assert slack.messages[1].thread_ts is None


async def test_a_period_that_ended_while_lookout_was_down_is_summed_up_by_the_next_run(testbed, slack):
    configured = replace(testbed.notifier().actions, silences=(silence(id="C-weekly"),))
    await notify(replace(testbed.notifier(), actions=configured), [leak(testbed, "run-1")])
    testbed.skip(days=3)
    await notify(replace(testbed.notifier("run-2"), actions=configured), [leak(testbed, "run-2")])
    await notify(replace(testbed.notifier("run-2b"), actions=configured), [leak(testbed, "run-2b")])
    assert sorted(alert.reason for alert in testbed.alerts()) == [NotifyReason.FIRST_SEEN, NotifyReason.SILENCED]
    assert len(slack.messages) == 2


async def test_two_processes_record_one_summary(testbed):
    append_silence(testbed.store.journal, silence())
    await notify(testbed.notifier(), [leak(testbed, "run-1")])
    testbed.now = WINDOW_END + timedelta(minutes=2)
    (first,) = record_silence_summaries(watcher(testbed))
    assert record_silence_summaries(testbed.notifier("run-2")) == ()
    testbed.skip(days=-1)  # the clock is set back: the summary seems to be from before the failure
    assert record_silence_summaries(testbed.notifier("run-3")) == ()
    assert [alert.id for alert in testbed.alerts()] == [first.id]


async def test_what_was_logged_before_a_period_and_withheld_in_it_is_summed_up(testbed):
    append_silence(testbed.store.journal, silence())
    await notify(testbed.notifier(), [observation(seen_at=NIGHT - 3 * HOUR)])
    testbed.now = WINDOW_END + timedelta(minutes=2)
    assert len(record_silence_summaries(watcher(testbed))) == 1


async def test_a_period_sums_up_what_its_own_silence_withheld(testbed):
    """The summary after a recurring silence omits failures that this silence did not mute.

    In this test, a one-time silence mutes one failure, and nothing mutes the other, so there is no summary.
    """
    once = silence(id="S-once", recurrence=None, starts_at=NIGHT, ends_at=WINDOW_END, target=None, case_id="leak-1")
    append_silence(testbed.store.journal, once)
    append_silence(testbed.store.journal, silence(target=None, case_id="leak-2"))
    await notify(testbed.notifier(), [leak(testbed, "run-1"), observation("leak-3", run_id="run-1")])
    testbed.now = WINDOW_END + timedelta(minutes=2)
    assert record_silence_summaries(watcher(testbed)) == ()


async def test_a_period_that_a_person_ends_is_summed_up_at_once(testbed):
    append_silence(testbed.store.journal, silence())
    await notify(testbed.notifier(), [leak(testbed, "run-1")])
    testbed.skip(minutes=5)
    append_silence(testbed.store.journal, silence().end_early(testbed.now, "asha"))
    testbed.skip(minutes=2)
    testbed.store.load_pending(5)
    (summary,) = record_silence_summaries(watcher(testbed))
    assert summary.reason is NotifyReason.SILENCED


async def test_before_a_chosen_start_alerts_are_sent(testbed, slack):
    later = silence(recurrence=None, starts_at=NIGHT + HOUR, ends_at=NIGHT + 3 * HOUR, scheduled=True)
    append_silence(testbed.store.journal, later)
    await notify(testbed.notifier(), [leak(testbed, "run-1")])
    assert len(slack.messages) == 1
    testbed.skip(hours=2)
    await notify(testbed.notifier("run-2"), [observation("leak-2", run_id="run-2", seen_at=testbed.now)])
    assert len(slack.messages) == 1
    testbed.skip(hours=2)
    await notify(testbed.notifier("run-3"), [observation("leak-2", run_id="run-3", seen_at=testbed.now)])
    assert len(slack.messages) == 2
