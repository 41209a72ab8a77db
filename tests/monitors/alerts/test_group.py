from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.group import group_items_into_alerts
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, NotifyReason
from tests.monitors.alerts.sample_observations import (
    DAY,
    HOUR,
    NIGHT,
    AlertDecider,
    alert_with_items,
    items,
    observation,
    outage,
    scope,
)


def composed(*alert_items, **changes: object):
    values = {"target": "demo", "run_id": "run-1", "now": NIGHT}
    return group_items_into_alerts(alert_items, **(values | changes))


def test_f11_five_hundred_failures_are_one_alert():
    alert_items = items(*(observation(f"case-{number}") for number in range(500)))
    (only,) = composed(*alert_items)
    assert len(only.items) == 500


def test_kinds_do_not_share_a_message_and_the_worst_comes_first():
    mild = outage(IncidentKind.GATE_FAIL, severity=Severity.MAJOR)
    alerts = composed(*items(mild, observation()))
    assert [alert.kind for alert in alerts] == [IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL]


def test_new_and_returning_faults_share_a_message_that_says_new():
    decider = AlertDecider()
    decider.decide_reasons(observation("old"))
    decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=scope("run-2", "old"))
    later = {"run_id": "run-3", "seen_at": NIGHT + DAY}
    alert_items = decider.decide_alerts(
        observation("old", **later), observation("new", **later), now=NIGHT + DAY
    ).items
    (only,) = composed(*alert_items)
    assert only.reason is NotifyReason.FIRST_SEEN
    assert [item.reason for item in only.items] == [NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED]


def test_a_returning_fault_alone_is_regressed():
    decider = AlertDecider()
    decider.decide_reasons(observation())
    decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1"))
    alert_items = decider.decide_alerts(observation(run_id="run-3", seen_at=NIGHT + DAY), now=NIGHT + DAY).items
    assert alert_with_items(alert_items).reason is NotifyReason.REGRESSED


def test_recoveries_go_each_to_its_own_thread():
    decider = AlertDecider()
    for case, thread in (("a", "1.1"), ("b", "2.2"), ("c", "2.2")):
        alert = alert_with_items(decider.decide_alerts(observation(case)).items)
        decider.record_thread(alert, thread, "C0ALERTS")
    alert_items = decider.decide_alerts(now=NIGHT + 2 * HOUR, scope=scope("run-2", "a", "b", "c")).items
    alerts = composed(*alert_items)
    assert {alert.thread: len(alert.items) for alert in alerts} == {"1.1": 1, "2.2": 2}
    assert {alert.channel for alert in alerts} == {"C0ALERTS"}


def test_a_new_incident_has_no_thread_yet():
    (alert,) = composed(*items(observation()))
    assert (alert.thread, alert.channel) == (None, None)


def test_f11_later_failures_of_a_run_go_into_its_first_thread():
    """Later failures of a run are sent into the thread of its first message.

    For example, 500 failures that are sent during a run are one message in the channel with replies in its thread.
    """
    decider = AlertDecider()
    decider.record_thread(alert_with_items(decider.decide_alerts(observation("case-0")).items), "1.1", "C0ALERTS")
    for batch in (range(1, 50), range(50, 500)):
        seen = [observation(f"case-{number}") for number in batch]
        (later,) = composed(*decider.decide_alerts(*seen).items)
        assert (later.thread, later.channel, len(later.items)) == ("1.1", "C0ALERTS", len(batch))


def test_the_next_run_and_another_kind_begin_threads_of_their_own():
    decider = AlertDecider()
    decider.record_thread(alert_with_items(decider.decide_alerts(observation("case-0")).items), "1.1", "C0ALERTS")
    (gate,) = composed(*decider.decide_alerts(outage(IncidentKind.GATE_FAIL)).items)
    (next_run,) = composed(*decider.decide_alerts(observation("case-1", run_id="run-2")).items)
    assert (gate.thread, next_run.thread) == (None, None)


def test_a_leak_is_listed_above_a_wrong_number():
    decider = AlertDecider()
    wrong = observation("case-0", failure=FailureKind.WRONG_FACT)
    decider.record_thread(alert_with_items(decider.decide_alerts(wrong).items), "1.1", "C0ALERTS")
    (leak,) = composed(*decider.decide_alerts(observation("case-1")).items)
    assert leak.thread is None


@given(st.permutations([observation(case, failure=kind) for case in "abc" for kind in list(FailureKind)[:3]]))
def test_the_same_news_make_the_same_messages_in_any_order(seen):
    """Two workers with the same decisions build the same messages.

    The ids and the order of the messages do not depend on the order of the decisions.
    """
    ordered = composed(*items(*sorted(seen, key=lambda one: one.fingerprint)))
    assert composed(*items(*seen)) == ordered


def test_ids_tell_runs_apart():
    alert_items = items(observation())
    assert composed(*alert_items)[0].id != composed(*alert_items, run_id="run-2")[0].id
