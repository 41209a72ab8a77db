"""Test that human labels become weighted rates with intervals, and that unsupported rates are not reported."""

from __future__ import annotations

from math import sqrt
from statistics import mean, stdev

import pytest

from monitors.judge.calibration import check_graders, compare_judges_with_people
from monitors.judge.settings import sample_for_review
from monitors.records.grades import Aspect, JudgeLineage
from monitors.records.reviews import AnswerId, ReviewedAnswer, ReviewedGrade, VerdictCount
from monitors.stats.agreement import Confusion, compute_agreement, compute_corrected_pass_rate
from tests.monitors.judge.test_sampling_queue import FAILED, PASSED, candidate

LINEAGE = JudgeLineage(model="claude-haiku-5-5", prompt_sha256="a" * 64, rubric_version="1")


def reviews(*, right_right=0, passed_wrong=0, failed_right=0, failed_wrong=0, probability=0.05):
    kinds = [(True, True)] * right_right + [(True, False)] * passed_wrong
    kinds += [(False, True)] * failed_right + [(False, False)] * failed_wrong
    return [
        ReviewedAnswer(
            answer_id=AnswerId(run_id="run-1", case_id=f"case-{n}"),
            target="demo",
            lineage=LINEAGE,
            judge_passed=judge,
            people_right=people,
            inclusion_probability=probability,
        )
        for n, (judge, people) in enumerate(kinds)
    ]


ANSWERS = [VerdictCount("demo", "judge", "3", Aspect.FACTUAL_MATCH, LINEAGE, passed=720, total=800)]


def test_figures_are_those_of_the_statistics_for_an_even_sample():
    (found,) = compare_judges_with_people(
        reviews(right_right=32, passed_wrong=2, failed_right=1, failed_wrong=5), ANSWERS
    )
    counts = Confusion(32, 2, 1, 5)
    kappa, corrected = compute_agreement(counts), compute_corrected_pass_rate(720, 800, counts)
    assert (found.both_graded, found.agreed, found.judged, found.pass_rate) == (40, 37, 800, 0.9)
    assert (found.kappa.value, found.kappa.low, found.kappa.high) == pytest.approx(kappa)
    assert found.false_pass_rate.value == pytest.approx(2 / 7)
    assert found.false_fail_rate.value == pytest.approx(1 / 33)
    assert found.corrected_pass_rate.value == pytest.approx(corrected.value)
    assert "37 of 40" in found.lines[1]
    assert "28.6 %" in found.lines[3]


def test_answers_likelier_to_be_sampled_weigh_less():
    uneven = reviews(right_right=20, passed_wrong=2) + [
        each.model_copy(update={"inclusion_probability": 1.0}) for each in reviews(failed_wrong=8, failed_right=1)
    ]
    (found,) = compare_judges_with_people(uneven, ANSWERS)
    assert found.false_pass_rate.value == pytest.approx(2 / 0.05 / (2 / 0.05 + 8))
    assert found.false_fail_rate.value == pytest.approx(1 / (20 / 0.05 + 1))


def test_without_reviews_it_says_so_and_reckons_nothing():
    (found,) = compare_judges_with_people([], ANSWERS)
    assert (found.kappa, found.false_pass_rate, found.corrected_pass_rate) == (None, None, None)
    assert "lookout review" in found.lines[1]


def test_few_reviews_and_unknown_figures_are_stated(snapshot):
    (found,) = compare_judges_with_people(reviews(right_right=5), ANSWERS)
    assert (found.both_graded, found.false_pass_rate, found.corrected_pass_rate) == (5, None, None)
    assert found.lines == snapshot


def test_each_judge_is_calibrated_by_itself():
    other = LINEAGE.model_copy(update={"prompt_sha256": "b" * 64})
    answers = [*ANSWERS, ANSWERS[0]._replace(lineage=other, passed=1, total=1)]
    first, second = compare_judges_with_people(reviews(right_right=3), answers)
    assert (first.lineage, first.both_graded) == (LINEAGE, 3)
    assert (second.lineage, second.both_graded, second.judged) == (other, 0, 1)
    assert compare_judges_with_people([], []) == ()


