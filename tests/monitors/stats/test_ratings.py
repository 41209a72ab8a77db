"""Test average ratings: independent cases have scipy's t interval, and clusters have a wider one.

The intervals contain the true average as often as stated.
"""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, ttest_1samp

from monitors.stats.ratings import (
    MIN_SPREAD,
    Rated,
    RatingMean,
    compute_mean_lower_bound,
    compute_rating_mean,
)

CLUSTERED = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=40)


def mean_of(values, clusters=None, *, least=1, most=5) -> RatingMean:
    named = clusters if clusters is not None else range(len(values))
    rated = [Rated(value, cluster) for value, cluster in zip(values, named, strict=True)]
    return compute_rating_mean(rated, lowest=least, highest=most)


@pytest.mark.parametrize("size", [2, 5, 30, 300])
def test_strangers_have_scipys_t_interval(size):
    random = Random(size)
    values = [random.choice((1, 2, 4, 5)) for _ in range(size - 2)] + [1, 5]
    found = mean_of(values, least=-100, most=100)
    expected = ttest_1samp(values, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_clusters_of_one_size_have_the_t_interval_of_their_averages():
    groups = [[5, 5, 4], [2, 1, 2], [4, 4, 4], [3, 3, 2], [5, 4, 5]]
    values = [value for group in groups for value in group]
    found = mean_of(values, [number // 3 for number in range(15)], least=-100, most=100)
    expected = ttest_1samp([fmean(group) for group in groups], 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.cases, found.clusters) == (15, 5)


def test_clusters_of_other_sizes_by_hand():
    """For clusters of different sizes, the standard error equals the one that was calculated by hand.

    The average is 3 over both clusters, 2 without the first cluster, and 5 without the second.
    """
    found = mean_of([5, 5, 2, 2, 2, 2], "aabbbb")
    assert found.value == 3
    assert found.error == pytest.approx((0.5 * ((2 - 3) ** 2 + (5 - 3) ** 2)) ** 0.5)


@given(CLUSTERED)
def test_clusters_never_narrow_an_interval(ratings):
    values, clusters = zip(*ratings, strict=True)
    apart, together = mean_of(values), mean_of(values, clusters)
    assert together.low <= apart.low <= apart.value == together.value <= apart.high <= together.high
    assert 1 <= together.low <= together.high <= 5


@given(CLUSTERED, st.randoms())
def test_neither_order_nor_names_of_clusters_matter(ratings, random):
    mixed = [(value, f"other {cluster}") for value, cluster in ratings]
    random.shuffle(mixed)
    one, other = (mean_of(*zip(*each, strict=True)) for each in (ratings, mixed))
    assert one == pytest.approx(other)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6), st.floats(0.01, 100)), min_size=1, max_size=30))
def test_only_the_ratio_of_weights_counts(ratings):
    one, other = (
        compute_rating_mean(
            [Rated(value, cluster, factor * weight) for value, cluster, weight in ratings], lowest=1, highest=5
        )
        for factor in (1, 1_000)
    )
    assert one == pytest.approx(other)


@given(st.integers(1, 5), st.integers(2, 200))
def test_ratings_that_are_all_the_same_prove_no_certainty(value, count):
    found = mean_of([value] * count)
    assert found.error == pytest.approx(MIN_SPREAD / count**0.5)
    assert found.low < found.high


def test_a_single_rating_shows_nothing_and_none_has_no_average():
    found = mean_of([4])
    assert (found.low, found.high) == (1, 5)
    with pytest.raises(ValueError, match="at least one rating"):
        mean_of([])


def repositories(random: Random, sizes: list[int], *, alike: float) -> tuple[list[int], list[int]]:
    """Return random ratings around 3, and the repository of each rating.

    ``sizes`` are the numbers of ratings per repository. The ratings of a repository share a random deviation with
    the spread ``alike``.
    """
    values, clusters = [], []
    for cluster, size in enumerate(sizes):
        shift = random.gauss(0, alike)
        for _ in range(size):
            values.append(max(1, min(5, round(3 + shift + random.gauss(0, 0.8)))))
            clusters.append(cluster)
    return values, clusters


@pytest.mark.parametrize(
    ("sizes", "least"),
    [([5] * 6, 0.93), ([4] * 12, 0.93), ([1] * 30, 0.93), ([1, 2, 3, 12] * 3, 0.90), ([30, *[2] * 9], 0.85)],
)
def test_intervals_cover_the_truth_as_often_as_they_say(sizes, least):
    """In 600 simulated suites, the intervals contain the true average as often as stated.

    The ratings come from seeded repositories. A suite in which one repository has most of the issues is the hardest
    case.
    """
    random = Random(20)
    suites = [repositories(random, sizes, alike=0.6) for _ in range(600)]
    clustered = [mean_of(values, clusters) for values, clusters in suites]
    assert fmean(found.low <= 3 <= found.high for found in clustered) >= least
    if max(sizes) > 1:
        apart = [mean_of(values) for values, _ in suites]
        assert fmean(found.low <= 3 <= found.high for found in apart) < least - 0.05, (
            "clusters are what was missing"
        )


@pytest.mark.parametrize(("mean", "count", "bound"), [(5, 20, 4.44), (4.8, 20, 4.14), (4, 20, 3.18), (1, 20, 1)])
def test_the_bound_is_that_of_ratings_which_are_all_1_or_5(mean, count, bound):
    found = compute_mean_lower_bound(mean, count, lowest=1, highest=5)
    fives = (mean - 1) / 4 * count
    assert found == pytest.approx(bound, abs=0.005)
    assert found == pytest.approx(1 + 4 * beta.ppf(0.05, fives, count - fives + 1) if fives else 1)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_the_bound_is_above_the_truth_at_most_once_in_twenty(count):
    """The lower bound of an average rating exceeds the true average with a probability of at most 5 %.

    The probability is computed over every outcome, for 400 seeded distributions of ratings from 1 to 5.
    """
    random = Random(count)
    bounds = [
        compute_mean_lower_bound(1 + total / count, count, lowest=1, highest=5) for total in range(4 * count + 1)
    ]
    for _ in range(400):
        weights = [random.random() ** random.choice((1, 3, 8)) * random.choice((0, 1, 1)) for _ in range(5)]
        odds = [weight / sum(weights) for weight in weights] if any(weights) else [0, 0, 0, 0, 1]
        totals = [1.0]
        for _ in range(count):
            totals = [
                sum(odds[step] * totals[total - step] for step in range(5) if 0 <= total - step < len(totals))
                for total in range(len(totals) + 4)
            ]
        truth = 1 + sum(step * odd for step, odd in enumerate(odds))
        assert sum(odd for odd, bound in zip(totals, bounds, strict=True) if bound > truth + 1e-9) <= 0.05
