"""Returns memory that a long-lived process has freed to the operating system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import Final

FIRST_AFTER_S: Final = 20.0
"""Seconds after the start: imports, registration and the first polls, which free most memory, are over."""
EVERY_S: Final = 600.0


async def return_freed_memory_regularly() -> None:
    """Return freed memory 20 seconds after the start, then every ten minutes, until cancelled."""
    pause_s = FIRST_AFTER_S
    while True:
        # Freed memory has no event.
        await asyncio.sleep(pause_s)
        return_freed_memory()
        pause_s = EVERY_S


def return_freed_memory() -> None:
    """Free what only cycles keep, and return free pages to the system. Without glibc only the first."""
    gc.collect()
    # Other C libraries do not have it, and return pages themselves.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
