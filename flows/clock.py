"""The real clock, for what builds a context."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def uptime() -> tuple[str, float] | None:
    """A name for this start of the machine, and the seconds since then, asleep or not; ``None`` where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return boot, time.clock_gettime(time.CLOCK_BOOTTIME)


Clock = Callable[[], datetime]
"""The clock of a run and of all that it makes, which its context carries."""
