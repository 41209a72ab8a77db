"""Retry failed requests: decide which failures may be temporary, and how long to wait.

Lookout retries requests itself, because the retries of client libraries have no time limit that fits a run.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from monitors.errors import JudgeUnavailable, MonitorError
from monitors.records.base import Record

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_SERVER_ERROR: Final = 500
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def is_retryable(status: int) -> bool:
    """Return whether a request with this HTTP status may succeed if it is repeated later.

    The result is true for a timeout, a conflict, a rate limit and a server error (HTTP 408, 409, 425, 429, and 500
    or higher).
    """
    return status in _RETRYABLE or status >= _SERVER_ERROR


def parse_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait time from the Retry-After header in seconds.

    Returns ``None`` if the header is missing or invalid. The header contains a number of seconds, or a time. The
    wait until such a time is counted from the Date header, because both times come from the server's clock. The
    names in ``headers`` must be in lower case.
    """
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        until, now = (email.utils.parsedate_to_datetime(text) for text in (value, headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None


T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.5


class TryAgain(Exception):
    """Raised if an attempt failed, but a later attempt may succeed.

    ``after_s`` is the wait time in seconds that the server requested, or ``None``. ``error`` is the exception to
    raise if no attempt is left: ``why``, or this `TryAgain` itself if ``why`` is a string.
    """

    def __init__(self, why: str | MonitorError, after_s: float | None = None) -> None:
        super().__init__(str(why))
        self.error = why if isinstance(why, MonitorError) else self
        self.after_s = after_s


class RetryPolicy(Record):
    """Limits for the requests that one verdict of a judge may need.

    ``try_s`` is the time limit in seconds for one attempt, and ``deadline_s`` for all attempts and pauses
    together.
    """

    deadline_s: float = 90.0
    try_s: float = 45.0
    tries: int = 4
    most_pause_s: float = 20.0


async def retry_with_pauses(
    attempt: Callable[[], Awaitable[T]],
    *,
    tries: int,
    first_pause_s: float,
    max_pause_s: float = math.inf,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Call ``attempt`` until it succeeds, at most ``tries`` times, and return its result.

    If all attempts fail, the `TryAgain.error` of the last attempt is raised. The pause before the next attempt is
    `TryAgain.after_s`. If ``after_s`` is ``None``, the pause is ``first_pause_s`` after the first attempt, and
    doubles after each further attempt. No pause is longer than ``max_pause_s``. All other errors are raised at
    once.
    """
    for number in range(tries - 1):
        try:
            return await attempt()
        except TryAgain as failure:
            wanted_s = failure.after_s if failure.after_s is not None else first_pause_s * 2**number
        # Wait as long as the server asked, or twice as long as the last time.
        await sleep(min(wanted_s, max_pause_s))
    try:
        return await attempt()
    except TryAgain as last:
        raise last.error from None


async def retry_judge_request(
    attempt: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    *,
    provider: str,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Return the result of the first successful attempt. Raises `JudgeUnavailable` if no attempt succeeds.

    The error contains the text of the last failure. If the provider requests a wait of more than
    ``policy.most_pause_s`` seconds, there is no further attempt.
    """
    last, tries, max_s = "nothing came back", policy.tries, policy.most_pause_s

    async def try_once() -> T:
        nonlocal last
        try:
            return await attempt()
        except TryAgain as failure:
            last = str(failure)
            if failure.after_s is not None and failure.after_s > max_s:
                raise JudgeUnavailable(
                    f"{provider}: {last}; the server asks Lookout to wait {failure.after_s:.0f} s"
                ) from None
            raise TryAgain(JudgeUnavailable(f"{provider}: {last}, {tries} times"), failure.after_s) from None

    try:
        async with asyncio.timeout(policy.deadline_s):
            return await retry_with_pauses(
                try_once, tries=tries, first_pause_s=FIRST_PAUSE_S, max_pause_s=max_s, sleep=pause
            )
    except TimeoutError:
        raise JudgeUnavailable(
            f"{provider}: no verdict within {policy.deadline_s:g} s; the last error was: {last}"
        ) from None
