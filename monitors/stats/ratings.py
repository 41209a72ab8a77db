"""Compute averages of ratings from 1 to 5: their interval, and their general meaning.

Reports on issues of one repository tend to be good or bad together, so the precision of an average depends on its
clusters. The standard error is that of the delete-one-cluster jackknife, and its interval has Student's
quantile with one degree of freedom less than the number of clusters: CV3 of J. G. MacKinnon, M. O. Nielsen, M. D.
Webb, "Cluster-robust inference: a guide to empirical practice", Journal of Econometrics 232 (2023). If every case
is a separate cluster, that is the ordinary t interval; clusters of equal size give the t interval of their
averages. Three rules keep the error from being too small. It is at least the error of as many unrelated cases. If
all cases are of one cluster, other clusters are unknown: the cases count one by one, and the figure is about that
cluster. Ratings that are all the same have at least the spread of `MIN_SPREAD`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from math import fsum, inf, sqrt
from typing import Final, NamedTuple

from monitors.stats.intervals import compute_binomial_limits, compute_t_quantile
from monitors.stats.paired import ALPHA

MIN_SPREAD: Final = 0.5
"""Ratings are whole numbers: a report with a value between two of them gets either. This effect alone causes a
standard deviation of at most one half, so equal ratings may hide as much.
"""


class Rated(NamedTuple):
    """A rating, or a difference of two, with its cluster and weight (above 0)."""

    value: float
    cluster: Hashable
    weight: float = 1.0


class RatingMean(NamedTuple):
    """An average with its interval.

    ``error`` is its standard error; it is infinite for a single rating. ``clusters`` counts its independent
    units:
    the cases themselves if all are of one cluster.
    """

    value: float
    low: float
    high: float
    cases: int
    clusters: int
    error: float


def compute_rating_mean(
    rated: Sequence[Rated], *, lowest: float, highest: float, confidence: float = 1 - ALPHA
) -> RatingMean:
    """Return the weighted average of ``rated`` with its interval, both within ``lowest`` to ``highest``.

    Raises ``ValueError`` on an empty sequence.
    """
    if not rated:
        raise ValueError("no ratings to average")
    value = fsum(rating.weight * rating.value for rating in rated) / fsum(rating.weight for rating in rated)
    clusters = len({rating.cluster for rating in rated})
    units = clusters if clusters > 1 else len(rated)
    error = _compute_standard_error(rated)
    reach = compute_t_quantile(confidence, units - 1) * error if units > 1 else inf
    return RatingMean(value, max(lowest, value - reach), min(highest, value + reach), len(rated), units, error)


def _compute_standard_error(rated: Sequence[Rated]) -> float:
    """Return the standard error: by clusters, by cases, or of the minimum spread, whichever is largest."""
    if len(rated) == 1:
        return inf
    weights = [rating.weight for rating in rated]
    effective = fsum(weights) ** 2 / fsum(weight * weight for weight in weights)
    by_case = _compute_jackknife_error((rating.weight, rating.weight * rating.value) for rating in rated)
    return max(by_case, _compute_jackknife_error(_sum_by_cluster(rated)), MIN_SPREAD / sqrt(effective))


def _sum_by_cluster(rated: Iterable[Rated]) -> Iterable[tuple[float, float]]:
    """Return each cluster's weight and weighted sum."""
    sums: dict[Hashable, list[Rated]] = defaultdict(list)
    for rating in rated:
        sums[rating.cluster].append(rating)
    return [
        (fsum(rating.weight for rating in ratings), fsum(rating.weight * rating.value for rating in ratings))
        for ratings in sums.values()
    ]


def _compute_jackknife_error(units: Iterable[tuple[float, float]]) -> float:
    """Return the jackknife error of a weighted average, leaving out one unit at a time; 0 for a single unit."""
    all_units = list(units)
    if len(all_units) == 1:
        return 0.0
    weight, total = fsum(unit[0] for unit in all_units), fsum(unit[1] for unit in all_units)
    value = total / weight
    squares = fsum(((total - part) / (weight - share) - value) ** 2 for share, part in all_units)
    return sqrt((len(all_units) - 1) / len(all_units) * squares)


def compute_mean_bound(
    mean: float, count: int, *, lowest: float, highest: float, confidence: float = 0.95
) -> float:
    """Return the value that the mean of all such values reaches with ``confidence``, one-sided.

    Among all values between ``lowest`` and ``highest`` with this mean, those at the two ends are spread most. The
    mean is then a share, and the bound is Clopper and Pearson's, exact for ``count`` unrelated values.
    """
    spread = highest - lowest
    share, _ = compute_binomial_limits(
        min(1.0, (mean - lowest) / spread) * count, count, confidence=2 * confidence - 1
    )
    return lowest + spread * share
