"""How sure an average of ratings is, with no assumption on their distribution. Pure: the seed is an argument.

B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979); percentile limits.
Two runs over the same cases are compared by their differences case by case, so that what makes a case hard cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from monitors.agreement import Estimate
from monitors.stats import percentile

RESAMPLES = 2_000
"""Limits of 95 % rest on the 50 outermost on each side."""

FEWEST_RESAMPLES = 200
MOST_DRAWS = 4_000_000
"""About a second; thousands of ratings are resampled less often, since their averages hardly differ."""

SEED = 20_261_122
"""Any number will do, as long as it stays: the same ratings give the same interval."""


def mean_interval(ratings: Sequence[float], *, confidence: float = 0.95, seed: int = SEED) -> Estimate:
    """The average of ``ratings`` with its interval. ``ValueError`` on an empty sequence.

    Ratings that are all the same give that one value three times: with few of them, read it with care.
    """
    if not ratings:
        raise ValueError("no ratings to average")
    size = len(ratings)
    counts = sorted(Counter(ratings).items())  # the order in which ratings come must not matter
    values, weights = [value for value, _ in counts], list(accumulate(count for _, count in counts))
    resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, MOST_DRAWS // size))
    random = Random(seed)  # noqa: S311 - statistics, not secrets
    means = [sum(random.choices(values, cum_weights=weights, k=size)) / size for _ in range(resamples)]
    value = sum(value * count for value, count in counts) / size
    low, high = percentile(means, (1 - confidence) / 2), percentile(means, (1 + confidence) / 2)
    return Estimate(value, min(value, low), max(value, high))


def change_interval(
    pairs: Sequence[tuple[float, float]], *, confidence: float = 0.95, seed: int = SEED
) -> Estimate:
    """The average of ``now - before`` over pairs of (before, now), with its interval: the paired bootstrap."""
    return mean_interval([now - before for before, now in pairs], confidence=confidence, seed=seed)
