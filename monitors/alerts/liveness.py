"""Liveness: pings to an outside watchdog, and a log that has been silent far longer than its norm.

Lookout pings the address when a run starts, proved something, or failed. Any service that takes pings of the
healthchecks kind will do: ``URL/start``, ``URL``, ``URL/fail``, each with ``rid``, a UUID that joins the pings of
one run. Silence raises the watchdog's alarm, so a ping is sent only after work that proved something. A watchdog
that is down never stops a run. The address is a secret: aiohttp sends the ping, because it writes no address to any
log, as httpx does.

When a log has gone silent, what writes it may have died, and no news is then no good news. The norm is the log's
own past: the longest recent pause between two entries. No distribution is assumed, so nights and weekends are part
of the norm once they were seen: of n earlier pauses that behave alike the next one is the longest with a chance of
1 in n + 1, and ``log_silence_factor`` times longer far more rarely still.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

import aiohttp

from monitors.alerts.message import utc
from monitors.alerts.settings import WatchdogSettings
from monitors.plural import plural
from monitors.records.base import Record, UtcTime

TIMEOUT_S: Final = 5.0
"""The limit of one ping: a run waits at most this long for a watchdog that hangs."""
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


class LastPing(Record):
    """The newest ping about a target. ``arrived`` is ``None`` where nobody is configured to be pinged."""

    at: UtcTime
    beat: Beat
    arrived: bool | None


class Heartbeat:
    """Pings ``url``, a secret from the environment; ``None`` sends no ping. ``note`` hears what came of each."""

    def __init__(self, url: str | None, note: Callable[[Beat, bool | None], None] | None = None) -> None:
        self._url = url.rstrip("/") if url else None
        self._note = note

    @property
    def is_configured(self) -> bool:
        """Whether anybody is pinged."""
        return self._url is not None

    async def ping(self, beat: Beat, *, run_id: str, note: str = "") -> bool:
        """Send one ping with ``note`` as its body; false when it did not arrive. Never raises."""
        arrived = None if self._url is None else await self._send(self._url, beat, run_id, note)
        if self._note is not None:
            self._note(beat, arrived)
        return bool(arrived)

    async def _send(self, url: str, beat: Beat, run_id: str, note: str) -> bool:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        body = note[:BODY_CHARACTERS].encode(errors="replace")
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(f"{url}{beat.value}", params={"rid": rid_of(run_id)}, data=body) as answer,
            ):
                return answer.ok
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return False


def rid_of(run_id: str) -> str:
    """The UUID that joins the pings of one run."""
    return str(uuid.uuid5(RUNS, run_id))


def heartbeat_of(
    url: str | None, target: str, note: Callable[[Beat, bool | None], None] | None = None
) -> Heartbeat:
    """The heartbeat of ``target``: ``{target}`` in the address becomes its name."""
    return Heartbeat(url.replace(TARGET_MARK, target) if url else None, note)


def after_run(*, graded: int, broke: bool) -> Beat | None:
    """Which ping a finished run has earned: none when it broke nowhere and yet graded nothing."""
    if broke:
        return Beat.FAILED
    return Beat.PROVED if graded else None


LOG_SILENT = "LogSilent"
LOG_MISSING = "LogMissing"
LOG_GAP = "LogGap"
LOG_UNREADABLE = "LogUnreadable"
"""The log as a whole: its place does not answer, or it may not be read."""
LOG_LINES_UNREADABLE = "LogLinesUnreadable"

LOG_FAULTS = frozenset({LOG_SILENT, LOG_MISSING, LOG_GAP, LOG_UNREADABLE, LOG_LINES_UNREADABLE})
"""All that a reader of a log can find wrong with it."""


class LogSilence(Record):
    """A silence beyond the norm: how long, and what the norm is made of."""

    last_entry_at: UtcTime
    silent_for: timedelta
    longest_pause: timedelta
    entries: int


def silence_beyond_norm(
    entries_at: Sequence[datetime], now: datetime, settings: WatchdogSettings
) -> LogSilence | None:
    """Whether the log has been silent for too long at ``now``; ``entries_at`` are its entries' times, any order.

    Times after ``now`` (a clock that went back) count as now. ``None`` while too little is known of the log to
    have a norm, and for any silence within ``log_silence_factor`` times the longest pause or the floor.
    """
    times = sorted(min(at, now) for at in entries_at)
    if len(times) < settings.log_silence_entries:
        return None
    longest = max((after - before for before, after in pairwise(times)), default=timedelta(0))
    silent_for = now - times[-1]
    norm = max(longest * settings.log_silence_factor, timedelta(hours=settings.log_silence_floor_h))
    if silent_for <= norm:
        return None
    return LogSilence(last_entry_at=times[-1], silent_for=silent_for, longest_pause=longest, entries=len(times))


def log_silence_fault(silence: LogSilence) -> tuple[str, str]:
    """The fault's stable name and its words: it says nothing about the app, which may just have had a good day."""
    silent, longest = _span(silence.silent_for), _span(silence.longest_pause)
    detail = (
        f"The hallucination log has been silent for {silent}, since {utc(silence.last_entry_at)}; its longest "
        f"pause in {plural(silence.entries, 'entry', 'entries')} was {longest}. "
        "See whether the app still writes it and whether it is still read from the right place."
    )
    return LOG_SILENT, detail


def _span(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours < 1:
        return plural(round(hours * 60), "minute")
    return plural(round(hours), "hour") if hours < 48 else plural(round(hours / 24), "day")  # noqa: PLR2004 - two days read better as days
