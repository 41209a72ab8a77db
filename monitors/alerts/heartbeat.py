"""A sign of life for a watchdog outside: the address is pinged when a run starts, proved something, or failed.

Any service that takes pings of the healthchecks kind will do: ``URL/start``, ``URL``, ``URL/fail``, each with
``rid``, a UUID that joins the pings of one run. Silence is what raises its alarm, so a ping is sent only after
work that proved something, and a watchdog that is down never stops a run.

The address is a secret. aiohttp asks, because it writes no address to any log, as httpx does.
"""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import Final

import aiohttp

TIMEOUT_S: Final = 5.0
"""Of one ping; a run waits at most this long for a watchdog that hangs."""
BODY_CHARACTERS: Final = 1_000
TARGET_MARK: Final = "{target}"
"""Stands in the address for the target's name, where each target has a check of its own."""
RUNS: Final = uuid.UUID("8c5f7e0e-6f0b-5f5e-9d0a-4a1a5be6c3d1")
"""The namespace of our run ids, made up once, so that the same run always has the same ``rid``."""


class Beat(StrEnum):
    """What a ping says."""

    STARTED = "/start"
    PROVED = ""
    """Something was truly graded: never sent after an empty run."""
    FAILED = "/fail"


class Heartbeat:
    """Pings ``url``, a secret from the environment; ``None`` pings nobody."""

    def __init__(self, url: str | None) -> None:
        self._url = url.rstrip("/") if url else None

    @property
    def is_configured(self) -> bool:
        """Whether anybody is pinged."""
        return self._url is not None

    async def ping(self, beat: Beat, *, run_id: str, note: str = "") -> bool:
        """Send one ping with ``note`` as its body; false when it did not arrive. Never raises."""
        if self._url is None:
            return False
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        body = note[:BODY_CHARACTERS].encode(errors="replace")
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(f"{self._url}{beat.value}", params={"rid": rid_of(run_id)}, data=body) as answer,
            ):
                return answer.ok
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return False


def rid_of(run_id: str) -> str:
    """The UUID that joins the pings of one run."""
    return str(uuid.uuid5(RUNS, run_id))


def heartbeat_of(url: str | None, target: str) -> Heartbeat:
    """The heartbeat of ``target``: ``{target}`` in the address becomes its name."""
    return Heartbeat(url.replace(TARGET_MARK, target) if url else None)


def after_run(*, graded: int, broke: bool) -> Beat | None:
    """Which ping a finished run has earned: none when it broke nowhere and yet graded nothing."""
    if broke:
        return Beat.FAILED
    return Beat.PROVED if graded else None
