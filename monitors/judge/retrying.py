"""Ask again where that can help, within a deadline of our own: what a provider's SDK does about it has no cap."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from monitors.errors import JudgeUnavailable
from monitors.records.base import Record

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.5
"""Doubled with each try: 0.5, 1, 2, 4 …"""


class TryAgain(Exception):
    """A try that failed and may work later. ``after_s`` is what the provider asked us to wait, if it did."""

    def __init__(self, told: str, after_s: float | None = None) -> None:
        super().__init__(told)
        self.after_s = after_s


class Patience(Record):
    """How long one verdict may take. ``try_s`` is for one try, ``deadline_s`` over all tries and pauses."""

    deadline_s: float = 90.0
    try_s: float = 45.0
    tries: int = 4
    most_pause_s: float = 20.0


async def persistently(
    attempt: Callable[[], Awaitable[T]],
    patience: Patience,
    *,
    who: str,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The result of the first try that works. `JudgeUnavailable` names ``who`` and the last failure.

    A provider that asks for a longer pause than ``most_pause_s`` is taken at its word: nothing is asked again,
    since it would only refuse, and waiting for an hour is the next run's business.
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
