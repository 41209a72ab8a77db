"""Compute confidence intervals for shares (plain, exact, clustered) and percentiles.

The share in a sample is only an estimate of the true share. The interval contains the true share with the stated
confidence.

Exact limits are valid even for very small shares and very small samples: C. J. Clopper, E. S. Pearson, "The use of
confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26 (1934). A share is inside the
limits if results at least as extreme as the observed result have, in each direction, more than half of the error
probability. If the number of all cases is known, the hypergeometric distribution is used. The interval then has a
width of 0 if all cases were sampled. The formulas are implemented here because scipy takes seconds to load. The
tests compare the results with the results of scipy.

Related cases, such as cases about one policy, form a cluster and tend to fail together. Therefore, ten related
cases give less information than ten unrelated cases. The design effect states how much less: it is the variance of
the share over clusters, divided by the variance for the same number of unrelated cases. The effective number of
cases is the number of cases divided by the design effect (J. N. K. Rao, A. J. Scott, "A simple method for the
analysis of clustered binary data", Biometrics 48, 1992). Two rules correct the effective number:

- With few clusters, their spread is uncertain. The effective number is reduced by the squared ratio of normal to t
  quantiles (E. L. Korn, B. I. Graubard, Survey Methodology 24, 1998). It never exceeds the real number.
- If all cases have the same result, their correlation is unknown, and the number is not reduced (J. D. Parker and
  others, "National Center for Health Statistics data presentation standards for proportions", Vital and Health
  Statistics 2 (175), 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from math import exp, floor, fsum, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple


def compute_wilson_interval(passed: float, total: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the limits of Wilson's interval for the true share, if ``passed`` of ``total`` cases passed.

    The limits are from 0 to 1. The result is (0, 1) if ``total`` is 0. E. B. Wilson, "Probable inference", JASA 22
    (1927).
    """
    if not 0 <= passed <= total:
        raise ValueError(f"passed must be between 0 and total, got {passed} of {total}")
    if total == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, weight = passed / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    spread = z * sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    low = 0.0 if passed == 0 else max(0.0, middle - spread)
    high = 1.0 if passed == total else min(1.0, middle + spread)
    return low, high


