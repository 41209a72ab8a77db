"""Test exact limits: they equal scipy's, and cover every population of a given size.

If all items were graded, the interval has no width.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, hypergeom

from monitors.stats.intervals import compute_beta_cdf, compute_binomial_limits, compute_finite_population_limits


@given(st.integers(1, 400).flatmap(lambda graded: st.tuples(st.integers(0, graded), st.just(graded))))
def test_binomial_limits_agree_with_scipy(counts):
    failures, graded = counts
    ours, theirs = (
        compute_binomial_limits(failures, graded),
        binomtest(failures, graded).proportion_ci(method="exact"),
    )
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.floats(0, 1), st.floats(0.05, 500), st.floats(0.05, 500))
def test_the_beta_distribution_agrees_with_scipy(place, first, second):
    assert compute_beta_cdf(place, first, second) == pytest.approx(float(beta.cdf(place, first, second)), abs=1e-9)


def test_limits_of_fractions_lie_between_those_of_whole_counts():
    """The limits for an effective sample size such as 10.5 lie between those for 10 and for 11."""
    highs = [compute_binomial_limits(0.0, graded)[1] for graded in (10, 10.5, 11)]
    assert highs == sorted(highs, reverse=True)
    assert all(one > other for one, other in pairwise(highs))


@st.composite
def finite(draw):
    population = draw(st.integers(1, 60))
    graded = draw(st.integers(1, population))
    return draw(st.integers(0, graded)), graded, population


@given(finite())
def test_finite_limits_are_the_numbers_that_neither_tail_rules_out(case):
    """Limits for a finite population include every number of failures that neither tail rules out.

    The test checks every number of failures with scipy's hypergeometric distribution.
    """
    failures, graded, population = case
    possible = [
        number
        for number in range(failures, population - graded + failures + 1)
        if hypergeom.cdf(failures, population, number, graded) > 0.025 + 1e-12
        and hypergeom.sf(failures - 1, population, number, graded) > 0.025 + 1e-12
    ]
    assert compute_finite_population_limits(failures, graded, population) == (
        possible[0] / population,
        possible[-1] / population,
    )


@pytest.mark.parametrize(("population", "graded"), [(12, 3), (30, 10), (41, 40), (200, 10)])
def test_every_number_of_failures_is_covered_as_often_as_was_said(population, graded):
    """For every number of failures in a population, the limits contain it with a probability of at least 0.95.

    The probability is computed exactly over all samples, without simulation.
    """
    for failures in range(population + 1):
        covered = sum(
            float(hypergeom.pmf(seen, population, failures, graded))
            for seen in range(max(0, graded - population + failures), min(graded, failures) + 1)
            if compute_finite_population_limits(seen, graded, population)[0]
            <= failures / population
            <= compute_finite_population_limits(seen, graded, population)[1]
        )
        assert covered >= 0.95 - 1e-9, failures


@given(st.integers(1, 300).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))))
def test_a_full_census_has_an_exact_rate(counts):
    failures, population = counts
    assert compute_finite_population_limits(failures, population, population) == (
        failures / population,
        failures / population,
    )


def test_a_finite_population_narrows_the_limits():
    endless, large, small = (
        compute_binomial_limits(0, 10)[1],
        compute_finite_population_limits(0, 10, 2_000)[1],
        compute_finite_population_limits(0, 10, 20)[1],
    )
    assert endless == pytest.approx(0.3085, abs=0.0001)  # 1 - 0.025 ** 0.1
    assert small < large <= endless


def test_without_grades_the_interval_is_everything():
    assert compute_binomial_limits(0, 0) == compute_finite_population_limits(0, 0, 7) == (0.0, 1.0)


@pytest.mark.parametrize(("failures", "graded", "population"), [(2, 1, 5), (-1, 3, 5), (0, 6, 5)])
def test_impossible_counts_are_refused(failures, graded, population):
    with pytest.raises(ValueError, match=r"must be between|must not be larger than population"):
        compute_finite_population_limits(failures, graded, population)
