"""The bootstrap of averages: against scipy's, against all resamples of a few ratings, and the same every time."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap

from monitors.stats.agreement import change_interval, mean_interval

RATINGS = st.lists(st.integers(1, 5), min_size=1, max_size=40)


@pytest.mark.parametrize("size", [20, 80, 300])
def test_the_limits_are_those_of_scipy(size):
    random = Random(size)
    before = [random.randint(2, 5) for _ in range(size)]
    now = [max(1, min(5, rating - random.choice((0, 0, 0, 1, 2, -1)))) for rating in before]
    found = change_interval(list(zip(before, now, strict=True)))
    differences = (np.array(now) - np.array(before),)
    expected = bootstrap(
        differences, np.mean, method="percentile", n_resamples=9_999, rng=np.random.default_rng(1)
    ).confidence_interval
    slack = 0.12 * (expected.high - expected.low)  # 2,000 resamples know their own limits to about that
    assert found.low == pytest.approx(expected.low, abs=slack)
    assert found.high == pytest.approx(expected.high, abs=slack)


def test_of_three_ratings_the_limits_are_those_of_all_twenty_seven_resamples():
    means = sorted(sum(drawn) / 3 for drawn in product((1, 4, 5), repeat=3))
    found = mean_interval([1, 4, 5])
    # The outermost resample (1, 1, 1) has probability 1/27 = 3.7 %, more than the 2.5 % left out on its side.
    assert (found.low, found.high) == (means[0], means[-1])


@given(RATINGS, st.randoms())
def test_the_same_ratings_in_any_order_give_the_same_interval(ratings, random):
    mixed = list(ratings)
    random.shuffle(mixed)
    assert mean_interval(ratings) == mean_interval(mixed)


@given(RATINGS)
def test_the_average_lies_in_its_interval(ratings):
    found = mean_interval(ratings)
    assert min(ratings) <= found.low <= found.value <= found.high <= max(ratings)
    assert found.value == pytest.approx(sum(ratings) / len(ratings))


def test_another_seed_draws_anew_and_the_same_one_does_not():
    ratings = [number**1.5 for number in range(60)]
    assert mean_interval(ratings, seed=1) == mean_interval(ratings, seed=1)
    assert mean_interval(ratings, seed=1) != mean_interval(ratings, seed=2)


def test_no_ratings_have_no_average():
    with pytest.raises(ValueError, match="no ratings"):
        mean_interval([])