def compute_percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` (0 to 1) of ``values`` lies: 0.5 is the median (Hyndman-Fan type 7).

    Raises ``ValueError`` on an empty sequence.
    """
    if not values:
        raise ValueError("a percentile needs at least one value")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def compute_median_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of the median. Both limits are elements of ``values``.

    The number of values below the true median has the same distribution as the number of heads in coin tosses. A
    normal approximation of this distribution gives the ranks of both limits: W. J. Conover, Practical Nonparametric
    Statistics, 3rd edition (1999), section 3.2. Raises `ValueError` if ``values`` is empty.
    """
    if not values:
        raise ValueError("a median needs at least one value")
    ranked = sorted(values)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(len(ranked)) / 2
    rank = max(0, floor((len(ranked) + 1) / 2 - half) - 1)
    return ranked[rank], ranked[-1 - rank]


_MAX_ITERATIONS = 200
_RELATIVE_TOLERANCE = 1e-13
"""Newton's method ends when a step changes the quantile by less than this share of its value."""
_FRACTION_TOLERANCE = 1e-14
_TINY = 1e-300
_MAX_STEPS = 10_000
_TIE_TOLERANCE = 1e-12
"""Probabilities count as equal if they differ by at most this, because rounding causes such differences."""
_CACHE_SIZE = 1 << 16


@lru_cache(_CACHE_SIZE)
def compute_binomial_limits(failures: float, graded: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's exact limits for the true share of failures.

    ``failures`` of ``graded`` cases failed. The result is (0, 1) if ``graded`` is 0. The cases are a sample from an
    unlimited population. The counts may be fractions, such as an effective sample size.
    """
    _require_failures_within_total(failures, graded)
    if graded == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if failures == 0 else compute_beta_quantile(tail, failures, graded - failures + 1)
    high = 1.0 if failures == graded else compute_beta_quantile(1 - tail, failures + 1, graded - failures)
    return low, high


@lru_cache(_CACHE_SIZE)
def compute_finite_population_limits(
    failures: int, graded: int, population: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Return exact limits for the share of failures among the ``population`` cases.

    ``graded`` of these cases were sampled without replacement, and ``failures`` of the graded cases failed. If
    no case was graded, the result is (0, 1). If all cases were graded, both limits are the observed share.
    """
    _require_failures_within_total(failures, graded)
    if graded > population:
        raise ValueError(f"graded must not be larger than population, got {graded} of {population}")
    if graded == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2 + _TIE_TOLERANCE
    lowest, highest = failures, population - (graded - failures)
    low = _find_smallest_true_number(
        lowest,
        highest,
        lambda all_failures: _compute_probability_of_at_least(failures, graded, all_failures, population) > tail,
    )
    beyond = _find_smallest_true_number(
        low,
        highest + 1,
        lambda all_failures: _compute_probability_of_at_most(failures, graded, all_failures, population) <= tail,
    )
    return low / population, max(low, beyond - 1) / population


def compute_beta_cdf(x: float, first: float, second: float) -> float:
    """Return the probability that a Beta(``first``, ``second``) variable is below ``x``. The error is about 1e-12.

    The method is the continued fraction of the incomplete beta function (NIST Digital Library of Mathematical
    Functions, 8.17.22), evaluated as in W. J. Lentz, Applied Optics 15 (1976). The fraction converges fast below
    the mean. Above the mean, the function therefore computes 1 minus the opposite probability.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (first + 1) / (first + second + 2):
        return 1 - compute_beta_cdf(1 - x, second, first)
    scale = lgamma(first + second) - lgamma(first) - lgamma(second)
    front = exp(scale + first * log(x) + second * log1p(-x)) / first
    return front / _evaluate_continued_fraction(x, first, second)


def _evaluate_continued_fraction(x: float, first: float, second: float) -> float:
    value, above, below = 1.0, 1.0, 0.0
    for step in range(1, _MAX_STEPS):
        coefficient = _compute_coefficient(step, x, first, second)
        below = 1 / _avoid_zero(1 + coefficient * below)
        above = _avoid_zero(1 + coefficient / above)
        change = above * below
        value *= change
        if abs(change - 1) < _FRACTION_TOLERANCE:
            break
    return value


def _compute_coefficient(step: int, x: float, first: float, second: float) -> float:
    half = step // 2
    if step % 2:
        return -(first + half) * (first + second + half) * x / ((first + 2 * half) * (first + 2 * half + 1))
    return half * (second - half) * x / ((first + 2 * half - 1) * (first + 2 * half))


def _avoid_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


@lru_cache(_CACHE_SIZE)
def compute_beta_quantile(share: float, first: float, second: float) -> float:
    """Return the value below which a Beta(``first``, ``second``) variable lies with probability ``share``.

    Uses Newton's method. If a step would leave the interval that contains the result, this interval is halved
    instead.
    """
    low, high, x = 0.0, 1.0, first / (first + second)
    if x in {0.0, 1.0}:  # nearly all of the probability is at this value, in a range that a float cannot resolve
        return x
    scale = lgamma(first + second) - lgamma(first) - lgamma(second)
    for _ in range(_MAX_ITERATIONS):
        above = compute_beta_cdf(x, first, second) - share
        low, high = (low, x) if above > 0 else (x, high)
        density = exp(scale + (first - 1) * log(x) + (second - 1) * log1p(-x))
        newton = x - above / density if density > _TINY else low
        next_x = newton if low < newton < high else (low + high) / 2
        if abs(next_x - x) <= _RELATIVE_TOLERANCE * x or next_x in {0.0, 1.0}:
            return next_x
        x = next_x
    return x


def _compute_probability_of_at_most(failures: int, graded: int, all_failures: int, population: int) -> float:
    """Return the probability that at most ``failures`` of ``graded`` sampled cases failed.

    ``all_failures`` of the ``population`` cases failed.
    """
    lowest, highest = max(0, graded - (population - all_failures)), min(graded, all_failures)
    if failures >= highest:
        return 1.0
    if failures - lowest <= highest - failures:
        return fsum(
            _compute_probability_of_exactly(count, graded, all_failures, population)
            for count in range(lowest, failures + 1)
        )
    return 1 - fsum(
        _compute_probability_of_exactly(count, graded, all_failures, population)
        for count in range(failures + 1, highest + 1)
    )


def _compute_probability_of_at_least(failures: int, graded: int, all_failures: int, population: int) -> float:
    return 1 - _compute_probability_of_at_most(failures - 1, graded, all_failures, population) if failures else 1.0


def _compute_probability_of_exactly(failures: int, graded: int, all_failures: int, population: int) -> float:
    right = population - all_failures
    ways = (
        _compute_log_combinations(all_failures, failures)
        + _compute_log_combinations(right, graded - failures)
        - _compute_log_combinations(population, graded)
    )
    return exp(ways)


def _compute_log_combinations(among: int, chosen: int) -> float:
    return lgamma(among + 1) - lgamma(chosen + 1) - lgamma(among - chosen + 1)


def _find_smallest_true_number(low: int, high: int, predicate: Callable[[int], bool]) -> int:
    """Return the smallest number from ``low`` to ``high`` for which the predicate is true.

    Returns ``high`` if there is no such number. If ``predicate`` is true for a number, it must also be true for all
    larger numbers.
    """
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if predicate(middle) else (middle + 1, high)
    return low


def _require_failures_within_total(failures: float, graded: float) -> None:
    if not 0 <= failures <= graded:
        raise ValueError(f"failures must be between 0 and the number of graded cases, got {failures} of {graded}")


class ClusterCount(NamedTuple):
    """The counts of one cluster: ``passed`` of its ``total`` cases passed."""

    passed: int
    total: int


class ClusteredShare(NamedTuple):
    """A share and its interval.

    ``effective`` is the number of unrelated cases that would give the same precision.
    """

    passed: int
    total: int
    clusters: int
    effective: float
    low: float
    high: float


def count_by_cluster(cases: Iterable[tuple[Hashable, bool]]) -> tuple[ClusterCount, ...]:
    """Count cases by cluster.

    ``cases`` are pairs (cluster, passed). A case without a cluster must have a unique name as its cluster.
    """
    counts: dict[Hashable, list[int]] = {}
    for cluster, passed in cases:
        cluster_counts = counts.setdefault(cluster, [0, 0])
        cluster_counts[0] += passed
        cluster_counts[1] += 1
    return tuple(ClusterCount(passed, total) for passed, total in counts.values())


def compute_design_effect(clusters: Iterable[ClusterCount]) -> float | None:
    """Return the variance of the share of passed cases, divided by its variance if all cases were unrelated.

    A result of 3 means that three related cases give as much information as one unrelated case. Returns ``None``
    with fewer than two clusters, or if all cases have the same result.
    """
    counts = tuple(clusters)
    passed, total = sum(cluster.passed for cluster in counts), sum(cluster.total for cluster in counts)
    number = len(counts)
    if number < 2 or passed in {0, total}:  # noqa: PLR2004 - one cluster has no spread
        return None
    share = passed / total
    spread = sum((cluster.passed - share * cluster.total) ** 2 for cluster in counts)
    return number / (number - 1) * spread / total / (share * (1 - share))


def compute_clustered_share(clusters: Iterable[ClusterCount], *, confidence: float = 0.95) -> ClusteredShare:
    """Return the share of cases that passed, with Wilson's interval for the effective number of cases.

    If there are no cases, the interval is (0, 1).
    """
    counts = tuple(clusters)
    passed, total = sum(cluster.passed for cluster in counts), sum(cluster.total for cluster in counts)
    effective = _compute_effective_size(counts, passed, total, confidence)
    low, high = compute_wilson_interval(
        passed / total * effective if total else 0, effective, confidence=confidence
    )
    return ClusteredShare(passed, total, len(counts), effective, low, high)


def _compute_effective_size(counts: tuple[ClusterCount, ...], passed: int, total: int, confidence: float) -> float:
    effect = compute_design_effect(counts)
    if all(cluster.total == 1 for cluster in counts) or passed in {0, total}:
        return float(total)
    if effect is None:
        return 1.0  # if there is only one cluster, all its cases count as one observation
    shrinkage = NormalDist().inv_cdf((1 + confidence) / 2) / compute_t_quantile(confidence, len(counts) - 1)
    return min(float(total), total / effect * shrinkage**2) if effect else float(total)


@lru_cache(1024)
def compute_t_quantile(confidence: float, degrees: int) -> float:
    """Return the two-sided quantile of Student's t distribution with ``degrees`` of freedom.

    The interval of an average extends by this number of standard errors to each side. The quantile is computed from
    ``degrees / (degrees + t^2)``, which has a Beta distribution.
    """
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, got {degrees}")
    share = compute_beta_quantile(1 - confidence, degrees / 2, 0.5)
    return sqrt(degrees * (1 - share) / share)
