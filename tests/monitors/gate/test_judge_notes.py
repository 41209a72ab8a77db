"""Every report states what its judge did, or that there was no judge."""

from __future__ import annotations

from decimal import Decimal

import pytest

from monitors.gate.assess import assess_case
from monitors.gate.evaluate import list_judge_notes
from monitors.records.grades import Aspect
from monitors.records.runs import JudgeState, Judging
from tests.builders import abstained, exchange, gold_case, grades

ON = Judging(state=JudgeState.ON, models=("claude-sonnet-5-5",), answers=100, left_open=12, by_rule=2, judged=10)
OFF = Judging(state=JudgeState.OFF, why="ANTHROPIC_API_KEY is not set", answers=100, left_open=12, by_rule=2)


def ungraded(case_id: str):
    case = gold_case(case_id)
    remaining = [grade for grade in grades() if grade.aspect is not Aspect.FACTUAL_MATCH]
    return assess_case(case, exchange(case), (*remaining, abstained(Aspect.FACTUAL_MATCH)))


def texts(judging: Judging | None) -> list[str]:
    return [note.text for note in list_judge_notes(judging, [ungraded("a")])]


def test_a_run_of_before_there_was_a_judge_says_nothing():
    assert texts(None) == []


@pytest.mark.parametrize(
    "judging",
    [
        OFF,
        OFF.model_copy(update={"left_open": 0, "by_rule": 0}),
        ON.model_copy(update={"cost_usd": Decimal("0.0421")}),
        ON.model_copy(update={"left_open": 0, "by_rule": 0, "judged": 0}),
    ],
    ids=["off", "off, not needed", "on", "on, not needed"],
)
def test_one_note_names_the_answers_that_needed_a_judge(judging, snapshot):
    assert len(texts(judging)) == 1
    assert texts(judging) == snapshot


def test_a_budget_that_was_reached_makes_the_run_partial(snapshot):
    judging = ON.model_copy(update={"judged": 4, "budget_reached": True, "budget_usd": Decimal(2)})
    assert len(texts(judging)) == 2
    assert texts(judging) == snapshot


def test_void_grades_are_counted(snapshot):
    judging = ON.model_copy(update={"judged": 5, "groups": 2, "void_groups": 1, "void_grades": 5})
    assert len(texts(judging)) == 2
    assert texts(judging) == snapshot


def test_other_reasons_are_named(snapshot):
    judging = ON.model_copy(update={"judged": 9, "ungraded_because": ("m: HTTP 529, 4 times",)})
    assert "HTTP 529, 4 times" in texts(judging)[1]
    assert texts(judging) == snapshot


def test_no_note_decides_and_the_first_names_the_cases():
    notes = list_judge_notes(OFF, [ungraded("a"), ungraded("b")])
    assert not any(note.decisive for note in notes)
    assert notes[0].case_ids == ("a", "b")
    assert list_judge_notes(ON, [ungraded("a")])[0].case_ids == ()
