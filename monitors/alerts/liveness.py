"""Pings an external watchdog, and detects a log that has been silent for too long.

Lookout pings the watchdog when a run starts, when a run has graded an answer, and when a run fails. The watchdog
sends an alert if the pings stop. Any service that accepts the pings of healthchecks works: ``URL/start``, ``URL``
and ``URL/fail``. Each ping has a ``rid``, a UUID that all pings of one run share. A broken watchdog never stops a
run. The address is a secret. The pings are sent with aiohttp, because httpx would write the address to its log.

If a log is silent, the process that writes the log may be dead. Lookout compares the silence with the longest
recent pause between two entries of the same log. A silent night or weekend counts as normal after it has occurred
once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from itertools import pairwise
from typing import Final

import aiohttp

from monitors.alerts.message import format_utc
from monitors.alerts.settings import WatchdogSettings
from monitors.plural import plural
from monitors.records.base import Record, UtcTime

TIMEOUT_S: Final = 5.0
"""Timeout of one ping in seconds: the maximum time that a run waits for a watchdog that does not answer."""
MAX_BODY_CHARACTERS: Final = 1_000
TARGET_PLACEHOLDER: Final = "{target}"
"""Placeholder that a heartbeat's address may contain. Lookout replaces it with the target's name."""
PING_ID_NAMESPACE: Final = uuid.UUID("8c5f7e0e-6f0b-5f5e-9d0a-4a1a5be6c3d1")
"""The UUID namespace from which each ``rid`` is computed.

It is fixed, so that a run always has the same ``rid``.
"""


class Beat(StrEnum):
    """The kind of a ping. Its value is appended to the watchdog's address."""

    STARTED = "/start"
    PROVED = ""
    """The run has graded an answer. This ping is never sent after a run without grades."""
    FAILED = "/fail"


class LastPing(Record):
    """The newest ping for a target.

    ``arrived`` states whether the ping arrived, or is ``None`` if no watchdog is configured.
    """

    at: UtcTime
    beat: Beat
    arrived: bool | None


class Heartbeat:
    """Sends pings to the secret address ``url``. Without an address, no pings are sent.

    ``note`` is called with the result of each ping.
    """

    def __init__(self, url: str | None, note: Callable[[Beat, bool | None], None] | None = None) -> None:
        self._url = url.rstrip("/") if url else None
        self._note = note

    @property
    def is_configured(self) -> bool:
        """Return whether a watchdog is configured."""
        return self._url is not None

    async def ping(self, beat: Beat, *, run_id: str, note: str = "") -> bool:
        """Send one ping with ``note`` as its body. Return whether the ping arrived.

        A ping that fails raises no error.
        """
        arrived = None if self._url is None else await self._post_ping(self._url, beat, run_id, note)
        if self._note is not None:
            self._note(beat, arrived)
        return bool(arrived)

    async def _post_ping(self, url: str, beat: Beat, run_id: str, note: str) -> bool:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        body = note[:MAX_BODY_CHARACTERS].encode(errors="replace")
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(
                    f"{url}{beat.value}",
                    params={"rid": compute_ping_id(run_id)},
                    data=body,
                    allow_redirects=False,  # the address is secret, so no other address may get the ping
                ) as answer,
            ):
                return answer.status < HTTPStatus.MULTIPLE_CHOICES
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return False


def compute_ping_id(run_id: str) -> str:
    """Return the UUID that all pings of one run share."""
    return str(uuid.uuid5(PING_ID_NAMESPACE, run_id))


def build_heartbeat(
    url: str | None, target: str, note: Callable[[Beat, bool | None], None] | None = None
) -> Heartbeat:
    """Build the heartbeat of ``target``. If the address contains ``{target}``, the target's name replaces it."""
    return Heartbeat(url.replace(TARGET_PLACEHOLDER, target) if url else None, note)


def choose_final_ping(*, graded: int, broke: bool) -> Beat | None:
    """Return the ping for a finished run. Return ``None`` to send no ping.

    ``graded`` is the number of graded answers. ``broke`` is true if the run was stopped at its deadline, or if a
    poll for deploys is late. If ``broke`` is false and no answer was graded, no ping is sent.
    """
    if broke:
        return Beat.FAILED
    return Beat.PROVED if graded else None


LOG_SILENT = "LogSilent"
LOG_MISSING = "LogMissing"
LOG_GAP = "LogGap"
LOG_UNREADABLE = "LogUnreadable"
"""The name of the fault if a log cannot be read, because its source does not answer or permission is missing."""
LOG_LINES_UNREADABLE = "LogLinesUnreadable"

LOG_FAULTS = frozenset({LOG_SILENT, LOG_MISSING, LOG_GAP, LOG_UNREADABLE, LOG_LINES_UNREADABLE})
"""The names of all faults that Lookout can report about a log."""


class LogSilence(Record):
    """A log that has been silent for too long, with the numbers for the message."""

    last_entry_at: UtcTime
    silent_for: timedelta
    longest_pause: timedelta
    entries: int


def find_log_silence(
    entries_at: Sequence[datetime], now: datetime, settings: WatchdogSettings
) -> LogSilence | None:
    """Return the silence of a log at ``now``. Return ``None`` if the log has not been silent for too long.

    ``entries_at`` are the times of the log's entries in any order. A time after ``now`` counts as ``now``. The
    silence is too long if it is longer than ``log_silence_floor_h`` and longer than ``log_silence_factor`` times
    the longest pause between two entries. If the log has fewer than ``log_silence_entries`` entries, the result is
    ``None``.
    """
    times = sorted(min(at, now) for at in entries_at)
    if len(times) < settings.log_silence_entries:
        return None
    longest_pause = max((after - before for before, after in pairwise(times)), default=timedelta(0))
    silent_for = now - times[-1]
    norm = max(longest_pause * settings.log_silence_factor, timedelta(hours=settings.log_silence_floor_h))
    if silent_for <= norm:
        return None
    return LogSilence(
        last_entry_at=times[-1], silent_for=silent_for, longest_pause=longest_pause, entries=len(times)
    )


def name_and_describe_log_silence(silence: LogSilence) -> tuple[str, str]:
    """Return the name and the text of the fault for a silent log.

    The text does not blame the application, because the application may be healthy.
    """
    silent, longest = _format_rounded_duration(silence.silent_for), _format_rounded_duration(silence.longest_pause)
    detail = (
        f"The hallucination log has had no new entry for {silent}, since {format_utc(silence.last_entry_at)}. The "
        f"longest earlier pause in {plural(silence.entries, 'entry', 'entries')} was {longest}. Check that the app "
        "still writes the log, and that hallucination_log.at in lookout.toml is correct."
    )
    return LOG_SILENT, detail


def _format_rounded_duration(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours < 1:
        return plural(round(hours * 60), "minute")
    return plural(round(hours), "hour") if hours < 48 else plural(round(hours / 24), "day")  # noqa: PLR2004 - two days read better as days
