"""An incident's life, story by story; the laws are in test_decide_laws.py."""

from __future__ import annotations

import pytest

from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, IncidentState, NotifyReason
from tests.monitors.alerts.sightings import DAY, HOUR, NIGHT, Book, outage, scope, sighting

FIRST, WORSE, BACK = NotifyReason.FIRST_SEEN, NotifyReason.WORSE, NotifyReason.REGRESSED
REMINDER, RECOVERED = NotifyReason.REMINDER, NotifyReason.RECOVERED


def seen(run: int = 1, **changes: object):
    """The leak as run number ``run`` saw it, one night after the other."""
    values = {"run_id": f"run-{run}", "seen_at": NIGHT + (run - 1) * DAY} | changes
    return sighting(**values)


def only(book: Book):
    (incident,) = book.incidents.values()
    return incident


def test_a_first_sighting_opens_and_is_told():
    book = Book()
    assert book.decide(seen()) == (FIRST,)
    assert only(book).state is IncidentState.OPEN
    assert only(book).first_commit == "4f2a91c07be1"
    assert only(book).last_notified_at == NIGHT


def test_f09_a_restart_with_the_same_failures_open_says_nothing():
    book = Book()
    book.decide(seen())
    assert book.decide(seen(run_id="run-2"), now=NIGHT + HOUR) == ()
    assert only(book).occurrences == 2


def test_f10_a_failure_that_came_while_nobody_looked_is_told():
    """However long the monitor was down, what is new when it is back is told once."""
    book = Book()
    book.decide(seen(), now=NIGHT)
    later = NIGHT + 9 * DAY
    new = sighting("other", run_id="run-9", seen_at=later)
    old = seen(run_id="run-9", seen_at=later)
    assert sorted(book.decide(old, new, now=later)) == [FIRST, REMINDER]


def test_f12_night_after_night_is_one_page_then_reminders():
    book = Book()
    told = [book.decide(seen(night), now=NIGHT + (night - 1) * DAY) for night in range(1, 6)]
    assert told == [(FIRST,), (REMINDER,), (REMINDER,), (REMINDER,), (REMINDER,)]
    hourly = [book.decide(seen(9, run_id=f"h{hour}"), now=NIGHT + 4 * DAY + hour * HOUR) for hour in range(1, 23)]
    assert set(hourly) == {()}


