"""Retries: which HTTP answers of a provider are worth another try, and when.

Requests are repeated where that can help, within a deadline of our own: a provider's SDK repeats them without a
cap.
"""

from __future__ import annotations

import asyncio
import email.utils
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from monitors.errors import JudgeUnavailable
from monitors.records.base import Record

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_SERVER_ERROR: Final = 500
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def is_worth_another_try(status: int) -> bool:
    """Whether the same request may work later: a limit, a lock, a fault or overload of the server (5xx, 529)."""
    return status in _RETRYABLE or status >= _SERVER_ERROR


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as Retry-After says: a number, or a time by the server's own clock (its Date header).

    ``None`` where it says nothing or nonsense: our own pauses hold then. Names of ``headers`` are in lower case.
    """
    wanted = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(wanted):
        return float(wanted)
    try:
        until, now = (email.utils.parsedate_to_datetime(one) for one in (wanted, headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None


T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.5
"""Doubled with each try: 0.5, 1, 2, 4 …"""


class TryAgain(Exception):
    """A try that failed and may work later. ``after_s`` is what the provider asked us to wait, if it did."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class RetryPolicy(Record):
    """How long one verdict may take. ``try_s`` is for one try, ``deadline_s`` over all tries and pauses."""

    deadline_s: float = 90.0
    try_s: float = 45.0
    tries: int = 4
    most_pause_s: float = 20.0


async def persistently(
    attempt: Callable[[], Awaitable[T]],
    patience: RetryPolicy,
    *,
    who: str,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The result of the first try that works. `JudgeUnavailable` names ``who`` and the last failure.

    A provider that asks for a longer pause than ``most_pause_s`` gets no repeated request, since it would only
    refuse; waiting for an hour is the next run's business.
    """
    last = "nothing came back"
    try:
        async with asyncio.timeout(patience.deadline_s):
            for number in range(patience.tries):
                try:
                    return await attempt()
                except TryAgain as failure:
                    last = str(failure)
                    wait_s = failure.after_s if failure.after_s is not None else FIRST_PAUSE_S * 2**number
                if wait_s > patience.most_pause_s:
                    raise JudgeUnavailable(f"{who}: {last}; it asks to wait {wait_s:.0f} s") from None
                if number + 1 < patience.tries:
                    await pause(wait_s)
    except TimeoutError:
        raise JudgeUnavailable(f"{who}: no verdict within {patience.deadline_s:g} s; last: {last}") from None
    raise JudgeUnavailable(f"{who}: {last}, {patience.tries} times")
