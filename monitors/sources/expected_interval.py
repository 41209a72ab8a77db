"""Where the interval of a night will lie on average, before anything is drawn.

The width at the expected number of failures is not the expected width: with a rate of 1 % and ten drawn, nine
nights of ten see no failure and the tenth sees one. So the limits are averaged over what may be seen: for each
stratum the failures among those told, whose rate is itself uncertain (beta-binomial). The strata are gone through
together on points of a Kronecker sequence (multiples of square roots of primes, H. Weyl, Mathematische Annalen 77,
1916), which fill the cube evenly without any randomness.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import exp, fsum, inf, isqrt, lgamma, log, log1p, sqrt
from typing import NamedTuple

from monitors.agreement import Confusion, Estimate, corrected_pass_rate
from monitors.estimators import rate_interval
from monitors.records.estimates import StratumTold
from monitors.sources.expected_rates import ExpectedRate, as_said_by_judge

POINTS = 256
"""With so many the expected width of five strata was within 1 % of the mean over 20,000 random nights."""
_REST = 1e-9
"""Numbers of failures that are together less likely than this are left out."""


class ExpectedStratum(NamedTuple):
    """How many conversations there are, how many will be told, how they are expected to fail."""

    conversations: int
    told: int
    expected: ExpectedRate


def expected_interval(
    strata: Sequence[ExpectedStratum], *, confusion: Confusion | None = None, confidence: float = 0.95
) -> tuple[Estimate, bool]:
    """The expected rate with the averages of both limits, and whether judge errors will have been taken out.

    ``value`` is the true rate that is expected. Strata of which nothing will be told widen the interval by all they
    are. ``ValueError`` when nothing will be told at all.
    """
    corrects = confusion is not None and _allows_correction(confusion)
    seen = [_counts(one, confusion if corrects else None) for one in strata]
    found = [
        rate_interval(_told(strata, seen, point), confusion=confusion, confidence=confidence)
        for point in _points(len(strata))
    ]
    there = sum(one.conversations for one in strata)
    rate = fsum(one.conversations * one.expected.rate for one in strata) / there
    low, high = (fsum(ends) / len(found) for ends in zip(*(one[1:] for one in found), strict=True))
    return Estimate(rate, low, high), corrects


def _allows_correction(confusion: Confusion) -> bool:
    return corrected_pass_rate(1, 1, confusion) is not None


def _told(
    strata: Sequence[ExpectedStratum], seen: Sequence[Sequence[float]], point: Sequence[float]
) -> Sequence[StratumTold]:
    """The night at one point of the cube: in each stratum as many failures as its coordinate says."""
    return [
        StratumTold(
            stratum=f"s{place}",
            conversations=one.conversations,
            drawn=one.told,
            told=one.told,
            failures=min(one.told, bisect_left(cumulated, at)),
        )
        for place, (one, cumulated, at) in enumerate(zip(strata, seen, point, strict=True))
    ]


def _points(dimensions: int) -> Sequence[Sequence[float]]:
    steps = [1 / POINTS, *(sqrt(prime) % 1 for prime in _primes(dimensions - 1))]
    return [[((number + 0.5) * step) % 1 for step in steps[:dimensions]] for number in range(POINTS)]


def _primes(count: int) -> Sequence[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % each for each in range(2, isqrt(candidate) + 1)):
            found.append(candidate)
        candidate += 1
    return found


def _counts(one: ExpectedStratum, confusion: Confusion | None) -> Sequence[float]:
    """How likely at most 0, 1, 2, … failures are, up to nearly certain."""
    expected = as_said_by_judge(one.expected, confusion) if confusion else one.expected
    return _cumulated(one.told, *expected)


@lru_cache(1024)
def _cumulated(told: int, rate: float, weight: float) -> Sequence[float]:
    if rate <= 0 or rate >= 1:
        return [0.0] * (told if rate else 0) + [1.0]
    return list(_until_certain(told, rate, weight))


def _until_certain(told: int, rate: float, weight: float) -> Sequence[float]:
    chances: list[float] = []
    for failures in range(told + 1):
        chances.append(exp(_log_chance(failures, told, rate, weight)))
        if sum(chances) > 1 - _REST:
            break
    return list(accumulate(chances))


def _log_chance(failures: int, told: int, rate: float, weight: float) -> float:
    ways = lgamma(told + 1) - lgamma(failures + 1) - lgamma(told - failures + 1)
    if weight == inf:
        return ways + failures * log(rate) + (told - failures) * log1p(-rate)
    fails, passes = rate * weight, (1 - rate) * weight
    return ways + _log_beta(failures + fails, told - failures + passes) - _log_beta(fails, passes)


def _log_beta(first: float, second: float) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)
