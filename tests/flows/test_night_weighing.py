"""What counts as told, as failed and as severe, and what a fault of reading is called."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flows.night_weighing import Weighing, drift_after
from flows.traffic_grading import TrafficGrader, turn_id
from monitors.graders.settings import GraderSettings
from monitors.graders.traffic_panel import TrafficPanel
from monitors.records.base import Severity
from monitors.records.estimates import StratumTold
from monitors.records.traffic import Conversation, Sampled, StratumCount, Turn
from tests.flows.nights_graded import LEAK, TOLD
from tests.monitors.alerts.sightings import NIGHT

ERROR = "Error code: 429 - rate limit reached"


def conversation(*replies: str) -> Conversation:
    turns = tuple(Turn(user_text="How long do I have?", reply_text=one) for one in replies)
    return Conversation(id="talk", origin_id="talk", completed_at=NIGHT, turns=turns)


def weighed(*replies: str, by_judge: bool = False) -> Weighing:
    one = conversation(*replies)
    grader = TrafficGrader(TrafficPanel(GraderSettings()), severity=Severity.WRONG)
    said = {"talk": [turn.result.assessment for turn in grader.turns(one, one, "night-1")]}
    strata = (StratumCount(stratum="all", conversations=10, drawn=1),)
    drawn = [Sampled(conversation=one, stratum="all", inclusion_probability=0.1)]
    return Weighing(strata, drawn, said, by_judge=by_judge)


@pytest.mark.parametrize(
    ("replies", "by_judge", "severe", "failed"),
    [
        ((TOLD,), False, (1, 0), (1, 0)),
        ((LEAK,), False, (1, 1), (1, 1)),
        ((TOLD, LEAK), False, (1, 1), (1, 1)),
        ((ERROR,), False, (1, 0), (1, 1)),
        ((TOLD, ""), False, (1, 0), (1, 0)),
        (("",), False, (0, 0), (0, 0)),
        ((TOLD,), True, (0, 0), (0, 0)),
        ((TOLD, LEAK), True, (1, 1), (1, 1)),
        ((TOLD, ERROR), True, (0, 0), (1, 1)),
    ],
)
def test_what_is_told_and_what_failed(replies, by_judge, severe, failed):
    found = weighed(*replies, by_judge=by_judge)
    assert [(one.told, one.failures) for one in found.severe()] == [severe]
    assert [(one.told, one.failures) for one in found.failed()] == [failed]


def test_a_change_that_was_told_a_week_ago_is_the_new_reference():
    def counts(failures: int) -> list[StratumTold]:
        return [StratumTold(stratum="all", conversations=100, drawn=100, told=100, failures=failures)]

    state, readings = None, []
    for number in range(20):
        night = NIGHT + timedelta(days=number)
        state, reading = drift_after(state, night, counts(1 if number < 5 else 40), "rules")
        readings.append(reading.drifted)
    assert not any(readings[:5])
    assert any(readings[5:8])
    assert not readings[-1]


def test_who_graded_begins_the_test_anew():
    counts = [StratumTold(stratum="all", conversations=100, drawn=100, told=100, failures=1)]
    state, _ = drift_after(None, NIGHT, counts, "rules")
    state, reading = drift_after(state, NIGHT + timedelta(days=1), counts, "rules+judge")
    assert state.graded_by == "rules+judge"
    assert not reading.drifted


@pytest.mark.parametrize("name", ["a", "x" * 200, "x" * 159 + "." + "y" * 40])
def test_ids_of_replies_differ_and_stay_identifiers(name):
    made = {turn_id(one, number) for one in (name, f"{name}z") for number in range(3)}
    assert len(made) == 6
