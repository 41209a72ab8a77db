"""Test intervals and percentiles against published examples and mathematical laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from monitors.stats.intervals import compute_median_interval, compute_percentile, compute_wilson_interval


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_newcombe(passed, total, low, high):
    assert compute_wilson_interval(passed, total) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_nothing_counted_says_nothing():
    assert compute_wilson_interval(0, 0) == (0.0, 1.0)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_share_lies_in_its_interval(counts):
    passed, total = counts
    low, high = compute_wilson_interval(passed, total)
    assert 0 <= low <= passed / total <= high <= 1


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(counts):
    passed, total = counts
    expected = binomtest(passed, total).proportion_ci(method="wilson")
    assert compute_wilson_interval(passed, total) == (
        pytest.approx(expected.low, abs=1e-9),
        pytest.approx(expected.high, abs=1e-9),
    )


def test_more_passed_than_counted_is_refused():
    with pytest.raises(ValueError, match="5 of 4"):
        compute_wilson_interval(5, 4)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_lies_among_the_values(values, share):
    assert min(values) <= compute_percentile(values, share) <= max(values)


def test_percentiles_of_a_known_row():
    assert compute_percentile([10, 20, 30, 40], 0.5) == 25
    assert compute_percentile([10], 0.95) == 10


def test_no_values_have_no_percentile():
    with pytest.raises(ValueError, match="at least one value"):
        compute_percentile([], 0.5)


@pytest.mark.parametrize(
    ("values", "low", "high"), [([7.0], 7, 7), (range(1, 11), 2, 9), (range(1, 101), 40, 61), ([5, 5, 5, 5], 5, 5)]
)
def test_the_medians_interval_is_between_two_of_the_values(values, low, high):
    """The limits of a median's interval are the values at the published ranks.

    For 10 values the ranks are 2 and 9, for 100 values 40 and 61.
    """
    assert compute_median_interval([*values]) == (low, high)


def test_no_values_have_no_median():
    """The median of an empty list is an error, not zero."""
    with pytest.raises(ValueError, match="at least one value"):
        compute_median_interval([])
