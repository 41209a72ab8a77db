"""Reads the real clock.

Only functions that build a context use this module. All other functions get a clock as an argument.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def read_scheduled_time() -> datetime:
    """Return the time for which this flow run was scheduled.

    If no Prefect deployment started this run, return the current time.
    """
    from prefect.runtime import deployment, flow_run  # Prefect reads its settings at this import

    if not deployment.id:
        return utc_now()
    return datetime.fromtimestamp(
        flow_run.scheduled_start_time.timestamp(), UTC
    )  # Prefect's time is a subclass of datetime


def read_boot_and_uptime() -> tuple[str, float] | None:
    """Return this machine's boot id and the seconds since boot, including time in sleep mode.

    Return ``None`` if the boot id cannot be read.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return boot, time.clock_gettime(time.CLOCK_BOOTTIME)


Clock = Callable[[], datetime]
"""A function that returns the current time in UTC."""
