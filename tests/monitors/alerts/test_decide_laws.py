"""Test the life cycle of incidents with random histories of runs."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.decide import decide_alerts
from monitors.records.base import Severity
from monitors.records.incidents import IncidentState, NotifyReason, Observation
from tests.monitors.alerts.sample_observations import DAY, HOUR, NIGHT, SETTINGS, AlertDecider, observation, scope

CASES = ("a", "b", "c")
LETTER = {
    NotifyReason.FIRST_SEEN: "F",
    NotifyReason.WORSE: "W",
    NotifyReason.REGRESSED: "B",
    NotifyReason.REMINDER: "M",
    NotifyReason.RECOVERED: "R",
}
LIFE = re.compile(r"F[WM]*(RB[WM]*)*R?")

severities = st.sampled_from(list(Severity))
failing = st.dictionaries(st.sampled_from(CASES), severities)
histories = st.lists(st.tuples(failing, st.frozensets(st.sampled_from(CASES))), max_size=12)


def run(number: int, failed: dict[str, Severity]) -> list[Observation]:
    at = NIGHT + number * DAY
    return [
        observation(case, run_id=f"run-{number}", seen_at=at, severity=severity)
        for case, severity in failed.items()
    ]


def after(number: int, graded: frozenset[str]):
    at = NIGHT + number * DAY
    return scope(f"run-{number}", *graded, began_at=at - HOUR, ended_at=at)


def played(history: list[tuple[dict[str, Severity], frozenset[str]]]) -> tuple[AlertDecider, dict[str, str]]:
    """Decide on the alerts of ``history``, night by night. Return the decider with its incidents, and strings.

    There is one string for each case. Each of its letters is the reason of one alert about the case, in order.
    """
    decider, spoken = AlertDecider(), dict.fromkeys(CASES, "")
    for number, (failed, graded) in enumerate(history):
        ended = after(number, graded | frozenset(failed))
        for item in decider.decide_alerts(*run(number, failed), now=NIGHT + number * DAY, scope=ended).items:
            spoken[item.incident.case_id or ""] += LETTER[item.reason]
    return decider, spoken


@given(histories)
def test_the_alerts_of_a_fault_follow_its_life_cycle(history):
    """The alerts about a fault follow its life cycle.

    They always come in this order: first seen, then worse or reminders, then recovered, and then regressed.
    """
    for letters in played(history)[1].values():
        assert letters == "" or LIFE.fullmatch(letters)


@given(histories, failing, st.frozensets(st.sampled_from(CASES)))
def test_deciding_again_says_and_changes_nothing(history, failed, graded):
    decider, _ = played(history)
    now = NIGHT + len(history) * DAY
    seen, ended = run(len(history), failed), after(len(history), graded | frozenset(failed))
    decider.decide_alerts(*seen, now=now, scope=ended)
    again = decider.decide_alerts(*seen, now=now, scope=ended)
    assert (again.items, again.changed) == ((), ())


@given(histories, failing, st.randoms())
def test_the_order_of_observations_does_not_matter(history, failed, random):
    decider, _ = played(history)
    now = NIGHT + len(history) * DAY
    seen = run(len(history), failed)
    shuffled = random.sample(seen, len(seen))
    decided = [decide_alerts(decider.incidents, order, now=now, settings=SETTINGS) for order in (seen, shuffled)]
    one, other = ({i.fingerprint: i for i in made.changed} for made in decided)
    assert one == other


@given(histories, failing, st.integers(0, 3))
def test_telling_as_it_goes_says_what_telling_at_the_end_says(history, failed, split):
    """Alerts are about the same faults whether they are sent during a run or only at its end."""
    whole, parts = played(history)[0], played(history)[0]
    now = NIGHT + len(history) * DAY
    seen = run(len(history), failed)
    at_once = {i.incident.fingerprint for i in whole.decide_alerts(*seen, now=now).items}
    early = parts.decide_alerts(*seen[:split], now=now).items
    late = parts.decide_alerts(*seen, now=now).items
    assert sorted(i.incident.fingerprint for i in (*early, *late)) == sorted(at_once)
    assert parts.incidents == whole.incidents


@given(histories, failing)
def test_every_item_is_stored_and_every_new_fault_alerted(history, failed):
    decider, _ = played(history)
    known = dict(decider.incidents)
    now = NIGHT + len(history) * DAY
    seen = run(len(history), failed)
    made = decider.decide_alerts(*seen, now=now)
    alerted = {item.incident.fingerprint for item in made.items}
    assert all(item.incident in made.changed for item in made.items)
    new = {one.fingerprint for one in seen if one.fingerprint not in known}
    back = {key for key, i in known.items() if i.state is IncidentState.RESOLVED} & {
        one.fingerprint for one in seen
    }
    assert new | back <= alerted


@given(failing, st.floats(-1, 1))
def test_f16_no_jump_of_an_hour_pages_again(failed, hours):
    decider = AlertDecider()
    decider.decide_alerts(*run(0, failed), now=NIGHT)
    jumped = NIGHT + hours * HOUR
    assert decider.decide_alerts(*run(0, failed), now=jumped).items == ()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_f12_reminders_keep_their_interval(gaps_h):
    """Two messages about an unchanged fault are at least the reminder interval apart, whenever runs take place."""
    decider, now, spoken = AlertDecider(), NIGHT, []
    for number, gap in enumerate(gaps_h):
        now += gap * HOUR
        if decider.decide_reasons(observation(run_id=f"run-{number}", seen_at=now), now=now):
            spoken.append(now)
    interval = timedelta(hours=SETTINGS.reminder_interval_h)
    assert all(later - earlier >= interval for earlier, later in pairwise(spoken))
    assert spoken[0] == NIGHT + gaps_h[0] * HOUR
