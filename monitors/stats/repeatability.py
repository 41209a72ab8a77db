"""How often an application answers the same question otherwise: flip rates, and the noise behind them. Pure.

A **flip** is a pair of askings of one case against one build, of which one shows something and the other does not.
Pairs of one case are no independent observations, so the share of flips has Wilson's interval at the effective
number of pairs (`monitors.stats.intervals.clustered_share`). Where no pair flipped, or every one did, nothing is known
of how pairs of one case go together, and cases count instead of pairs: many askings of few cases say little of others.

The **noise** of a case is the probability p that one asking of it fails although it is no fault. A case that fails
more often than not has a fault: noise is at most one half. Over the cases, 2p has a Beta distribution (J. G. Skellam,
"A probability distribution derived from the binomial distribution by regarding the probability of success as variable
between the sets of trials", JRSS B 10, 1948), fitted by maximum likelihood on a grid. A group of askings of which more
than half failed is left out as a fault, so each likelihood is that of a binomial count truncated at one half. A case
with few askings is drawn towards the others (empirical Bayes: H. Robbins 1956; B. Efron, C. Morris 1975). The mean's
interval comes of the posterior on the grid, under the prior m^(-1/2) of Jeffreys and equal odds for each concentration.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import comb, exp, log
from typing import Final, NamedTuple

from monitors.stats.intervals import beta_share, by_cluster, clustered_share, wilson

MOST_NOISE: Final = 0.5
"""A case that fails more often than this has a fault."""

_CELLS: Final = 48
_SMALLEST: Final = 1e-5
_EDGES: Final = (0.0, *(_SMALLEST * (1 / _SMALLEST) ** (each / (_CELLS - 1)) for each in range(_CELLS)))
"""Of 2p, from 0 to 1: cells that grow by a constant factor, since noise is mostly small."""
_PLACES: Final = tuple(MOST_NOISE * (low + high) / 2 for low, high in zip(_EDGES, _EDGES[1:], strict=False))
_MEANS: Final = tuple(1e-4 * 4000 ** (each / 59) for each in range(60))
"""Means of p that are looked at, from 0.01 % to 40 %."""
_CONCENTRATIONS: Final = (0.5, 2.0, 8.0, 32.0)
"""How alike cases are: at 0.5 nearly all noise is of a few cases, at 32 each has about the same."""

Group = tuple[int, int]
"""Askings of one case against one build: how many failed, and how many there were."""


class FlipShare(NamedTuple):
    """A share of pairs that flipped, with its interval."""

    flips: int
    pairs: int
    cases: int
    low: float
    high: float


def flip_share(pairs: Iterable[tuple[Hashable, bool]], *, confidence: float = 0.95) -> FlipShare:
    """The share of pairs that flipped, each given with its case; (0, 1) where there is none."""
    counts = by_cluster(pairs)
    flips, total = sum(one.passed for one in counts), sum(one.total for one in counts)
    if flips in {0, total}:
        low, high = wilson(len(counts) if flips else 0, len(counts), confidence=confidence)
        return FlipShare(flips, total, len(counts), low, high)
    share = clustered_share(counts, confidence=confidence)
    return FlipShare(flips, total, len(counts), share.low, share.high)


class NoiseFit(NamedTuple):
    """The noise over all cases: its mean with the interval, and how alike cases are at each of the three.

    A mean of 0 says that no asking failed by chance.
    """

    mean: float
    low: float
    high: float
    concentration: float
    concentration_low: float
    concentration_high: float


def is_fault(group: Group) -> bool:
    """Whether a group of askings shows a fault and not noise: most of them failed, and there were two or more."""
    failed, asked = group
    return asked > 1 and failed > asked * MOST_NOISE


def fit_noise(cases: Iterable[Sequence[Group]], *, confidence: float = 0.95) -> NoiseFit | None:
    """Fit the noise to the groups of each case, without those that show a fault; ``None`` without any group left.

    A group of one asking tells no fault from noise and does not count.
    """
    kept = Counter(tuple(sorted(filter(_counts, groups))) for groups in cases)
    del kept[()]
    if not kept:
        return None
    table = _log_likelihoods(kept)
    low, high = _posterior_ends(table, confidence)
    failed = any(count for groups in kept for count, _ in groups)
    best = max(table, key=lambda point: table[point]) if failed else (0.0, _CONCENTRATIONS[0])
    return NoiseFit(
        best[0],
        low if failed else 0.0,
        high,
        best[1],
        _likeliest_concentration(table, low),
        _likeliest_concentration(table, high),
    )


def _counts(group: Group) -> bool:
    return group[1] > 1 and not is_fault(group)


def _log_likelihoods(kept: Mapping[tuple[Group, ...], int]) -> dict[tuple[float, float], float]:
    seen = [(times, [_likelihood(groups, place) for place in _PLACES]) for groups, times in kept.items()]
    return {
        (mean, concentration): sum(
            times * log(max(1e-300, _sum_product(weights, found))) for times, found in seen
        )
        for mean in _MEANS
        for concentration in _CONCENTRATIONS
        for weights in (_weights(mean, concentration),)
    }


def _sum_product(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


@lru_cache(4096)
def _weights(mean: float, concentration: float) -> tuple[float, ...]:
    """How likely the noise of a case is in each cell."""
    share = mean / MOST_NOISE
    first, second = share * concentration, (1 - share) * concentration
    below = [beta_share(edge, first, second) for edge in _EDGES]
    return tuple(max(0.0, high - low) for low, high in zip(below, below[1:], strict=False))


def _likelihood(groups: Sequence[Group], place: float) -> float:
    """How likely these counts are at a noise of ``place``, given that none of them shows a fault."""
    found = 1.0
    for failed, asked in groups:
        kept = sum(_binomial(each, asked, place) for each in range(int(asked * MOST_NOISE) + 1))
        found *= _binomial(failed, asked, place) / kept
    return found


def _binomial(failed: int, asked: int, place: float) -> float:
    return comb(asked, failed) * place**failed * (1 - place) ** (asked - failed)


def _posterior_ends(table: Mapping[tuple[float, float], float], confidence: float) -> tuple[float, float]:
    """The ends of the mean's interval: the means are looked at in even steps of their logarithm."""
    top = max(table.values())
    weights: defaultdict[float, float] = defaultdict(float)
    for (mean, _), found in table.items():
        weights[mean] += exp(found - top) * mean**0.5
    total, tail = sum(weights.values()), (1 - confidence) / 2
    return _quantile(weights, tail * total), _quantile(weights, (1 - tail) * total)


