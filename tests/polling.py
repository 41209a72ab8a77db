"""Wait for what another process or thread brings about, where there is no event to wait on."""

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
    """Return what ``condition()`` returns as soon as that is true; `AssertionError` after ``timeout_s`` seconds.

    ``what`` says what was waited for, or returns it, for example with the log of the process that should bring it
    about. A condition that can tell that this process has ended raises.
    """
    end = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(every_s)
    return found
