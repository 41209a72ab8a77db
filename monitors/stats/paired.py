"""Compare two runs over the same cases: test for a change, and compute the smallest detectable change.

The test uses only the cases with different results in the two runs. If the application did not change, such a case
is broken or fixed with equal probability, like the toss of a fair coin. The p-value is the probability that chance
alone makes the numbers of broken and fixed cases at least as different as observed. This is the exact form of Q.
McNemar, "Note on the sampling error of the difference between correlated proportions or percentages", Psychometrika
12 (1947).

Cases of one cluster, such as cases about one policy, may break together. Therefore, the clustered test tosses one
coin for each cluster. The coin decides whether the cluster's difference between broken and fixed cases is added or
subtracted. The p-value is the probability that the resulting sum is at least as far from 0 as the observed sum (R.
A. Fisher, The Design of Experiments, 1935, section 21). If every cluster differs by one case, the test is McNemar's
test.

`compute_paired_difference` computes the difference of two shares over the same questions, with an interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import ceil, exp, lgamma, log, log2, sqrt
from typing import NamedTuple

from monitors.stats.intervals import compute_beta_cdf, compute_beta_quantile, compute_wilson_interval

ALPHA = 0.05
"""A change is reported if its p-value is at most this value.

For an unchanged application, on average at most 1 of 40 comparisons reports a worse result, and at most 1 of 40
reports a better result.
"""

POWER = 0.8
"""The probability with which a detectable change is detected: 4 times in 5. This is Cohen's convention (1988)."""

_NEGLIGIBLE_WEIGHT = 1e-18
"""Results of the coin tosses with a smaller probability are ignored, because they hardly change the p-value."""


def compute_mcnemar_p_value(broken: int, fixed: int) -> float:
    """Return the exact two-sided p-value for ``broken`` (right to wrong) and ``fixed`` (wrong to right) cases.

    The p-value is the probability that chance alone gives a difference at least this large, in either direction.
    """
    if broken < 0 or fixed < 0:
        raise ValueError(f"counts cannot be negative, got {broken} broken and {fixed} fixed")
    fewer, more = sorted((broken, fixed))
    if fewer == more:
        return 1.0
    return min(1.0, 2 * compute_beta_cdf(0.5, more, fewer + 1))


def compute_clustered_mcnemar_p_value(differences: Iterable[int]) -> float:
    """Return the exact two-sided p-value if related cases break together.

    ``differences`` contains a number for each cluster: its broken cases minus its fixed cases. Clusters with a
    difference of 0 have no effect and may be omitted.
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
        sums = _convolve_sums_with_fair_coins(sums, size, clusters)
    return min(1.0, sum(weight for total, weight in sums.items() if abs(total) >= observed))


def _convolve_sums_with_fair_coins(sums: dict[int, float], size: int, clusters: int) -> dict[int, float]:
    """Return the probability distribution of a sum after ``clusters`` more fair coins are tossed.

    ``sums`` is the distribution before that. Each coin adds or subtracts ``size``. The keys are the possible
    sums, and the values are their probabilities.
    """
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
    """Return how many cases must break before the test reports a change, if no case is fixed.

    For example, the result is 6 for ``alpha`` = 0.05.
    """
    return ceil(1 - log2(alpha))


@lru_cache(1024)
def compute_min_detectable_drop(pairs: int, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """Return the smallest share of broken ``pairs`` that the test detects with the probability ``power``.

    A pair is a case that both runs graded. The result is for the best case: every pair was right before, pairs
    break independently of each other, and no pair is fixed. The test then needs `compute_min_detectable_breaks`
    broken pairs. Returns ``None`` if the test would not detect a change even if all pairs broke.

    The share is a quantile of a Beta distribution. For the general case, see S. W. Duffy, "Asymptotic and exact
    power for the McNemar test and its analogue with R controls per case", Biometrics 40 (1984).
    """
    needed = compute_min_detectable_breaks(alpha=alpha)
    if pairs < needed:
        return None
    return compute_beta_quantile(power, needed, pairs - needed + 1)


class PairedCounts(NamedTuple):
    """The numbers of pairs in which both answers, only the first, only the second or neither answer was right.

    The two answers of a pair answer the same question.
    """

    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def total(self) -> int:
        """Return the number of all pairs."""
        return sum(self)


def compute_paired_difference(table: PairedCounts, *, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the first share of right answers minus the second share, with the limits of the difference.

    The result is (difference, lower limit, upper limit). If there are no pairs, the result is (0, -1, 1). The
    Wilson intervals of both shares are combined with the correlation between the shares: R. G. Newcombe, "Improved
    confidence intervals for the difference between binomial proportions based on paired data", Statistics in
    Medicine 17 (1998), method 10.

    The interval has the stated confidence even with only twenty pairs, has a width above 0 even if all pairs agree,
    and stays within -1 to 1. The usual interval (Wald's) has none of these three properties.
    """
    if table.total == 0:
        return 0.0, -1.0, 1.0
    total = table.total
    first, second = table.both + table.first_only, table.both + table.second_only
    first_share, second_share = first / total, second / total
    low, high = compute_wilson_interval(first, total, confidence=confidence)
    other_low, other_high = compute_wilson_interval(second, total, confidence=confidence)
    phi = _compute_newcombe_phi(table)
    down, other_up = first_share - low, other_high - second_share
    up, other_down = high - first_share, second_share - other_low
    gap = first_share - second_share
    below = sqrt(max(0.0, down**2 - 2 * phi * down * other_up + other_up**2))
    above = sqrt(max(0.0, up**2 - 2 * phi * up * other_down + other_down**2))
    return gap, max(-1.0, gap - below), min(1.0, gap + above)


def _compute_newcombe_phi(table: PairedCounts) -> float:
    """Return Newcombe's phi: how strongly the two answers of a pair tend to be right or wrong together.

    If the cross product is positive, half the number of pairs is subtracted from it. The result is at least 0.
    """
    a, b, c, d = table
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    cross = a * d - b * c
    if cross > 0:
        cross = max(0.0, cross - table.total / 2)
    return cross / sqrt(margins)
