"""Test the share of flips and the estimate of noise, against calculations by hand and suites with known noise.

A flip is a pair of answers to one question with different grades.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.stats.intervals import compute_wilson_interval
from monitors.stats.repeatability import (
    NO_NOISE,
    compute_case_noise,
    compute_flip_share,
    fit_noise,
    has_consistent_failure,
)


def test_pairs_of_cases_of_their_own_have_wilsons_interval():
    """If each case gives one pair, the pairs are independent and the interval is Wilson's."""
    found = compute_flip_share((number, number < 3) for number in range(40))
    assert (found.flips, found.pairs, found.cases) == (3, 40, 40)
    assert (found.low, found.high) == pytest.approx(compute_wilson_interval(3, 40))


def test_pairs_of_one_case_know_less_than_as_many_cases():
    """If the same number of flips comes from few cases, the interval is wider than if it comes from many cases."""
    few = compute_flip_share((number % 4, number % 4 == 0) for number in range(40))
    many = compute_flip_share((number, number % 4 == 0) for number in range(40))
    assert few.high - few.low > many.high - many.low


def test_without_a_flip_cases_count_and_not_pairs():
    """If no pair flips, the interval depends on the number of cases, not on the number of pairs.

    The reason is that a hundred pairs of one case say as little about other cases as one pair.
    """
    assert compute_flip_share([("a", False)] * 100) == (0, 100, 1, *compute_wilson_interval(0, 1))
    assert compute_flip_share([]) == (0, 0, 0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("group", "fault"), [((2, 2), True), ((1, 2), False), ((2, 3), True), ((1, 1), False), ((2, 4), False)]
)
def test_a_case_that_fails_more_often_than_not_has_a_fault(group, fault):
    """A case that fails more often than not has a fault.

    If a case was asked only once, a fault cannot be distinguished from noise.
    """
    assert has_consistent_failure(group) is fault


def test_askings_that_never_fail_are_no_noise_with_a_limit():
    """If no repeated question fails, the estimated noise is zero.

    The more cases are repeated, the lower is the upper limit of the interval.
    """
    limits = []
    for cases in (20, 100, 500):
        found = fit_noise([[(0, 2)]] * cases)
        assert found is not None
        assert (found.mean, found.low) == (0.0, 0.0)
        assert compute_case_noise([(0, 2)], *found.likeliest.points[0]) is NO_NOISE
        limits.append(found.high)
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] < 0.004


def test_nothing_is_fitted_to_faults_or_single_askings():
    """If every case has a fault or was asked only once, the noise estimate is ``None``, not 0."""
    assert fit_noise([[(2, 2)], [(1, 1)], [], [(0, 1)]]) is None


def test_a_case_leans_towards_the_others_by_less_the_more_often_it_was_asked():
    """The more often a case was asked, the less its estimated noise depends on the other cases.

    One failure in two answers is mostly chance. Forty failures in eighty answers are a property of the case.
    """
    means = []
    for group in ((0, 2), (1, 2), (40, 80)):
        places, weights = compute_case_noise([group], 0.02, 2.0)
        before = (0.0, *weights)
        means.append(
            sum(place * (weight - last) for place, weight, last in zip(places, weights, before, strict=False))
        )
    assert means[0] < 0.02 < means[1] < means[2]
    assert means[2] == pytest.approx(0.46, abs=0.05)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(2, 6)), min_size=1, max_size=6))
@pytest.mark.whole_only
def test_the_likeliest_noise_is_inside_its_interval(groups):
    """For any recorded answers, the estimated noise is within its interval, and a random value of it is valid."""
    found = fit_noise([[(min(failed, asked), asked)] for failed, asked in groups])
    if found is not None:
        assert 0 <= found.low <= found.mean <= found.high <= 0.5
        mean, concentration = found.posterior.sample(Random(1))
        assert 0 <= compute_case_noise([(0, 2)], mean, concentration).sample(Random(2)) <= 0.5


@pytest.mark.parametrize(("mean", "concentration"), [(0.01, 2.0), (0.05, 32.0), (0.05, 0.5)])
def test_the_interval_of_the_noise_holds_the_truth_on_seeded_suites(mean, concentration):
    """On seeded suites, at least 36 of 40 intervals (nominally 95 %) contain the true noise.

    The mean of the estimates differs from the true noise by at most about a third.
    """
    held, found_means = 0, []
    for seed in range(40):
        random = Random(seed)
        first, second = 2 * mean * concentration, (1 - 2 * mean) * concentration
        noises = [random.betavariate(first, second) / 2 for _ in range(100)]
        asked = [[(sum(random.random() < one for _ in range(2)), 2)] for one in noises]
        found = fit_noise(asked)
        assert found is not None
        held += found.low <= mean <= found.high
        found_means.append(found.mean)
    assert held >= 36
    assert sum(found_means) / len(found_means) == pytest.approx(mean, rel=0.34)
