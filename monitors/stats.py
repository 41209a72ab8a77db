"""Intervals and percentiles. Pure; scipy where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def wilson(passed: int, total: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a share, both ends in [0, 1]; (0, 1) when nothing was counted.

    E. B. Wilson, "Probable inference", JASA 22 (1927); computed by scipy.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"passed must be between 0 and total, got {passed} of {total}")
    if total == 0:
        return 0.0, 1.0
    # Half a second to import, and only reports need it; scipy ships no types.
    from scipy.stats import binomtest  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    interval: Any = binomtest(passed, total).proportion_ci(confidence_level=confidence, method="wilson")
    return max(0.0, float(interval.low)), min(1.0, float(interval.high))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0..1) of ``values`` lies, by linear interpolation (Hyndman-Fan type 7).

    Raises ``ValueError`` on an empty sequence: the percentile of nothing is not a number.
    """
    if not values:
        raise ValueError("no values to take a percentile of")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