RULE = VerdictCount("demo", "factual", "3", Aspect.FACTUAL_MATCH, None, passed=380, total=400)


def said(passed, right, count, probability=0.05):
    return [ReviewedGrade("demo", "factual", "3", passed, right, probability)] * count


def test_a_grader_without_a_model_has_its_own_two_rates(snapshot):
    reviewed = said(True, False, 1) + said(False, False, 5) + said(False, True, 1) + said(True, True, 9)
    (found,) = check_graders(reviewed, [RULE, *ANSWERS])
    assert found.reviewed == 16
    assert found.false_passes.rate.value == pytest.approx(1 / 6)
    assert found.false_fails.rate.value == pytest.approx(1 / 10)
    assert found.lines == snapshot


def test_of_too_few_answers_no_rate_is_given(snapshot):
    (found,) = check_graders(said(True, False, 4) + said(True, True, 5), [RULE])
    assert found.lines == snapshot(name="too few")
    (nothing,) = check_graders([], [RULE])
    assert nothing.lines == snapshot(name="none")
    (other,) = check_graders(said(True, False, 9), [RULE._replace(version="4")])
    assert other.reviewed == 0, "what another version of the rules did says nothing of this one"


def test_answers_that_were_all_reviewed_count_in_full_beside_others_that_stand_for_many():
    """Ten wrong answers from fully reviewed strata count as ten.

    Only answers from partly reviewed strata are weighted up, because each of them stands for several answers.
    """
    (found,) = check_graders(said(False, False, 10, 1.0) + said(True, True, 20), [RULE])
    assert found.false_passes.rate.high == pytest.approx(0.278, abs=0.001)
    uneven = said(True, False, 2) + said(False, False, 8, 1.0)
    (found,) = check_graders(uneven, [RULE])
    assert found.false_passes.rate.value == pytest.approx(2 / 0.05 / (2 / 0.05 + 8))
    assert "(83.3 % weighted" in found.lines[2]


def _population(run):
    """Return a known population of answers: the id of each answer, and whether reviewers find it right.

    Its strata are unequal. Each stratum has a severity, a verdict, a size and a number of answers that reviewers
    find wrong. Of the 148 wrong answers, 68 have a passing verdict.
    """
    number, truth = 0, {}
    for severe, verdicts, size, wrong in (
        (False, PASSED, 400, 40), (False, FAILED, 100, 80),
        *((True, PASSED + str(n), 7, 4) for n in range(7)),
    ):  # fmt: skip
        for place in range(size):
            one = candidate(number, run=run, verdicts=verdicts, severe=severe)
            truth[one.answer_id] = (one, place >= wrong)
            number += 1
    return truth


def test_the_weighted_rates_are_right_on_average_over_unequal_strata():
    """Over 200 runs of a known population, the mean weighted rate is within three standard errors of the true rate.

    The unweighted share of wrong answers in the same reviews is off by more than four standard errors.
    """
    weighted, plain = [], []
    for seed in range(200):
        truth = _population(f"run-{seed}")
        reviewed = [
            ReviewedGrade("demo", "factual", "3", "passed" in truth[i][0].verdicts, truth[i][1], probability)
            for i, probability in sample_for_review([one for one, _ in truth.values()], 0.1)
        ]
        (found,) = check_graders(reviewed, [RULE])
        weighted.append(found.false_passes.rate.value)
        plain.append(found.false_passes.errors / found.false_passes.reviewed)
    error = stdev(weighted) / sqrt(len(weighted))
    assert abs(mean(weighted) - 68 / 148) < 3 * error
    assert abs(mean(plain) - 68 / 148) > 4 * error
