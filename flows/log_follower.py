"""One look at a hallucination log: read, keep, tell of what is new, and of what is wrong with the log itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from flows.delivery import deliver_waiting
from flows.desk import Desk
from flows.fault_over import faults_over
from flows.log_reading import LogLook, LogReader
from flows.monitor_fault import Fault, tell_fault
from flows.notify import Notice, tell
from monitors.alerts.events import Sighting, hallucination
from monitors.alerts.log_silence import (
    LOG_GAP,
    LOG_LINES_UNREADABLE,
    LOG_MISSING,
    LOG_SILENT,
    LOG_UNREADABLE,
    log_silence_fault,
    silence_beyond_norm,
)
from monitors.alerts.watchdog_settings import WatchdogSettings
from monitors.errors import SourceUnavailable
from monitors.records.base import Record
from monitors.records.incidents import Alert, IncidentKind, Link, Observation
from monitors.records.logs import LoggedHallucination, LogNoticeKind
from monitors.sources.log_settings import HallucinationLogSettings
from warehouse.logs import entry_times, untold
from warehouse.messages import newest_page

TOLD_AT_ONCE: Final = 500
"""Entries in one message; more go into the next one. A message counts them, and shows the first few."""
NORM_DAYS: Final = 30
"""How far back the norm of a log's pauses is taken from: nights and weekends are in it."""
TRIES: Final = 3
RETRY_AFTER_S: Final = 5.0


class Looked(Record):
    """What came of one look. ``alerts`` are the ids of the messages that were decided."""

    target: str
    found: LogLook = LogLook()
    unreadable: str | None = None
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogFollower:
    """Follows one target's log. ``account_patterns`` are the target's own, for masking excerpts."""

    desk: Desk
    reader: LogReader
    settings: HallucinationLogSettings
    watchdog: WatchdogSettings
    account_patterns: tuple[str, ...]

    async def look(self) -> Looked:
        """Send what waits, read what is new, and tell it. Raises `WarehouseError`: then it is told by a later look.

        A log that cannot be read is tried three times, then told as a fault of the monitor; so is one that is
        missing, has lost lines, holds lines that are no entries, or is silent for too long.
        """
        began_at = self.desk.now()
        await deliver_waiting(self.desk)
        try:
            found = await self._read()
        except SourceUnavailable as error:
            await tell_fault(self.desk, Fault(LOG_UNREADABLE, str(error)))
            return Looked(target=self.desk.target, unreadable=str(error))
        alerts = await self._tell_entries()
        await self._tell_log(found, began_at)
        return Looked(target=self.desk.target, found=found, alerts=tuple(alert.id for alert in alerts))

    async def _read(self) -> LogLook:
        for _ in range(TRIES - 1):
            try:
                return await asyncio.to_thread(self.reader.look)
            except SourceUnavailable:
                await asyncio.sleep(RETRY_AFTER_S)
        return await asyncio.to_thread(self.reader.look)

    async def _tell_entries(self) -> list[Alert]:
        """All that nobody was told of, whichever look read it: a kill in between loses none."""
        told: list[Alert] = []
        while entries := await asyncio.to_thread(untold, self.desk.store, self.desk.target, most=TOLD_AT_ONCE):
            desk = await asyncio.to_thread(self._desk_of_burst)
            seen = [self._observed(desk, entry) for entry in entries]
            told += await tell(desk, seen, notice=Notice(links=self._links()))
            if len(entries) < TOLD_AT_ONCE:
                break
        return told

    def _desk_of_burst(self) -> Desk:
        """Of a burst all is told as one run's news, so that its first message grows instead of being repeated."""
        page = newest_page(self.desk.store, self.desk.target, IncidentKind.HALLUCINATION)
        if page is None or self.desk.now() - page.created_at > timedelta(minutes=self.settings.group_minutes):
            return self.desk
        return replace(self.desk, run_id=page.run_id)

    def _observed(self, desk: Desk, logged: LoggedHallucination) -> Observation:
        entry, reply = logged.entry, logged.entry.reply
        at = Sighting(
            target=desk.target,
            run_id=desk.run_id,
            seen_at=min(reply.ts or logged.read_at, logged.read_at),
            account_patterns=self.account_patterns,
        )
        return hallucination(
            at,
            entry_id=entry.id,
            user_text=reply.user_text or "",
            blocked_reply=reply.blocked_reply or "",
            reasons=reply.reasons,
            unsupported_claims=reply.unsupported_claims,
            chunk_count=reply.chunk_count,
            top_score=reply.top_score,
            policy_ids=reply.policy_ids,
            place=f"entry {entry.id}",
            settings=desk.settings,
        )

    def _links(self) -> tuple[Link, ...]:
        return (Link(label="log", href=self.settings.at),)

    async def _tell_log(self, found: LogLook, began_at: datetime) -> None:
        """What is wrong with the log itself, and what no longer is."""
        silent = await asyncio.to_thread(self._silent)
        wrong = {fault.what: fault for fault in [*_faults(found, self.settings), *silent]}
        for fault in wrong.values():
            await tell_fault(self.desk, fault)
        over = {what: words for what, words in _OVER.items() if what not in wrong}
        if not found.entries:
            over.pop(LOG_LINES_UNREADABLE, None)  # nothing was read that could show it
        await faults_over(self.desk, over, began_at=began_at)

    def _silent(self) -> Sequence[Fault]:
        now = self.desk.now()
        times = entry_times(self.desk.store, self.desk.target, now - timedelta(days=NORM_DAYS))
        silence = silence_beyond_norm(times, now, self.watchdog)
        return [] if silence is None else [Fault(*log_silence_fault(silence))]


_OVER: Final = {
    LOG_UNREADABLE: "The log can be read again.",
    LOG_MISSING: "The log is there again.",
    LOG_SILENT: "The log is written to again.",
    LOG_LINES_UNREADABLE: "New entries could be read.",
    LOG_GAP: None,
}
"""What is said when a fault is not found any more. What a gap has lost does not come back: that ends unsaid."""


def _faults(found: LogLook, settings: HallucinationLogSettings) -> list[Fault]:
    faults: list[Fault] = []
    for notice in found.notices:
        missing = notice.kind is LogNoticeKind.MISSING
        if missing and notice.offset == 0 and settings.may_be_missing:
            continue
        what = LOG_MISSING if missing else LOG_GAP
        faults.append(Fault(what, f"The hallucination log {settings.at}: {notice.detail}."))
    if found.aside:
        faults.append(Fault(LOG_LINES_UNREADABLE, _aside_words(found, settings)))
    return faults


def _aside_words(found: LogLook, settings: HallucinationLogSettings) -> str:
    first = found.aside[0]
    what = "a line" if found.aside_count == 1 else f"{found.aside_count:,} lines"
    return (
        f"The hallucination log {settings.at} holds {what} that could not be read as an entry, the first at byte "
        f"{first.offset:,}: {first.detail}. It was put aside, the lines around it were read; "
        "`lookout sql 'from quarantined_lines'` lists them."
    )
