"""Compute averages of ratings from 1 to 5. Their intervals also apply to similar cases that were not rated.

Reports on issues of one repository tend to be good or bad together: they form a cluster. Therefore, the precision
of an average depends on the number of clusters. The standard error comes from the jackknife: the average is
computed repeatedly, each time without one of the clusters, and the spread of these averages gives the error. The
interval uses Student's quantile with one degree of freedom less than the number of clusters: CV3 of J. G.
MacKinnon, M. O. Nielsen, M. D. Webb, "Cluster-robust inference: a guide to empirical practice", Journal of
Econometrics 232 (2023). If every case is a separate cluster, the result is the ordinary t interval.

Three rules prevent an error that is too small:

- The error is at least the error for the same number of unrelated cases.
- If all cases belong to one cluster, nothing is known about other clusters. Each case then counts separately, and
  the average applies only to this cluster.
- The standard deviation is at least `MIN_SPREAD`, even if all ratings are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from math import fsum, inf, sqrt
from typing import Final, NamedTuple

from monitors.stats.intervals import compute_binomial_limits, compute_t_quantile
from monitors.stats.paired import ALPHA

MIN_SPREAD: Final = 0.5
"""Minimum standard deviation of ratings.

Ratings are whole numbers: a report that deserves 3.5 gets 3 or 4. This rounding alone causes a standard deviation
of up to one half. If all ratings happen to be equal, their own standard deviation is 0 and does not include this
rounding.
"""


class Rated(NamedTuple):
    """A rating, or the difference of two ratings, with the cluster of its case and its weight (above 0)."""

    value: float
    cluster: Hashable
    weight: float = 1.0


class RatingMean(NamedTuple):
    """An average rating and its interval.

    ``error`` is the standard error of the average. It is infinite for a single rating. ``clusters`` is the number
    of clusters or, if all cases belong to one cluster, the number of cases.
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
    """Return the weighted average of ``rated`` with its interval.

    ``lowest`` and ``highest`` are the lowest and the highest possible value. The interval stays within this range.
    Raises ``ValueError`` if ``rated`` is empty.
    """
    if not rated:
        raise ValueError("an average needs at least one rating")
    value = fsum(rating.weight * rating.value for rating in rated) / fsum(rating.weight for rating in rated)
    clusters = len({rating.cluster for rating in rated})
    units = clusters if clusters > 1 else len(rated)
    error = _compute_largest_standard_error(rated)
    reach = compute_t_quantile(confidence, units - 1) * error if units > 1 else inf
    return RatingMean(value, max(lowest, value - reach), min(highest, value + reach), len(rated), units, error)


def _compute_largest_standard_error(rated: Sequence[Rated]) -> float:
    """Return the largest of three standard errors of the weighted average of ``rated``.

    The first error is computed from the clusters, the second from the single cases, and the third from the
    minimum spread `MIN_SPREAD`.
    """
    if len(rated) == 1:
        return inf
    weights = [rating.weight for rating in rated]
    effective = fsum(weights) ** 2 / fsum(weight * weight for weight in weights)
    by_case = _compute_jackknife_error((rating.weight, rating.weight * rating.value) for rating in rated)
    return max(by_case, _compute_jackknife_error(_sum_by_cluster(rated)), MIN_SPREAD / sqrt(effective))


def _sum_by_cluster(rated: Iterable[Rated]) -> Iterable[tuple[float, float]]:
    """Return a pair for each cluster in ``rated``: its total weight, and the weighted sum of its ratings."""
    sums: dict[Hashable, list[Rated]] = defaultdict(list)
    for rating in rated:
        sums[rating.cluster].append(rating)
    return [
        (fsum(rating.weight for rating in ratings), fsum(rating.weight * rating.value for rating in ratings))
        for ratings in sums.values()
    ]


def _compute_jackknife_error(units: Iterable[tuple[float, float]]) -> float:
    """Return the standard error of a weighted average, computed by leaving out one unit at a time.

    A unit is a cluster or a single case. ``units`` contains a pair for each unit: its weight and its weighted
    sum. The result is 0 for a single unit.
    """
    all_units = list(units)
    if len(all_units) == 1:
        return 0.0
    weight, total = fsum(unit[0] for unit in all_units), fsum(unit[1] for unit in all_units)
    value = total / weight
    squares = fsum(((total - part) / (weight - share) - value) ** 2 for share, part in all_units)
    return sqrt((len(all_units) - 1) / len(all_units) * squares)


def compute_mean_lower_bound(
    mean: float, count: int, *, lowest: float, highest: float, confidence: float = 0.95
) -> float:
    """Return a lower limit for the true mean. With this ``confidence``, the true mean is at least the limit.

    ``mean`` is the average of ``count`` unrelated values from ``lowest`` to ``highest``. The computation assumes
    the largest possible spread: every value is either ``lowest`` or ``highest``. The mean then corresponds to the
    share of highest values, and the limit is Clopper and Pearson's exact lower limit for this share.
    """
    spread = highest - lowest
    share, _ = compute_binomial_limits(
        min(1.0, (mean - lowest) / spread) * count, count, confidence=2 * confidence - 1
    )
    return lowest + spread * share
