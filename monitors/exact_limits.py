"""Confidence limits for a share that hold however rare it is and however few were looked at. Pure.

C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26 (1934): a share stays inside as long as neither tail of what was seen falls to half of what the
confidence leaves. The same with the hypergeometric distribution when all there is was numbered beforehand (a
finite population): then a sample of everything has no error left. Written out because scipy takes seconds to load;
the tests hold both against it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, fsum, lgamma, log, log1p

_MOST_LOOKS = 200
_NEAR = 1e-13
"""Relative: what the distribution function itself is good for."""
_CLOSE = 1e-14
_TINY = 1e-300
_MOST_STEPS = 10_000
_TIE = 1e-12
"""A tail this little above half of what the confidence leaves is as large as it, but for rounding."""
_REMEMBERED = 1 << 16


@lru_cache(_REMEMBERED)
def binomial_limits(failures: float, told: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's limits for a share of an endless supply; (0, 1) when nothing was told.

    Counts may be fractions (an effective sample size): the limits are quantiles of Beta distributions.
    """
    _check(failures, told)
    if told == 0:
        return 0.0, 1.0
    left_out = (1 - confidence) / 2
    low = 0.0 if failures == 0 else beta_quantile(left_out, failures, told - failures + 1)
    high = 1.0 if failures == told else beta_quantile(1 - left_out, failures + 1, told - failures)
    return low, high


@lru_cache(_REMEMBERED)
def finite_limits(failures: int, told: int, population: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The limits for the share of failures in ``population``, of which ``told`` were drawn without replacement.

    A number of failures stays inside as long as both tails exceed half of what ``confidence`` leaves. Nothing told
    gives (0, 1), everything told the share itself, twice.
    """
    _check(failures, told)
    if told > population:
        raise ValueError(f"no more can be told than there are, got {told} of {population}")
    if told == 0:
        return 0.0, 1.0
    left_out = (1 - confidence) / 2 + _TIE
    fewest, most = failures, population - (told - failures)
    low = _first(fewest, most, lambda all_failures: _at_least(failures, told, all_failures, population) > left_out)
    beyond = _first(
        low, most + 1, lambda all_failures: _at_most(failures, told, all_failures, population) <= left_out
    )
    return low / population, max(low, beyond - 1) / population


def beta_share(place: float, first: float, second: float) -> float:
    """The probability that a Beta(``first``, ``second``) variable lies below ``place``, to about 1e-12.

    By the continued fraction of the incomplete beta function (NIST Digital Library of Mathematical Functions,
    8.17.22), evaluated as W. J. Lentz does, Applied Optics 15 (1976); it converges fast below the mean, so the
    other side is taken above it.
    """
    if place <= 0 or place >= 1:
        return float(place >= 1)
    if place > (first + 1) / (first + second + 2):
        return 1 - beta_share(1 - place, second, first)
    scale = lgamma(first + second) - lgamma(first) - lgamma(second)
    front = exp(scale + first * log(place) + second * log1p(-place)) / first
    return front / _continued(place, first, second)


def _continued(place: float, first: float, second: float) -> float:
    value, above, below = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        part = _coefficient(step, place, first, second)
        below = 1 / _not_zero(1 + part * below)
        above = _not_zero(1 + part / above)
        change = above * below
        value *= change
        if abs(change - 1) < _CLOSE:
            break
    return value


def _coefficient(step: int, place: float, first: float, second: float) -> float:
    half = step // 2
    if step % 2:
        return -(first + half) * (first + second + half) * place / ((first + 2 * half) * (first + 2 * half + 1))
    return half * (second - half) * place / ((first + 2 * half - 1) * (first + 2 * half))


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


@lru_cache(_REMEMBERED)
def beta_quantile(share: float, first: float, second: float) -> float:
    """The place below which a Beta(``first``, ``second``) variable lies with probability ``share``.

    By Newton's steps, and by halving where one leads out of what is still possible.
    """
    low, high, place = 0.0, 1.0, first / (first + second)
    scale = lgamma(first + second) - lgamma(first) - lgamma(second)
    for _ in range(_MOST_LOOKS):
        above = beta_share(place, first, second) - share
        low, high = (low, place) if above > 0 else (place, high)
        density = exp(scale + (first - 1) * log(place) + (second - 1) * log1p(-place))
        newton = place - above / density if density > _TINY else low
        further = newton if low < newton < high else (low + high) / 2
        if abs(further - place) <= _NEAR * place or further in {0.0, 1.0}:
            return further
        place = further
    return place


def _at_most(failures: int, told: int, all_failures: int, population: int) -> float:
    """How likely ``failures`` or fewer are among ``told``, when ``all_failures`` of ``population`` are."""
    fewest, most = max(0, told - (population - all_failures)), min(told, all_failures)
    if failures >= most:
        return 1.0
    if failures - fewest <= most - failures:
        return fsum(_exactly(each, told, all_failures, population) for each in range(fewest, failures + 1))
    return 1 - fsum(_exactly(each, told, all_failures, population) for each in range(failures + 1, most + 1))


def _at_least(failures: int, told: int, all_failures: int, population: int) -> float:
    return 1 - _at_most(failures - 1, told, all_failures, population) if failures else 1.0


def _exactly(failures: int, told: int, all_failures: int, population: int) -> float:
    right = population - all_failures
    ways = _log_ways(all_failures, failures) + _log_ways(right, told - failures) - _log_ways(population, told)
    return exp(ways)


def _log_ways(among: int, chosen: int) -> float:
    return lgamma(among + 1) - lgamma(chosen + 1) - lgamma(among - chosen + 1)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The smallest number from ``low`` to ``high`` for which it holds (as for all above it); ``high`` if none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _check(failures: float, told: float) -> None:
    if not 0 <= failures <= told:
        raise ValueError(f"failures must be between 0 and those told, got {failures} of {told}")
