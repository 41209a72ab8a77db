"""Which HTTP answers of a provider are worth another try, and when."""

from __future__ import annotations

from typing import Any, Final

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_SERVER_ERROR: Final = 500


def is_worth_another_try(status: int) -> bool:
    """Whether the same request may work later: a limit, a lock, a fault or overload of the server (5xx, 529)."""
    return status in _RETRYABLE or status >= _SERVER_ERROR


def retry_after_s(headers: Any) -> float | None:
    """Seconds to wait as the header says; a date or nonsense is ignored, our own pauses hold then."""
    try:
        return max(0.0, float(headers.get("retry-after")))
    except (TypeError, ValueError):
        return None
