"""The difference of two shares over the same questions, with its interval. Pure."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from monitors.stats import wilson


class Paired(NamedTuple):
    """How often both, one or none of two answers to the same question were right."""

    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def total(self) -> int:
        """All pairs."""
        return sum(self)


def paired_difference(table: Paired, *, confidence: float = 0.95) -> tuple[float, float, float]:
    """First share minus second share, and the ends of its interval; (0, -1, 1) where nothing was counted.

    R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", Statistics in Medicine 17 (1998), method 10: Wilson's interval of either share, put together with the
    correlation between them. It keeps its level with twenty pairs, has a width also when all pairs agree, and never
    leaves [-1, 1]; Wald's has none of the three.
    """
    if table.total == 0:
        return 0.0, -1.0, 1.0
    total = table.total
    first, second = table.both + table.first_only, table.both + table.second_only
    share, other = first / total, second / total
    low, high = wilson(first, total, confidence=confidence)
    other_low, other_high = wilson(second, total, confidence=confidence)
    phi = _correlation(table)
    down, other_up = share - low, other_high - other
    up, other_down = high - share, other - other_low
    gap = share - other
    below = sqrt(max(0.0, down**2 - 2 * phi * down * other_up + other_up**2))
    above = sqrt(max(0.0, up**2 - 2 * phi * up * other_down + other_down**2))
    return gap, max(-1.0, gap - below), min(1.0, gap + above)


def _correlation(table: Paired) -> float:
    """Newcombe's phi: of a positive cross product half the pairs are taken off, as a correction for continuity."""
    a, b, c, d = table
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    cross = a * d - b * c
    if cross > 0:
        cross = max(0.0, cross - table.total / 2)
    return cross / sqrt(margins)
