"""A log that has gone silent far beyond its norm: what writes it may have died, and no news is then no good news.

The norm is the log's own past: the longest pause between two entries that was seen lately. No distribution is
assumed, so nights and weekends are part of the norm once they were seen: of n earlier pauses that behave alike the
next one is the longest with a chance of 1 in n + 1, and ``log_silence_factor`` times longer far more rarely still.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.message import utc
from monitors.alerts.watchdog_settings import WatchdogSettings
from monitors.alerts.wording import counted
from monitors.records.base import Record, UtcTime
from monitors.records.incidents import IncidentKind

LOG_SILENT = "LogSilent"
LOG_MISSING = "LogMissing"
LOG_GAP = "LogGap"
LOG_UNREADABLE = "LogUnreadable"
"""The log as a whole: nobody answers, or it may not be read."""
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
    """The fault's stable name and its words: nothing is said about the app, which may just have had a good day."""
    silent, longest = _span(silence.silent_for), _span(silence.longest_pause)
    detail = (
        f"The hallucination log has been silent for {silent}, since {utc(silence.last_entry_at)}; its longest "
        f"pause in {counted(silence.entries, 'entry', 'entries')} was {longest}. "
        "See whether the app still writes it and whether it is still read from the right place."
    )
    return LOG_SILENT, detail


def log_fault_fingerprints(target: str) -> frozenset[str]:
    """The fingerprints of what can be wrong with a log of ``target``: only its reader can say that it is over."""
    return frozenset(fingerprint(target, IncidentKind.MONITOR_FAULT, what) for what in LOG_FAULTS)


def _span(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours < 1:
        return counted(round(hours * 60), "minute")
    return counted(round(hours), "hour") if hours < 48 else counted(round(hours / 24), "day")  # noqa: PLR2004 - two days read better as days
