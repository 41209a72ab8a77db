"""Test the life cycle of an incident with examples. The general laws are in test_decide_laws.py."""

from __future__ import annotations

import pytest

from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, IncidentState, NotifyReason
from tests.monitors.alerts.sample_observations import DAY, HOUR, NIGHT, AlertDecider, observation, outage, scope

FIRST, WORSE, BACK = NotifyReason.FIRST_SEEN, NotifyReason.WORSE, NotifyReason.REGRESSED
REMINDER, RECOVERED = NotifyReason.REMINDER, NotifyReason.RECOVERED


def seen(run: int = 1, **changes: object):
    """Build the observation of the leak in the run with number ``run``.

    The runs take place on consecutive nights.
    """
    values = {"run_id": f"run-{run}", "seen_at": NIGHT + (run - 1) * DAY} | changes
    return observation(**values)


def only(decider: AlertDecider):
    (incident,) = decider.incidents.values()
    return incident


def test_a_first_observation_opens_an_incident_and_alerts():
    decider = AlertDecider()
    assert decider.decide_reasons(seen()) == (FIRST,)
    assert only(decider).state is IncidentState.OPEN
    assert only(decider).first_commit == "4f2a91c07be1"
    assert only(decider).last_notified_at == NIGHT


def test_f09_a_restart_with_the_same_failures_open_says_nothing():
    decider = AlertDecider()
    decider.decide_reasons(seen())
    assert decider.decide_reasons(seen(run_id="run-2"), now=NIGHT + HOUR) == ()
    assert only(decider).occurrences == 2


def test_f10_a_failure_from_a_gap_in_monitoring_is_alerted():
    """However long the monitor was down, a failure that is new after the gap is alerted once."""
    decider = AlertDecider()
    decider.decide_reasons(seen(), now=NIGHT)
    later = NIGHT + 9 * DAY
    new = observation("other", run_id="run-9", seen_at=later)
    old = seen(run_id="run-9", seen_at=later)
    assert sorted(decider.decide_reasons(old, new, now=later)) == [FIRST, REMINDER]


def test_f12_night_after_night_is_one_page_then_reminders():
    decider = AlertDecider()
    reasons = [decider.decide_reasons(seen(night), now=NIGHT + (night - 1) * DAY) for night in range(1, 6)]
    assert reasons == [(FIRST,), (REMINDER,), (REMINDER,), (REMINDER,), (REMINDER,)]
    hourly = [
        decider.decide_reasons(seen(9, run_id=f"h{hour}"), now=NIGHT + 4 * DAY + hour * HOUR)
        for hour in range(1, 23)
    ]
    assert set(hourly) == {()}


def test_f13_fixed_and_back_is_regressed():
    decider = AlertDecider()
    decider.decide_reasons(seen())
    assert decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1")) == (RECOVERED,)
    assert only(decider).state is IncidentState.RESOLVED
    again = seen(3, commit="9b00d5aa12cd")
    assert decider.decide_reasons(again, now=NIGHT + 2 * DAY) == (BACK,)
    assert only(decider).occurrences == 1
    assert only(decider).first_commit == "9b00d5aa12cd"
    assert only(decider).thread is None


def test_f15_two_workers_with_the_same_event_page_once():
    decider = AlertDecider()
    reasons = [*decider.decide_reasons(seen()), *decider.decide_reasons(seen())]
    assert reasons == [FIRST]


@pytest.mark.parametrize("jump", [-HOUR, HOUR], ids=["back", "ahead"])
def test_f16_a_clock_that_jumps_by_an_hour_pages_nobody_again(jump):
    decider = AlertDecider()
    decider.decide_reasons(seen(), now=NIGHT)
    assert decider.decide_reasons(seen(2, seen_at=NIGHT + jump), now=NIGHT + jump) == ()
    assert only(decider).last_seen_at == max(NIGHT, NIGHT + jump)
    assert decider.decide_reasons(seen(3, seen_at=NIGHT + HOUR), now=NIGHT + HOUR) == ()


def test_a_clock_that_came_back_from_far_ahead_does_not_mute():
    decider = AlertDecider()
    decider.decide_reasons(seen(), now=NIGHT + 4000 * DAY)
    assert decider.decide_reasons(seen(2), now=NIGHT + DAY) == (REMINDER,)


def test_a_higher_severity_alerts_at_once_and_never_falls_while_open():
    decider = AlertDecider()
    mild = {"severity": Severity.MAJOR}
    decider.decide_reasons(seen(**mild))
    assert decider.decide_reasons(seen(2), now=NIGHT + HOUR) == (WORSE,)
    assert decider.decide_reasons(seen(3, **mild), now=NIGHT + 2 * HOUR) == ()
    assert only(decider).severity is Severity.CRITICAL
    assert decider.decide_reasons(seen(4), now=NIGHT + 3 * HOUR) == ()


