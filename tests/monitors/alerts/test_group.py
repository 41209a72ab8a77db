from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.group import group
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, NotifyReason
from tests.monitors.alerts.sightings import DAY, HOUR, NIGHT, Book, alert_of, items, outage, scope, sighting


def composed(*told, **changes: object):
    values = {"target": "demo", "run_id": "run-1", "now": NIGHT}
    return group(told, **(values | changes))


def test_f11_five_hundred_failures_are_one_alert():
    told = items(*(sighting(f"case-{number}") for number in range(500)))
    (only,) = composed(*told)
    assert len(only.items) == 500


def test_kinds_do_not_share_a_message_and_the_worst_comes_first():
    mild = outage(IncidentKind.GATE_FAIL, severity=Severity.WRONG)
    alerts = composed(*items(mild, sighting()))
    assert [alert.kind for alert in alerts] == [IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL]


def test_what_is_new_and_what_is_back_share_a_message_that_says_new():
    book = Book()
    book.decide(sighting("old"))
    book.decide(now=NIGHT + 2 * HOUR, scope=scope("run-2", "old"))
    later = {"run_id": "run-3", "seen_at": NIGHT + DAY}
    told = book.decision(sighting("old", **later), sighting("new", **later), now=NIGHT + DAY).items
    (only,) = composed(*told)
    assert only.reason is NotifyReason.FIRST_SEEN
    assert [item.reason for item in only.items] == [NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED]


def test_what_is_only_back_is_regressed():
    book = Book()
    book.decide(sighting())
    book.decide(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1"))
    told = book.decision(sighting(run_id="run-3", seen_at=NIGHT + DAY), now=NIGHT + DAY).items
    assert alert_of(told).reason is NotifyReason.REGRESSED


def test_recoveries_go_each_to_its_own_thread():
    book = Book()
    for case, thread in (("a", "1.1"), ("b", "2.2"), ("c", "2.2")):
        alert = alert_of(book.decision(sighting(case)).items)
        book.noted(alert, thread, "C0ALERTS")
    told = book.decision(now=NIGHT + 2 * HOUR, scope=scope("run-2", "a", "b", "c")).items
    alerts = composed(*told)
    assert {alert.thread: len(alert.items) for alert in alerts} == {"1.1": 1, "2.2": 2}
    assert {alert.channel for alert in alerts} == {"C0ALERTS"}


def test_what_opens_has_no_thread_yet():
    (alert,) = composed(*items(sighting()))
    assert (alert.thread, alert.channel) == (None, None)


def test_f11_what_a_run_finds_after_its_first_page_goes_below_it():
    """Told as it goes, five hundred failures are one message in the channel and the rest in its thread."""
    book = Book()
    book.noted(alert_of(book.decision(sighting("case-0")).items), "1.1", "C0ALERTS")
    for batch in (range(1, 50), range(50, 500)):
        seen = [sighting(f"case-{number}") for number in batch]
        (later,) = composed(*book.decision(*seen).items)
        assert (later.thread, later.channel, len(later.items)) == ("1.1", "C0ALERTS", len(batch))


def test_the_next_run_and_another_kind_begin_threads_of_their_own():
    book = Book()
    book.noted(alert_of(book.decision(sighting("case-0")).items), "1.1", "C0ALERTS")
    (gate,) = composed(*book.decision(outage(IncidentKind.GATE_FAIL)).items)
    (next_run,) = composed(*book.decision(sighting("case-1", run_id="run-2")).items)
    assert (gate.thread, next_run.thread) == (None, None)


def test_a_leak_is_not_told_below_a_wrong_number():
    book = Book()
    wrong = sighting("case-0", failure=FailureKind.WRONG_FACT)
    book.noted(alert_of(book.decision(wrong).items), "1.1", "C0ALERTS")
    (leak,) = composed(*book.decision(sighting("case-1")).items)
    assert leak.thread is None


@given(st.permutations([sighting(case, failure=kind) for case in "abc" for kind in list(FailureKind)[:3]]))
def test_the_same_news_make_the_same_messages_in_any_order(seen):
    """Two workers that decide the same compose the same ids and the same order."""
    ordered = composed(*items(*sorted(seen, key=lambda one: one.fingerprint)))
    assert composed(*items(*seen)) == ordered


def test_ids_tell_runs_apart():
    told = items(sighting())
    assert composed(*told)[0].id != composed(*told, run_id="run-2")[0].id
