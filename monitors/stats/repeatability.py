"""Estimate how often an application answers the same question differently: flip rates and noise.

A **flip** is a pair of different results for one case and one build, for example one answer passes and the other
fails. Pairs of one case are related. Therefore, the share of flips has Wilson's interval for the effective number
of pairs (`monitors.stats.intervals.compute_clustered_share`). If fewer than five cases flipped, or if all pairs
flipped, it is unknown how strongly the pairs of a case are related. In this case, cases are counted instead of
pairs, because many repeats of few cases give little information about other cases.

The **noise** of a case is the probability p that one repeat fails although the case has no fault. A case that fails
in most repeats has a fault. Therefore, noise is at most one half. Each case has its own noise. Two numbers describe
how the noise varies over the cases: the mean, and the concentration (how similar the cases are).

- Over the cases, 2p is assumed to have a Beta distribution (J. G. Skellam, "A probability distribution derived from
  the binomial distribution by regarding the probability of success as variable between the sets of trials", JRSS B
  10, 1948). The mean and concentration that fit best are searched on a grid (maximum likelihood).
- A group of repeats is excluded as a fault if more than half of the repeats failed. Therefore, each likelihood is
  the likelihood of a binomial count of at most one half of the repeats.
- The noise of a case with few repeats is estimated mostly from the other cases (empirical Bayes: B. Efron, C.
  Morris, "Data analysis using Stein's estimator and its generalizations", JASA 70, 1975).
- The interval of the mean comes from the posterior on the grid, with Jeffreys' prior m^(-1/2) for the mean and the
  same prior probability for each concentration.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import comb, exp, log
from random import Random
from typing import Final, NamedTuple

from monitors.stats.intervals import (
    compute_beta_cdf,
    compute_clustered_share,
    compute_wilson_interval,
    count_by_cluster,
)

MAX_NOISE: Final = 0.5
"""Maximum noise: the highest probability with which a case without a fault fails by chance.

A case that fails more often has a fault.
"""

MIN_FLIPPED_CASES: Final = 5
"""If fewer cases than this have a flip, it is unknown how strongly the pairs of one case are related."""

_CELLS: Final = 48
_MIN_EDGE: Final = 1e-5
_EDGES: Final = (0.0, *(_MIN_EDGE * (1 / _MIN_EDGE) ** (each / (_CELLS - 1)) for each in range(_CELLS)))
"""Edges of the grid cells for twice the noise, from 0 to 1.

The cells grow by a constant factor, because most noise is small.
"""
_CELL_CENTRES: Final = tuple(MAX_NOISE * (low + high) / 2 for low, high in pairwise(_EDGES))
_MEANS: Final = tuple(1e-4 * 4000 ** (each / 59) for each in range(60))
"""The grid of means of the noise p, from 0.01 % to 40 %."""
_CONCENTRATIONS: Final = (0.5, 2.0, 8.0, 32.0)
"""The grid of concentrations.

