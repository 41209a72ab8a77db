"""Wait for an effect of another process or thread, if no event signals the effect."""

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

    Raises `AssertionError` with ``what`` after ``timeout_s`` seconds. ``what`` describes the expected effect. It is
    a text, or a function that returns the text, for example with the log of a process. An error from ``condition``
    ends the wait.
    """
    end = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(every_s)
    return found