def test_f13_fixed_and_back_is_regressed():
    book = Book()
    book.decide(seen())
    assert book.decide(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1")) == (RECOVERED,)
    assert only(book).state is IncidentState.RESOLVED
    again = seen(3, commit="9b00d5aa12cd")
    assert book.decide(again, now=NIGHT + 2 * DAY) == (BACK,)
    assert only(book).occurrences == 1
    assert only(book).first_commit == "9b00d5aa12cd"
    assert only(book).thread is None


def test_f15_two_workers_with_the_same_event_page_once():
    book = Book()
    told = [*book.decide(seen()), *book.decide(seen())]
    assert told == [FIRST]


@pytest.mark.parametrize("jump", [-HOUR, HOUR], ids=["back", "ahead"])
def test_f16_a_clock_that_jumps_by_an_hour_pages_nobody_again(jump):
    book = Book()
    book.decide(seen(), now=NIGHT)
    assert book.decide(seen(2, seen_at=NIGHT + jump), now=NIGHT + jump) == ()
    assert only(book).last_seen_at == max(NIGHT, NIGHT + jump)
    assert book.decide(seen(3, seen_at=NIGHT + HOUR), now=NIGHT + HOUR) == ()


def test_a_clock_that_came_back_from_far_ahead_does_not_mute():
    book = Book()
    book.decide(seen(), now=NIGHT + 4000 * DAY)
    assert book.decide(seen(2), now=NIGHT + DAY) == (REMINDER,)


def test_worse_is_told_at_once_and_severity_never_falls_while_open():
    book = Book()
    mild = {"severity": Severity.WRONG}
    book.decide(seen(**mild))
    assert book.decide(seen(2), now=NIGHT + HOUR) == (WORSE,)
    assert book.decide(seen(3, **mild), now=NIGHT + 2 * HOUR) == ()
    assert only(book).severity is Severity.PAGE
    assert book.decide(seen(4), now=NIGHT + 3 * HOUR) == ()


def test_an_acknowledged_incident_is_quiet_until_it_gets_worse():
    book = Book()
    book.decide(seen(severity=Severity.WRONG))
    book.incidents = {key: incident.acknowledge() for key, incident in book.incidents.items()}
    assert book.decide(seen(2, severity=Severity.WRONG), now=NIGHT + 5 * DAY) == ()
    assert book.decide(seen(3), now=NIGHT + 6 * DAY) == (WORSE,)
    assert only(book).state is IncidentState.OPEN


def test_an_acknowledged_incident_recovers_in_public():
    book = Book()
    book.decide(seen())
    book.incidents = {key: incident.acknowledge() for key, incident in book.incidents.items()}
    assert book.decide(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1")) == (RECOVERED,)


def test_a_case_that_could_not_be_told_resolves_nothing():
    book = Book()
    book.decide(seen())
    assert book.decide(now=NIGHT + DAY, scope=scope("run-2", "another-case")) == ()
    assert only(book).state is IncidentState.OPEN


def test_a_run_that_began_before_the_fault_was_seen_resolves_nothing():
    """Two runs overlap: the one that asked before the fault came must not wave it away."""
    book = Book()
    book.decide(seen(run_id="newer", seen_at=NIGHT + 2 * HOUR), now=NIGHT + 2 * HOUR)
    older = scope("older", "leak-1", began_at=NIGHT, ended_at=NIGHT + 3 * HOUR)
    assert book.decide(now=NIGHT + 3 * HOUR, scope=older) == ()
    assert only(book).state is IncidentState.OPEN


def test_a_run_that_repeats_what_was_resolved_meanwhile_does_not_reopen():
    book = Book()
    book.decide(seen(run_id="slow"))
    book.decide(now=NIGHT + 2 * HOUR, scope=scope("quick", "leak-1"))
    assert book.decide(seen(run_id="slow"), now=NIGHT + 3 * HOUR) == ()
    assert only(book).state is IncidentState.RESOLVED


def test_the_same_case_failing_in_another_way_is_said_in_the_recovery(snapshot):
    book = Book()
    book.decide(seen())
    other = sighting(failure=FailureKind.WRONG_FACT, run_id="run-2", seen_at=NIGHT + HOUR)
    made = book.decision(other, now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1", passed=frozenset()))
    reasons = {item.reason: item.observation.reason for item in made.items}
    assert set(reasons) == {FIRST, RECOVERED}
    assert reasons[RECOVERED] == snapshot


def test_an_outage_mutes_quality_and_what_it_muted_is_told_afterwards():
    book = Book()
    wrong = sighting("fact-1", failure=FailureKind.WRONG_FACT)
    assert book.decide(outage(), wrong) == (FIRST,)
    after = wrong.model_copy(update={"run_id": "run-2", "seen_at": NIGHT + HOUR})
    told = book.decide(
        after, now=NIGHT + 2 * HOUR, scope=scope("run-2", cleared=frozenset({IncidentKind.APP_DOWN}))
    )
    assert sorted(told) == [FIRST, RECOVERED]


def test_an_outage_does_not_mute_a_disclosure():
    assert Book().decide(outage(), seen()) == (FIRST, FIRST)


def test_an_outage_of_one_target_does_not_mute_another():
    book = Book()
    other = sighting("fact-1", failure=FailureKind.WRONG_FACT, target="another")
    assert book.decide(outage(), other) == (FIRST, FIRST)


def test_what_was_never_told_recovers_without_a_word():
    book = Book()
    book.decide(outage(), sighting("fact-1", failure=FailureKind.WRONG_FACT))
    cleared = scope("run-2", "fact-1", cleared=frozenset({IncidentKind.APP_DOWN}))
    assert book.decide(now=NIGHT + 2 * HOUR, scope=cleared) == (RECOVERED,)


def test_an_entry_of_the_log_is_told_once_and_closes_without_a_word():
    book = Book()
    entry = outage(IncidentKind.HALLUCINATION)
    assert book.decide(entry) == (FIRST,)
    assert book.decide(entry.model_copy(update={"run_id": "run-2"}), now=NIGHT + 2 * DAY) == ()
    assert book.decide(now=NIGHT + 10 * DAY) == ()
    assert only(book).state is IncidentState.RESOLVED
    assert book.decide(entry.model_copy(update={"run_id": "run-3"}), now=NIGHT + 11 * DAY) == ()