def test_an_acknowledged_incident_is_quiet_until_it_gets_worse():
    decider = AlertDecider()
    decider.decide_reasons(seen(severity=Severity.MAJOR))
    decider.incidents = {key: incident.acknowledge() for key, incident in decider.incidents.items()}
    assert decider.decide_reasons(seen(2, severity=Severity.MAJOR), now=NIGHT + 5 * DAY) == ()
    assert decider.decide_reasons(seen(3), now=NIGHT + 6 * DAY) == (WORSE,)
    assert only(decider).state is IncidentState.OPEN


def test_an_acknowledged_incident_recovers_in_public():
    decider = AlertDecider()
    decider.decide_reasons(seen())
    decider.incidents = {key: incident.acknowledge() for key, incident in decider.incidents.items()}
    assert decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1")) == (RECOVERED,)


def test_an_ungraded_case_resolves_nothing():
    decider = AlertDecider()
    decider.decide_reasons(seen())
    assert decider.decide_reasons(now=NIGHT + DAY, scope=scope("run-2", "another-case")) == ()
    assert only(decider).state is IncidentState.OPEN


def test_a_run_that_began_before_the_fault_was_seen_resolves_nothing():
    """A run that began before a fault was seen and ended after it does not resolve the incident."""
    decider = AlertDecider()
    decider.decide_reasons(seen(run_id="newer", seen_at=NIGHT + 2 * HOUR), now=NIGHT + 2 * HOUR)
    older = scope("older", "leak-1", began_at=NIGHT, ended_at=NIGHT + 3 * HOUR)
    assert decider.decide_reasons(now=NIGHT + 3 * HOUR, scope=older) == ()
    assert only(decider).state is IncidentState.OPEN


def test_a_run_that_repeats_what_was_resolved_meanwhile_does_not_reopen():
    decider = AlertDecider()
    decider.decide_reasons(seen(run_id="slow"))
    decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=scope("quick", "leak-1"))
    assert decider.decide_reasons(seen(run_id="slow"), now=NIGHT + 3 * HOUR) == ()
    assert only(decider).state is IncidentState.RESOLVED


def test_the_same_case_failing_in_another_way_is_said_in_the_recovery(snapshot):
    decider = AlertDecider()
    decider.decide_reasons(seen())
    other = observation(failure=FailureKind.WRONG_FACT, run_id="run-2", seen_at=NIGHT + HOUR)
    made = decider.decide_alerts(other, now=NIGHT + 2 * HOUR, scope=scope("run-2", "leak-1", passed=frozenset()))
    reasons = {item.reason: item.observation.reason for item in made.items}
    assert set(reasons) == {FIRST, RECOVERED}
    assert reasons[RECOVERED] == snapshot


def test_an_outage_mutes_quality_alerts_until_it_ends():
    decider = AlertDecider()
    wrong = observation("fact-1", failure=FailureKind.WRONG_FACT)
    assert decider.decide_reasons(outage(), wrong) == (FIRST,)
    after = wrong.model_copy(update={"run_id": "run-2", "seen_at": NIGHT + HOUR})
    reasons = decider.decide_reasons(
        after, now=NIGHT + 2 * HOUR, scope=scope("run-2", cleared=frozenset({IncidentKind.APP_DOWN}))
    )
    assert sorted(reasons) == [FIRST, RECOVERED]


def test_an_outage_does_not_mute_a_disclosure():
    assert AlertDecider().decide_reasons(outage(), seen()) == (FIRST, FIRST)


def test_an_outage_of_one_target_does_not_mute_another():
    decider = AlertDecider()
    other = observation("fact-1", failure=FailureKind.WRONG_FACT, target="another")
    assert decider.decide_reasons(outage(), other) == (FIRST, FIRST)


def test_an_incident_never_alerted_recovers_without_a_message():
    decider = AlertDecider()
    decider.decide_reasons(outage(), observation("fact-1", failure=FailureKind.WRONG_FACT))
    cleared = scope("run-2", "fact-1", cleared=frozenset({IncidentKind.APP_DOWN}))
    assert decider.decide_reasons(now=NIGHT + 2 * HOUR, scope=cleared) == (RECOVERED,)


def test_a_log_entry_alerts_once_and_closes_without_a_message():
    decider = AlertDecider()
    entry = outage(IncidentKind.HALLUCINATION)
    assert decider.decide_reasons(entry) == (FIRST,)
    assert decider.decide_reasons(entry.model_copy(update={"run_id": "run-2"}), now=NIGHT + 2 * DAY) == ()
    assert decider.decide_reasons(now=NIGHT + 10 * DAY) == ()
    assert only(decider).state is IncidentState.RESOLVED
    assert decider.decide_reasons(entry.model_copy(update={"run_id": "run-3"}), now=NIGHT + 11 * DAY) == ()
