"""Spot checks are drawn from every kind, the same ones always, and know how likely they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.judge.sampling_queue import spot_checks
from monitors.records.base import Language, Severity
from monitors.records.grades import JudgeLineage
from monitors.records.reviews import AnswerId, JudgedAnswer
from tests.builders import NOON

LINEAGE = JudgeLineage(model="claude-haiku-5-5", prompt_sha256="a" * 64, rubric_version="1")


def judged_answer(number: int, *, run: str = "run-1", passed: bool = True, severe: bool = False) -> JudgedAnswer:
    return JudgedAnswer(
        answer_id=AnswerId(run_id=run, case_id=f"case-{number}"),
        target="demo",
        asked_at=NOON,
        severity=Severity.PAGE if severe else Severity.WRONG,
        language=Language.ENGLISH,
        turns=("How long?",),
        answer="24 months",
        judge_passed=passed,
        judge_reason="because",
        lineage=LINEAGE,
    )


answers_of_all_kinds = st.lists(
    st.builds(
        judged_answer,
        st.integers(0, 200),
        run=st.sampled_from(["run-1", "run-2"]),
        passed=st.booleans(),
        severe=st.booleans(),
    ),
    unique_by=lambda answer: answer.answer_id,
    max_size=60,
)
shares = st.floats(0, 1)


def ids(checks):
    return {check.answer.answer_id for check in checks}


@given(answers_of_all_kinds, shares, shares)
def test_a_larger_share_contains_the_smaller(answers, one, other):
    assert ids(spot_checks(answers, min(one, other))) <= ids(spot_checks(answers, max(one, other)))


@given(answers_of_all_kinds, shares, st.randoms())
def test_the_order_of_the_answers_does_not_matter(answers, share, random):
    shuffled = list(answers)
    random.shuffle(shuffled)
    assert spot_checks(answers, share) == spot_checks(shuffled, share)


@given(answers_of_all_kinds, st.floats(0.01, 1))
def test_every_kind_is_looked_at_and_the_probabilities_add_up_to_the_answers(answers, share):
    """Weighing each by one over its probability gives back every kind's size: the sample speaks for all."""
    checks = spot_checks(answers, share)
    sizes, weights = {}, {}
    for answer in answers:
        kind = (answer.answer_id.run_id, answer.judge_passed, answer.severity)
        sizes[kind] = sizes.get(kind, 0) + 1
    for check in checks:
        kind = (check.answer.answer_id.run_id, check.answer.judge_passed, check.answer.severity)
        weights[kind] = weights.get(kind, 0) + 1 / check.inclusion_probability
    assert weights == pytest.approx(sizes)


def test_five_percent_of_many_are_drawn_and_one_of_the_few():
    answers = [judged_answer(n) for n in range(400)] + [judged_answer(900, passed=False, severe=True)]
    checks = spot_checks(answers, 0.05)
    assert len(checks) == 21
    few = [check for check in checks if not check.answer.judge_passed]
    assert [check.inclusion_probability for check in few] == [1.0]


def test_nothing_is_drawn_from_nothing_or_with_no_share():
    assert spot_checks([], 0.05) == ()
    assert spot_checks([judged_answer(1)], 0) == ()


def test_an_answer_that_stands_twice_counts_once():
    assert len(spot_checks([judged_answer(1), judged_answer(1)], 1)) == 1
