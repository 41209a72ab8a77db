"""Waits for the effect of another process or thread that signals no event."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(
    condition: Callable[[], Found],
    *,
    timeout_s: float = 120.0,
    what: str | Callable[[], str],
    every_s: float = 0.1,
) -> Found:
    """Wait until ``condition()`` is true, and return its result.

    Raises `AssertionError` after ``timeout_s`` seconds. ``what`` describes the expected effect. It can also be a
    function that returns the description, for example with the log of a process. ``condition`` can raise an error
    itself, for example if the process has ended.
    """
    end = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(every_s)
    return found