With a concentration of 0.5, a few cases have nearly all the noise. With 32, all cases have about the same noise.
"""

_CACHE_SIZE: Final = 1 << 15

Group = tuple[int, int]
"""Repeats of one case against one build: (number of failed repeats, number of all repeats)."""


class FlipShare(NamedTuple):
    """The share of pairs of results of one case that differ (flips), and the interval of this share."""

    flips: int
    pairs: int
    cases: int
    low: float
    high: float


def compute_flip_share(pairs: Iterable[tuple[Hashable, bool]], *, confidence: float = 0.95) -> FlipShare:
    """Return the share of flipped pairs, with its interval. If there are no pairs, the interval is (0, 1).

    ``pairs`` contains the case of each pair, and whether the pair flipped.
    """
    counts = count_by_cluster(pairs)
    share = compute_clustered_share(counts, confidence=confidence)
    is_sparse = share.passed == share.total or sum(case.passed > 0 for case in counts) < MIN_FLIPPED_CASES
    effective = min(share.effective, len(counts)) if is_sparse else share.effective
    rate = share.passed / share.total if share.total else 0.0
    low, high = compute_wilson_interval(rate * effective, effective, confidence=confidence)
    return FlipShare(share.passed, share.total, len(counts), low, high)


class NoiseOdds(NamedTuple):
    """Pairs (mean, concentration), each with its cumulative probability. The last of these probabilities is 1."""

    points: Sequence[tuple[float, float]]
    weights: Sequence[float]

    def sample(self, rng: Random) -> tuple[float, float]:
        """Draw a pair (mean, concentration) at random, according to the probabilities of the pairs."""
        return self.points[bisect_left(self.weights, rng.random())]


class NoiseFit(NamedTuple):
    """The noise over all cases: its most likely mean, and the interval of this mean.

    The mean is 0 if nothing failed by chance. ``likeliest`` contains the probability of each concentration at the
    most likely mean. ``posterior`` contains the probabilities of all pairs of a mean and a concentration.
    """

    mean: float
    low: float
    high: float
    likeliest: NoiseOdds
    posterior: NoiseOdds


def has_consistent_failure(group: Group) -> bool:
    """Return whether a group of repeats shows a fault rather than noise.

    The result is true if the group has two or more repeats and more than half of them failed.
    """
    failed, repeats = group
    return repeats > 1 and failed > repeats * MAX_NOISE


def fit_noise(cases: Iterable[Sequence[Group]], *, confidence: float = 0.95) -> NoiseFit | None:
    """Estimate the noise from the groups of repeats that show no fault.

    Each element of ``cases`` contains the groups of one case. Returns ``None`` if there is no usable group. A group
    of only one repeat is ignored, because it cannot show whether a failure is a fault or noise.
    """
    group_counts = Counter(tuple(sorted(filter(_has_repeats_without_fault, groups))) for groups in cases)
    del group_counts[()]
    if not group_counts:
        return None
    likelihoods = _compute_likelihoods(group_counts)
    by_mean = {mean: sum(likelihoods[mean, concentration] for concentration in _CONCENTRATIONS) for mean in _MEANS}
    failed = any(count for groups in group_counts for count, _ in groups)
    best = max(by_mean, key=lambda mean: by_mean[mean])
    posterior = {mean: weight * mean**0.5 for mean, weight in by_mean.items()}  # equal steps on a logarithmic scale
    total, tail = sum(posterior.values()), (1 - confidence) / 2
    return NoiseFit(
        mean=best if failed else 0.0,
        low=_find_quantile(posterior, tail * total) if failed else 0.0,
        high=_find_quantile(posterior, (1 - tail) * total),
        likeliest=_normalise_and_cumulate_odds(
            {(best, concentration): likelihoods[best, concentration] for concentration in _CONCENTRATIONS}
        )
        if failed
        else NO_ODDS,
        posterior=_normalise_and_cumulate_odds(
            {(mean, concentration): weight * mean**0.5 for (mean, concentration), weight in likelihoods.items()}
        ),
    )


def _normalise_and_cumulate_odds(weights: Mapping[tuple[float, float], float]) -> NoiseOdds:
    total = sum(weights.values())
    cumulated = list(accumulate(weight / total for weight in weights.values()))
    return NoiseOdds(tuple(weights), (*cumulated[:-1], 1.0))


NO_ODDS: Final = NoiseOdds(((0.0, _CONCENTRATIONS[0]),), (1.0,))


def _has_repeats_without_fault(group: Group) -> bool:
    return group[1] > 1 and not has_consistent_failure(group)


def _compute_likelihoods(counted: Mapping[tuple[Group, ...], int]) -> dict[tuple[float, float], float]:
    """Return the likelihood of each pair (mean, concentration), divided by the largest of these likelihoods.

    ``counted`` maps a tuple of groups to the number of cases that have exactly these groups.
    """
    logs = {
        (mean, concentration): sum(
            times
            * log(
                max(
                    1e-300,
                    _sum_product(_compute_cell_weights(mean, concentration), _compute_group_likelihoods(groups)),
                )
            )
            for groups, times in counted.items()
        )
        for mean in _MEANS
        for concentration in _CONCENTRATIONS
    }
    top = max(logs.values())
    return {point: exp(log_likelihood - top) for point, log_likelihood in logs.items()}


def _sum_product(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


@lru_cache(_CACHE_SIZE)
def _compute_cell_weights(mean: float, concentration: float) -> tuple[float, ...]:
    """Return, for each cell of the noise grid, the probability that the noise of a case is in this cell.

    ``mean`` and ``concentration`` describe how the noise varies over the cases.
    """
    share = mean / MAX_NOISE
    first, second = share * concentration, (1 - share) * concentration
    below = [compute_beta_cdf(edge, first, second) for edge in _EDGES]
    return tuple(max(0.0, high - low) for low, high in pairwise(below))


@lru_cache(_CACHE_SIZE)
def _compute_group_likelihoods(groups: tuple[Group, ...]) -> tuple[float, ...]:
    """Return, for each cell of the noise grid, the likelihood of ``groups`` if none of them shows a fault."""
    return tuple(_compute_likelihood_at(groups, noise) for noise in _CELL_CENTRES)


def _compute_likelihood_at(groups: Sequence[Group], noise: float) -> float:
    likelihood = 1.0
    for failed, repeats in groups:
        no_fault = sum(
            _compute_binomial_probability(count, repeats, noise) for count in range(int(repeats * MAX_NOISE) + 1)
        )
        likelihood *= _compute_binomial_probability(failed, repeats, noise) / no_fault
    return likelihood


def _compute_binomial_probability(failed: int, repeats: int, noise: float) -> float:
    return comb(repeats, failed) * noise**failed * (1 - noise) ** (repeats - failed)


def _find_quantile(weights: Mapping[float, float], goal: float) -> float:
    reached = 0.0
    for mean in _MEANS:
        reached += weights[mean]
        if reached >= goal:
            return mean
    return _MEANS[-1]


class CaseNoise(NamedTuple):
    """The distribution of the noise of one case.

    ``places`` contains the possible values of the noise, and ``weights`` contains their cumulative probabilities.
    The last cumulative probability is 1.
    """

    places: Sequence[float]
    weights: Sequence[float]

    def sample(self, rng: Random) -> float:
        """Draw a value of the noise at random, according to the probabilities of the values."""
        return self.places[bisect_left(self.weights, rng.random())]


NO_NOISE: Final = CaseNoise((0.0,), (1.0,))


def compute_case_noise(groups: Iterable[Group], mean: float, concentration: float) -> CaseNoise:
    """Return the distribution of the noise of a case.

    ``groups`` contains the repeats of the case. ``mean`` and ``concentration`` describe the noise over all cases.
    """
    return _compute_posterior(tuple(sorted(filter(_has_repeats_without_fault, groups))), mean, concentration)


@lru_cache(_CACHE_SIZE)
def _compute_posterior(groups: tuple[Group, ...], mean: float, concentration: float) -> CaseNoise:
    if mean == 0.0:
        return NO_NOISE
    prior = _compute_cell_weights(mean, concentration)
    weights = [
        weight * likelihood for weight, likelihood in zip(prior, _compute_group_likelihoods(groups), strict=True)
    ]
    total = sum(weights)
    cumulated = list(accumulate(weight / total for weight in weights))
    return CaseNoise(_CELL_CENTRES, (*cumulated[:-1], 1.0))