def _quantile(weights: Mapping[float, float], goal: float) -> float:
    reached = 0.0
    for mean in _MEANS:
        reached += weights[mean]
        if reached >= goal:
            return mean
    return _MEANS[-1]


def _likeliest_concentration(table: Mapping[tuple[float, float], float], mean: float) -> float:
    return max(_CONCENTRATIONS, key=lambda concentration: table[mean, concentration])


class CaseNoise(NamedTuple):
    """How likely each noise is for one case: ``places`` with their cumulated ``weights``, which end at 1."""

    places: Sequence[float]
    weights: Sequence[float]


NO_NOISE: Final = CaseNoise((0.0,), (1.0,))


def noise_of(groups: Iterable[Group], mean: float, concentration: float) -> CaseNoise:
    """The noise of a case with these askings, when cases have this mean and concentration."""
    return _posterior(tuple(sorted(filter(_counts, groups))), mean, concentration)


@lru_cache(4096)
def _posterior(groups: tuple[Group, ...], mean: float, concentration: float) -> CaseNoise:
    if mean == 0.0:
        return NO_NOISE
    prior = _weights(mean, concentration)
    weights = [weight * _likelihood(groups, place) for weight, place in zip(prior, _PLACES, strict=True)]
    total, reached, cumulated = sum(weights), 0.0, list[float]()
    for weight in weights:
        reached += weight / total
        cumulated.append(reached)
    return CaseNoise(_PLACES, (*cumulated[:-1], 1.0))
