"""Releases unused memory of a long-running process to the operating system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import Final

FIRST_AFTER_S: Final = 20.0
"""Time of the first release, in seconds after the start.

By then, imports, registration and the first polls have ended.
"""
EVERY_S: Final = 600.0


async def release_unused_memory_regularly() -> None:
    """Release unused memory 20 seconds after the start, then every ten minutes, until cancelled."""
    pause_s = FIRST_AFTER_S
    while True:
        # No event says that memory was freed, so this is done regularly.
        await asyncio.sleep(pause_s)
        release_unused_memory()
        pause_s = EVERY_S


def release_unused_memory() -> None:
    """Collect garbage, and release free pages to the system. Without glibc, only collect garbage."""
    gc.collect()
    # Other C libraries do not have this function, and return pages by themselves.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
