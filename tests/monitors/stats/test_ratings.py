"""Averages of ratings: scipy's t interval where cases are strangers, wider where they are not, and true as often as said."""

from __future__ import annotations

from random import Random
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_1samp

from monitors.stats.ratings import (
    MIN_SPREAD,
    Rated,
    RatingMean,
    compute_min_detectable_shift,
    compute_needed_ratings,
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
    """Without the first cluster the average is 2, without the second 4: two of them, each one from the average."""
    found = mean_of([5, 5, 2, 2, 2, 2], "aabbbb")
    assert found.value == 3
    assert found.error == pytest.approx((0.5 * ((2 - 3) ** 2 + (5 - 3) ** 2)) ** 0.5)


@given(CLUSTERED)
def test_clusters_never_narrow_an_interval(ratings):
    values, clusters = zip(*ratings, strict=True)
    apart, together = mean_of(values), mean_of(values, clusters)
    assert together.low <= apart.low <= apart.value == together.value <= apart.high <= together.high
    assert 1 <= together.low <= together.high <= 5
    assert compute_min_detectable_shift(together) >= compute_min_detectable_shift(apart)


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
    assert (found.low, found.high, compute_min_detectable_shift(found), compute_needed_ratings(found, 0.3)) == (
        1,
        5,
        float("inf"),
        None,
    )
    with pytest.raises(ValueError, match="no ratings"):
        mean_of([])


@pytest.mark.parametrize("clusters", [None, [number % 5 for number in range(20)]])
def test_as_many_as_are_needed_show_the_drop_and_fewer_do_not(clusters):
    """The same ratings again and again, in new clusters each time."""
    values = [3, 4, 5, 5] * 5
    found = mean_of(values, clusters)
    needed = compute_needed_ratings(found, 0.3)
    per_cluster = found.cases / found.clusters
    for units, shows in ((round(needed / per_cluster), True), (round(needed / per_cluster) - 1, False)):
        error = found.error * (found.clusters / units) ** 0.5
        quantiles = t.ppf(0.975, units - 1) + t.ppf(0.8, units - 1)
        assert bool(quantiles * error <= 0.3) is shows


@given(CLUSTERED, st.floats(0.05, 3))
def test_more_ratings_are_needed_exactly_where_these_do_not_show_the_drop(ratings, drop):
    values, clusters = zip(*ratings, strict=True)
    found = mean_of(values, clusters)
    needed = compute_needed_ratings(found, drop)
    if needed is not None:
        assert (needed <= found.cases) == (compute_min_detectable_shift(found) <= drop)


def test_no_suite_is_as_large_as_a_tiny_drop_needs():
    assert compute_needed_ratings(mean_of([1, 5] * 20), 0.0001) is None
    assert compute_needed_ratings(mean_of([1, 5] * 20), 0) is None


def repositories(random: Random, sizes: list[int], *, alike: float) -> tuple[list[int], list[int]]:
    """Rounded ratings around 3, those of one repository shifted together by a deviation of ``alike``."""
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
    """In 600 suites of seeded repositories; one repository with most of the issues is the hardest case."""
    random = Random(20)
    suites = [repositories(random, sizes, alike=0.6) for _ in range(600)]
    clustered = [mean_of(values, clusters) for values, clusters in suites]
    assert fmean(found.low <= 3 <= found.high for found in clustered) >= least
    if max(sizes) > 1:
        apart = [mean_of(values) for values, _ in suites]
        assert fmean(found.low <= 3 <= found.high for found in apart) < least - 0.05, (
            "clusters are what was missing"
        )


def test_a_drop_that_is_called_visible_is_found_four_times_in_five():
    """Of 600 comparisons of 40 reports in 10 repositories that all fell by as much as is called visible there."""
    random = Random(21)

    def moved(drop: float) -> RatingMean:
        shifts = [random.gauss(-drop, 0.4) for _ in range(10)]
        values = [random.gauss(shifts[number % 10], 0.8) for number in range(40)]
        return mean_of(values, [number % 10 for number in range(40)], least=-9, most=9)

    visible = median(compute_min_detectable_shift(moved(0)) for _ in range(600))
    assert fmean(moved(visible).high < 0 for _ in range(600)) == pytest.approx(0.8, abs=0.06)
    assert fmean(moved(0).high < 0 for _ in range(600)) == pytest.approx(0.025, abs=0.02)
