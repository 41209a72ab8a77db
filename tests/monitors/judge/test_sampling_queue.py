"""Test that spot checks are sampled reproducibly from every stratum, and that their sampling probability is recorded."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.judge.settings import sample_for_review
from monitors.records.grades import CaseOutcome
from monitors.records.reviews import AnswerId, ReviewCandidate

PASSED, FAILED = "factual passed", "factual failed"


def candidate(number: int, *, run: str = "run-1", verdicts: str = PASSED, severe: bool = False) -> ReviewCandidate:
    return ReviewCandidate(
        answer_id=AnswerId(run_id=run, case_id=f"case-{number}"),
        target="demo",
        severe=severe,
        outcome=CaseOutcome.FAILED if "failed" in verdicts else CaseOutcome.CORRECT,
        verdicts=verdicts,
    )


answers_of_all_kinds = st.lists(
    st.builds(
        candidate,
        st.integers(0, 200),
        run=st.sampled_from(["run-1", "run-2"]),
        verdicts=st.sampled_from([PASSED, FAILED, "factual passed, language failed"]),
        severe=st.booleans(),
    ),
    unique_by=lambda answer: answer.answer_id,
    max_size=60,
)
shares = st.floats(0, 1)


def ids(checks):
    return {check.answer_id for check in checks}


@given(answers_of_all_kinds, shares, shares)
def test_a_larger_share_contains_the_smaller(answers, one, other):
    assert ids(sample_for_review(answers, min(one, other))) <= ids(sample_for_review(answers, max(one, other)))


@given(answers_of_all_kinds, shares, st.randoms())
def test_the_order_of_the_answers_does_not_matter(answers, share, random):
    shuffled = list(answers)
    random.shuffle(shuffled)
    assert sample_for_review(answers, share) == sample_for_review(shuffled, share)


@given(answers_of_all_kinds, st.floats(0.01, 1))
def test_every_kind_is_looked_at_and_the_probabilities_add_up_to_the_answers(answers, share):
    """Every stratum is sampled. In each stratum, the sum of 1/probability over the sampled answers is its size."""
    stratum_of = {answer.answer_id: answer._replace(answer_id=None) for answer in answers}
    sizes, weights = Counter(), Counter()
    for answer in answers:
        sizes[answer.answer_id.run_id, stratum_of[answer.answer_id]] += 1
    for check in sample_for_review(answers, share):
        weights[check.answer_id.run_id, stratum_of[check.answer_id]] += 1 / check.inclusion_probability
    assert weights == pytest.approx(sizes)


def test_five_percent_of_many_are_sampled_and_one_of_few():
    answers = [candidate(n) for n in range(400)] + [candidate(900, verdicts=FAILED, severe=True)]
    checks = sample_for_review(answers, 0.05)
    assert len(checks) == 21
    assert [check.inclusion_probability for check in checks if check.answer_id.case_id == "case-900"] == [1.0]


def test_a_grader_that_seldom_speaks_is_reviewed_in_every_run():
    """A rare stratum is reviewed in every run: here, one of its 4 answers, although another stratum has 200."""
    often = [candidate(n) for n in range(200)]
    rare = [candidate(n, verdicts="citations passed, factual passed") for n in range(200, 204)]
    assert (
        sum(
            int(check.answer_id.case_id.removeprefix("case-")) >= 200
            for check in sample_for_review(often + rare, 0.05)
        )
        == 1
    )


def test_nothing_is_sampled_from_nothing_or_with_no_share():
    assert sample_for_review([], 0.05) == ()
    assert sample_for_review([candidate(1)], 0) == ()


def test_an_answer_that_stands_twice_counts_once():
    assert len(sample_for_review([candidate(1), candidate(1)], 1)) == 1
