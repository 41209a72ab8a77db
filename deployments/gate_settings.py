"""The gate's settings with what the command line says of them."""

from __future__ import annotations

import math
from typing import Final

from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings

BEST_SHARE: Final = 1.0
BEST_RATING: Final = 5.0


def with_flags(
    settings: GateSettings, *, min_score: float | None, fail_on_regression: bool, strict: bool
) -> GateSettings:
    """What the flags say goes before the file; a flag that was not given changes nothing. Raises `ConfigError`."""
    changed: dict[str, object] = _floor(min_score) if min_score is not None else {}
    if fail_on_regression:
        changed["fail_on_regression"] = True
    if strict:
        changed["strict"] = True
    return settings.model_copy(update=changed)


def _floor(min_score: float) -> dict[str, object]:
    """Up to 1 the weighted score, above that the average rating, which must then be there."""
    if math.isfinite(min_score) and 0 <= min_score <= BEST_SHARE:
        return {"min_weighted_score": min_score}
    if math.isfinite(min_score) and BEST_SHARE < min_score <= BEST_RATING:
        return {"min_rubric": min_score, "rating_needed": True}
    raise ConfigError(
        f"--min-score {min_score:g}: accepted is 0 to 1 for the weighted score (0.98), or above 1 to 5 for the "
        "average rating of the reports (4.0)"
    )
