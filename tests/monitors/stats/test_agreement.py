"""Test agreement and corrected rates against published examples, numpy and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monitors.stats.agreement import (
    Confusion,
    _estimate_kappa,
    compute_agreement,
    compute_cohen_kappa,
    compute_corrected_pass_rate,
    compute_effective_counts,
    compute_false_fail_rate,
    compute_false_pass_rate,
    compute_weighted_kappa,
)
from monitors.stats.intervals import compute_wilson_interval

FEW_SIMULATIONS = 1500
counts = st.integers(0, 60)
confusions = st.builds(Confusion, counts, counts, counts, counts)


def test_kappa_of_the_published_examples():
    """Kappa and its standard error equal two published examples.

    Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions (2003), table 18.3: 0.676.

    Hout and others (1987), table of 91 couples, as the R package vcd prints it: 0.1293, standard error 0.0686.
    """
    diagnoses = compute_cohen_kappa([[75, 1, 4], [5, 4, 1], [0, 0, 10]])
    assert diagnoses is not None
    assert diagnoses.value == pytest.approx(0.676, abs=0.0005)
    couples = compute_cohen_kappa([[7, 7, 2, 3], [2, 8, 3, 7], [1, 5, 4, 9], [2, 8, 9, 14]])
    assert couples is not None
    assert couples.value == pytest.approx(0.1293, abs=0.00005)
    assert (couples.high - couples.low) / 2 / 1.959964 == pytest.approx(0.0686, abs=0.00005)


def test_weighted_kappa_has_the_published_standard_errors():
    """Kappa, weighted kappa and their variances equal the values of Fleiss, Cohen and Everitt (1969).

    For 200 patients, kappa is 0.429 with variance 0.002885, weighted kappa 0.507 with variance 0.003248.
    """
    patients = [[106, 10, 4], [22, 28, 10], [2, 12, 6]]
    weights = [[1, 0, 0.4444], [0, 1, 0.6667], [0.4444, 0.6667, 1]]
    plain, weighted = compute_cohen_kappa(patients), _estimate_kappa(patients, weights, added=0, confidence=0.95)
    for found, value, variance in ((plain, 0.429, 0.002885), (weighted, 0.507, 0.003248)):
        assert found is not None
        assert found.value == pytest.approx(value, abs=0.0005)
        assert ((found.high - found.low) / 2 / 1.959964) ** 2 == pytest.approx(variance, abs=5e-7)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60))
def test_quadratic_weights_are_one_less_the_squared_distances_over_those_by_chance(pairs):
    table = np.zeros((5, 5))
    for judge, person in pairs:
        table[judge, person] += 1
    found = compute_weighted_kappa(table.tolist())
    squared = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    chance = (squared * np.outer(table.sum(1), table.sum(0))).sum() / len(pairs)
    assert (found is None) == (chance == 0)
    if found is not None:
        assert found.value == pytest.approx(1 - (squared * table).sum() / chance)
        assert -1 <= found.low <= found.value <= found.high <= 1


def test_ratings_beside_each_other_agree_better_than_ratings_far_apart():
    near, far = np.diag([4.0] * 5), np.diag([4.0] * 5)
    near[0, 1] = far[0, 4] = 3
    assert compute_weighted_kappa(near.tolist()).value > compute_weighted_kappa(far.tolist()).value
    assert compute_cohen_kappa(near.tolist()).value == pytest.approx(
        compute_cohen_kappa(far.tolist()).value, abs=0.02
    )


def test_equal_ratings_on_few_reports_prove_little():
    few, many = (compute_weighted_kappa(np.diag([each] * 5).tolist()) for each in (2.0, 40.0))
    assert few.value == many.value == 1
    assert few.low < 0.9 < many.low


def test_kappa_by_hand():
    """Kappa is 0.4 if 70 % of the answers (35 of 50) agree and chance would give 50 %: (0.7 - 0.5) / 0.5."""
    found = compute_agreement(Confusion(passed_right=20, passed_wrong=5, failed_right=10, failed_wrong=15))
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert found.low < 0.4 < found.high


def test_kappa_is_absent_where_it_is_not_defined():
    assert compute_cohen_kappa([[0, 0], [0, 0]]) is None
    assert compute_agreement(Confusion(12, 0, 0, 0)) is None


def test_perfect_agreement_on_few_answers_proves_little():
    few, many = compute_cohen_kappa([[10, 0], [0, 10]]), compute_cohen_kappa([[100, 0], [0, 100]])
    assert few is not None
    assert many is not None
    assert few.value == many.value == few.high == 1.0
    assert few.low < 0.8 < many.low


@given(confusions)
def test_kappa_is_what_numpy_says_and_lies_in_its_interval(confusion):
    table = np.array(confusion).reshape(2, 2)
    found = compute_agreement(confusion)
    assume(found is not None)
    total = table.sum()
    chance = (table.sum(0) * table.sum(1)).sum() / total**2
    assert found.value == pytest.approx((np.trace(table) / total - chance) / (1 - chance))
    assert -1 <= found.low <= found.value <= found.high <= 1


@given(confusions)
def test_raters_may_change_places(confusion):
    swapped = Confusion(
        confusion.passed_right, confusion.failed_right, confusion.passed_wrong, confusion.failed_wrong
    )
    assert compute_agreement(confusion) == pytest.approx(compute_agreement(swapped))


def test_the_interval_of_kappa_holds_the_truth_as_often_as_it_says():
    """The interval of kappa contains the true value as often as its confidence states.

    In the simulation, judge and reviewers agree on 87 of 100 answers, and 60 answers are reviewed.
    """
    shares = np.array([0.62, 0.08, 0.05, 0.25])
    chance = 0.70 * 0.67 + 0.30 * 0.33
    truth = (0.87 - chance) / (1 - chance)
    tables = np.random.default_rng(7).multinomial(60, shares, size=FEW_SIMULATIONS)
    found = [compute_agreement(Confusion(*row)) for row in tables.tolist()]
    held = sum(one is not None and one.low <= truth <= one.high for one in found)
    assert 0.92 <= held / FEW_SIMULATIONS <= 0.985


def test_false_pass_and_false_fail_rates_have_wilsons_interval():
    confusion = Confusion(passed_right=80, passed_wrong=3, failed_right=5, failed_wrong=12)
    assert compute_false_pass_rate(confusion) == (3 / 15, *compute_wilson_interval(3, 15))
    assert compute_false_fail_rate(confusion) == (5 / 85, *compute_wilson_interval(5, 85))
    assert compute_false_pass_rate(Confusion(10, 0, 2, 0)) is None
    assert compute_false_fail_rate(Confusion(0, 3, 0, 2)) is None


def known(passes_right: float, fails_wrong: float) -> Confusion:
    """Return the confusion matrix of a judge whose error rates are known almost exactly."""
    many = 1e9
    return Confusion(passes_right * many, (1 - fails_wrong) * many, (1 - passes_right) * many, fails_wrong * many)


def test_the_corrected_rate_of_published_examples():
    """The corrected rates equal those of two R packages, 0.17603 and 0.051.

    RSurveillance prints the first (20 of 120, 0.9, 0.99), epiR the second (23 of 150, 0.96, 0.89).
    """
    first = compute_corrected_pass_rate(20, 120, known(0.9, 0.99))
    assert first is not None
    assert first.value == pytest.approx(0.17603, abs=5e-6)
    assert (first.low, first.high) == pytest.approx((0.1130, 0.2623), abs=0.002)  # their Wilson interval
    second = compute_corrected_pass_rate(23, 150, known(0.96, 0.89))
    assert second is not None
    assert second.value == pytest.approx(0.051, abs=5e-4)
    assert (second.low, second.high) == pytest.approx((0.0, 0.13), abs=0.005)


def test_a_judge_without_fault_is_not_corrected():
    found = compute_corrected_pass_rate(90, 100, known(1.0, 1.0))
    assert found is not None
    assert found.value == pytest.approx(0.9)
    assert (found.low, found.high) == pytest.approx(compute_wilson_interval(90, 100), abs=0.01)


def test_a_judge_no_better_than_chance_allows_no_correction():
    assert compute_corrected_pass_rate(90, 100, Confusion(5, 5, 5, 5)) is None
    assert compute_corrected_pass_rate(90, 100, Confusion(5, 0, 5, 0)) is None
    assert compute_corrected_pass_rate(0, 0, Confusion(5, 1, 1, 5)) is None


@pytest.mark.parametrize("confusion", [Confusion(4, 39, 0, 7), Confusion(1, 30, 0, 1)])
def test_a_judge_hardly_better_than_chance_leaves_the_rate_open(confusion):
    found = compute_corrected_pass_rate(0, 1, confusion)
    assert found is not None
    assert (found.low, found.high) == (0, 1)


@given(confusions, st.integers(1, 500), st.data())
def test_a_corrected_rate_lies_in_its_interval(confusion, judged, data):
    passed = data.draw(st.integers(0, judged))
    found = compute_corrected_pass_rate(passed, judged, confusion)
    assume(found is not None)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_the_corrected_interval_holds_the_truth_as_often_as_it_says():
    """The interval of the corrected rate contains the true rate as often as its confidence states.

    In the simulation, 90 % of answers are right. The judge passes 95 % of right answers and 20 % of wrong answers.
    """
    random = np.random.default_rng(11)
    apparent = 0.9 * 0.95 + 0.1 * 0.20
    held = 0
    for passed, right, wrong in zip(
        random.binomial(300, apparent, FEW_SIMULATIONS).tolist(),
        random.binomial(60, 0.95, FEW_SIMULATIONS).tolist(),
        random.binomial(40, 0.20, FEW_SIMULATIONS).tolist(),
        strict=True,
    ):
        found = compute_corrected_pass_rate(passed, 300, Confusion(right, wrong, 60 - right, 40 - wrong))
        held += found is not None and found.low <= 0.9 <= found.high
    assert 0.93 <= held / FEW_SIMULATIONS <= 0.99


def test_equal_probabilities_give_the_plain_counts():
    pairs = [(True, True, 0.05)] * 7 + [(True, False, 0.05)] * 2 + [(False, False, 0.05)]
    assert compute_effective_counts(pairs) == pytest.approx((7, 2, 0, 1))


def test_an_answer_that_was_likelier_to_be_asked_counts_less():
    """An answer with a higher sampling probability has a lower weight.

    In this test, ten of a hundred passes and all five failures were sampled. The five failures count as five, the
    ten passes as a hundred.
    """
    pairs = [(True, True, 0.1)] * 10 + [(False, False, 1.0)] * 5
    found = compute_effective_counts(pairs)
    assert found.passed_right / found.total == pytest.approx(100 / 105)
    assert found.total == pytest.approx(105**2 / (10 * 100 + 5))
    assert compute_effective_counts([]) == (0, 0, 0, 0)
