"""Intervals and percentiles. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist


def wilson(passed: float, total: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a share, both ends in [0, 1]; (0, 1) when nothing was counted.

    E. B. Wilson, "Probable inference", JASA 22 (1927). Written out because importing scipy.stats for it takes
    seconds on a busy machine; the tests hold it against scipy and against published examples.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"passed must be between 0 and total, got {passed} of {total}")
    if total == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, weight = passed / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    spread = z * sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    low = 0.0 if passed == 0 else max(0.0, middle - spread)
    high = 1.0 if passed == total else min(1.0, middle + spread)
    return low, high


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
