"""From labels to figures: weighted, with intervals, and silent about what cannot be told."""

from __future__ import annotations

import pytest

from monitors.agreement import Confusion, agreement, corrected_pass_rate
from monitors.judge.calibration import calibrate
from monitors.records.reviews import AnswerId, Reviewed
from tests.monitors.judge.test_sampling_queue import LINEAGE, judged_answer


def reviews(*, right_right=0, passed_wrong=0, failed_right=0, failed_wrong=0, probability=0.05):
    kinds = [(True, True)] * right_right + [(True, False)] * passed_wrong
    kinds += [(False, True)] * failed_right + [(False, False)] * failed_wrong
    return [
        Reviewed(
            answer_id=AnswerId(run_id="run-1", case_id=f"case-{n}"),
            target="demo",
            lineage=LINEAGE,
            judge_passed=judge,
            people_right=people,
            inclusion_probability=probability,
        )
        for n, (judge, people) in enumerate(kinds)
    ]


ANSWERS = [judged_answer(n, passed=n >= 80) for n in range(800)]


def test_figures_are_those_of_the_statistics_for_an_even_sample():
    (found,) = calibrate(reviews(right_right=32, passed_wrong=2, failed_right=1, failed_wrong=5), ANSWERS)
    counts = Confusion(32, 2, 1, 5)
    kappa, corrected = agreement(counts), corrected_pass_rate(720, 800, counts)
    assert (found.both_told, found.agreed, found.judged, found.pass_rate) == (40, 37, 800, 0.9)
    assert (found.kappa.value, found.kappa.low, found.kappa.high) == pytest.approx(kappa)
    assert found.false_pass_rate.value == pytest.approx(2 / 7)
    assert found.false_fail_rate.value == pytest.approx(1 / 33)
    assert found.corrected_pass_rate.value == pytest.approx(corrected.value)
    assert found.lines[1] == "people and judge say the same of 37 of 40 answers"
    assert "28.6 %" in found.lines[3]


def test_answers_that_were_likelier_to_be_drawn_weigh_less():
    uneven = reviews(right_right=20, passed_wrong=2) + [
        each.model_copy(update={"inclusion_probability": 1.0}) for each in reviews(failed_wrong=8, failed_right=1)
    ]
    (found,) = calibrate(uneven, ANSWERS)
    assert found.false_pass_rate.value == pytest.approx(2 / 0.05 / (2 / 0.05 + 8))
    assert found.false_fail_rate.value == pytest.approx(1 / (20 / 0.05 + 1))


def test_without_reviews_it_says_so_and_reckons_nothing():
    (found,) = calibrate([], ANSWERS)
    assert (found.kappa, found.false_pass_rate, found.corrected_pass_rate) == (None, None, None)
    assert "lookout review" in found.lines[1]


def test_few_reviews_are_called_few_and_what_cannot_be_told_is_said():
    (found,) = calibrate(reviews(right_right=5), ANSWERS)
    assert "fewer than 30" in found.lines[1]
    assert found.lines[2].startswith("kappa is not defined")
    assert found.lines[3] == "passes wrong answers: no wrong answer was reviewed"
    assert found.lines[5].endswith("cannot be told from these reviews")


def test_each_judge_is_calibrated_by_itself():
    other = LINEAGE.model_copy(update={"prompt_sha256": "b" * 64})
    answers = [*ANSWERS, judged_answer(900).model_copy(update={"lineage": other})]
    first, second = calibrate(reviews(right_right=3), answers)
    assert (first.lineage, first.both_told) == (LINEAGE, 3)
    assert (second.lineage, second.both_told, second.judged) == (other, 0, 1)
    assert calibrate([], []) == ()
