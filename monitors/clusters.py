"""Intervals for a share over cases that share policies, and so tend to fail together. Pure.

Design effect: the variance of the share as a ratio over clusters, divided by what as many independent cases would
have; the cases count as that many fewer (J. N. K. Rao, A. J. Scott, "A simple method for the analysis of clustered
binary data", Biometrics 48, 1992). Few clusters know their own spread badly, so the effective number shrinks by the
ratio of normal to t quantiles, as E. L. Korn and B. I. Graubard do (Survey Methodology 24, 1998), and never exceeds
the true one. Where all cases came out alike nothing is learnt about how they fail together, and they count as they
are (J. D. Parker and others, "National Center for Health Statistics data presentation standards for proportions",
Vital and Health Statistics 2 (175), 2017).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from monitors.exact_limits import beta_quantile
from monitors.stats import wilson


class ClusterCount(NamedTuple):
    """One cluster: ``passed`` of its ``total`` cases."""

    passed: int
    total: int


class ClusteredShare(NamedTuple):
    """A share with its interval; ``effective`` is how many independent cases would know it as well."""

    passed: int
    total: int
    clusters: int
    effective: float
    low: float
    high: float


def by_cluster(cases: Iterable[tuple[Hashable, bool]]) -> tuple[ClusterCount, ...]:
    """Cases as (cluster, passed) → counts. Every case without a cluster needs a name of its own."""
    counts: dict[Hashable, list[int]] = {}
    for cluster, passed in cases:
        counted = counts.setdefault(cluster, [0, 0])
        counted[0] += passed
        counted[1] += 1
    return tuple(ClusterCount(passed, total) for passed, total in counts.values())


def design_effect(clusters: Iterable[ClusterCount]) -> float | None:
    """How many times wider the variance is than that of independent cases; ``None`` where it cannot be told.

    That is with fewer than two clusters, or when all cases came out alike.
    """
    counts = tuple(clusters)
    passed, total = sum(one.passed for one in counts), sum(one.total for one in counts)
    number = len(counts)
    if number < 2 or passed in {0, total}:  # noqa: PLR2004 - one cluster has no spread
        return None
    share = passed / total
    spread = sum((one.passed - share * one.total) ** 2 for one in counts)
    return number / (number - 1) * spread / total / (share * (1 - share))


def clustered_share(clusters: Iterable[ClusterCount], *, confidence: float = 0.95) -> ClusteredShare:
    """A share with Wilson's interval at the effective number of cases; (0, 1) when nothing was counted."""
    counts = tuple(clusters)
    passed, total = sum(one.passed for one in counts), sum(one.total for one in counts)
    effective = _effective(counts, passed, total, confidence)
    low, high = wilson(passed / total * effective if total else 0, effective, confidence=confidence)
    return ClusteredShare(passed, total, len(counts), effective, low, high)


def _effective(counts: tuple[ClusterCount, ...], passed: int, total: int, confidence: float) -> float:
    effect = design_effect(counts)
    if all(one.total == 1 for one in counts) or passed in {0, total}:
        return float(total)
    if effect is None:
        return 1.0  # one cluster alone: all its cases are one look
    known = NormalDist().inv_cdf((1 + confidence) / 2) / t_quantile(confidence, len(counts) - 1)
    return min(float(total), total / effect * known**2) if effect else float(total)


@lru_cache(1024)
def t_quantile(confidence: float, degrees: int) -> float:
    """Student's t: the bound within which ``confidence`` of its distribution lies on both sides.

    By the Beta distribution of ``degrees / (degrees + t^2)``.
    """
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, got {degrees}")
    share = beta_quantile(1 - confidence, degrees / 2, 0.5)
    return sqrt(degrees * (1 - share) / share)
