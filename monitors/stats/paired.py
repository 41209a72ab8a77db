"""Compare two runs over the same cases: test for a change, and compute the smallest detectable change. Pure.

Test: Q. McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
Psychometrika 12 (1947), in its exact form: without a change, a case with two different results is broken or fixed
with probability one half each. Cases that share a cluster (a policy) may break together, so each cluster counts as
a whole: the test uses the exact distribution of the sum of differences if a fair coin sets the sign of each cluster
(R. A. Fisher, The Design of Experiments, 1935, section 21). If every cluster differs by one case, this is McNemar's
test. The difference of two shares over the same questions has a separate interval (`compute_paired_difference`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import ceil, exp, lgamma, log, log2, sqrt
from typing import NamedTuple

from monitors.stats.intervals import compute_beta_cdf, compute_beta_quantile, compute_wilson_interval

ALPHA = 0.05
"""Two-sided significance level. An unchanged application is reported as worse at most once in 40 comparisons."""

POWER = 0.8
"""The probability that a detectable change is detected: 4 times in 5, which is Cohen's convention (1988)."""

_NEGLIGIBLE_WEIGHT = 1e-18
"""Outcomes with a smaller probability are dropped: they do not change the p-value visibly."""


def compute_mcnemar_p_value(broken: int, fixed: int) -> float:
    """Return the exact two-sided p-value of ``broken`` cases (right to wrong) against ``fixed`` ones."""
    if broken < 0 or fixed < 0:
        raise ValueError(f"counts cannot be negative, got {broken} broken and {fixed} fixed")
    fewer, more = sorted((broken, fixed))
    if fewer == more:
        return 1.0
    return min(1.0, 2 * compute_beta_cdf(0.5, more, fewer + 1))


def compute_clustered_mcnemar_p_value(differences: Iterable[int]) -> float:
    """Return the exact two-sided p-value from each cluster's net difference: broken cases minus fixed cases.

    Clusters without a net difference have no effect and may be omitted.
    """
    nonzero = [difference for difference in differences if difference]
    sizes = Counter(map(abs, nonzero))
    observed = abs(sum(nonzero))
    if len(sizes) == 1:
        (size,) = sizes
        broken = sum(difference > 0 for difference in nonzero)
        return compute_mcnemar_p_value(broken, sizes[size] - broken)
    sums = {0: 1.0}
    for size, clusters in sorted(sizes.items()):
        sums = _add_clusters(sums, size, clusters)
    return min(1.0, sum(weight for total, weight in sums.items() if abs(total) >= observed))


def _add_clusters(sums: dict[int, float], size: int, clusters: int) -> dict[int, float]:
    """Return the distribution of a sum after ``clusters`` more fair coins, each worth plus or minus ``size``."""
    coins = [
        (size * (2 * heads - clusters), _compute_coin_probability(clusters, heads)) for heads in range(clusters + 1)
    ]
    likely = [(step, weight) for step, weight in coins if weight > _NEGLIGIBLE_WEIGHT]
    after: dict[int, float] = {}
    for total, before in sums.items():
        for step, weight in likely:
            after[total + step] = after.get(total + step, 0.0) + before * weight
    return after


def _compute_coin_probability(tossed: int, heads: int) -> float:
    ways = lgamma(tossed + 1) - lgamma(heads + 1) - lgamma(tossed - heads + 1)
    return exp(ways - tossed * log(2))


def compute_min_detectable_breaks(*, alpha: float = ALPHA) -> int:
    """Return how many cases must break for a significant test if none is fixed: 6 cases at 5 %."""
    return ceil(1 - log2(alpha))


@lru_cache(1024)
def compute_min_detectable_drop(pairs: int, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """Return the least share of ``pairs`` that must break for a detection with probability ``power``.

    This is the best case: every pair was right before, pairs break independently, and none is fixed. The test then
    needs `compute_min_detectable_breaks` breaks, and the share at which a binomial count reaches that many is a
    quantile of a Beta distribution (S. W. Duffy, "Asymptotic and exact power for the McNemar test and its analogue
    with R controls per case", Biometrics 40, 1984, for the general case). Returns ``None`` if even the loss of all
    pairs would not be detected.
    """
    needed = compute_min_detectable_breaks(alpha=alpha)
    if pairs < needed:
        return None
    return compute_beta_quantile(power, needed, pairs - needed + 1)


class PairedCounts(NamedTuple):
    """Counts of pairs of answers to one question: both, only the first, only the second or neither was right."""

    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def total(self) -> int:
        """The number of all pairs."""
        return sum(self)


def compute_paired_difference(table: PairedCounts, *, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return first share minus second share with its interval; (0, -1, 1) without pairs.

    R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", Statistics in Medicine 17 (1998), method 10: the Wilson intervals of both shares are combined with the
    correlation between them. This interval keeps its confidence with only twenty pairs, is wider than 0 even if all
    pairs agree, and stays within [-1, 1]. Wald's interval has none of these three properties.
    """
    if table.total == 0:
        return 0.0, -1.0, 1.0
    total = table.total
    first, second = table.both + table.first_only, table.both + table.second_only
    first_share, second_share = first / total, second / total
    low, high = compute_wilson_interval(first, total, confidence=confidence)
    other_low, other_high = compute_wilson_interval(second, total, confidence=confidence)
    phi = _compute_correlation(table)
    down, other_up = first_share - low, other_high - second_share
    up, other_down = high - first_share, second_share - other_low
    gap = first_share - second_share
    below = sqrt(max(0.0, down**2 - 2 * phi * down * other_up + other_up**2))
    above = sqrt(max(0.0, up**2 - 2 * phi * up * other_down + other_down**2))
    return gap, max(-1.0, gap - below), min(1.0, gap + above)


def _compute_correlation(table: PairedCounts) -> float:
    """Return Newcombe's correlation phi. A positive cross product is reduced by half the pairs."""
    a, b, c, d = table
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    cross = a * d - b * c
    if cross > 0:
        cross = max(0.0, cross - table.total / 2)
    return cross / sqrt(margins)
