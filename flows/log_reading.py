"""What is new in a hallucination log goes into the journal, with the place where reading stands, in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from flows.alone import alone
from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.redact import redact
from monitors.records.base import Record
from monitors.records.incidents import IncidentKind
from monitors.records.logs import (
    BlockedReply,
    HallucinationEntry,
    LogCursor,
    LoggedHallucination,
    LogNotice,
    QuarantinedLine,
)
from monitors.sources.hallucination_log import is_whole_entry, read_line
from monitors.sources.log_files import LogPlace
from monitors.sources.log_tail import Limits, LogBatch, follow
from warehouse.logs import log_cursor
from warehouse.rows import CursorRow, HallucinationRow, JournalRow, QuarantineRow
from warehouse.store import Store

LOAD_WAIT_S: Final = 30.0
"""As for messages: a load of a whole night takes seconds."""

Protect = Callable[[str], str]
"""Makes a text safe to be stored."""


class LogLook(Record):
    """What one look at a log found. ``history`` are entries that stood there before it was watched."""

    entries: int = 0
    history: int = 0
    aside: tuple[QuarantinedLine, ...] = ()
    """Lines that are no entries: the first few of them."""
    aside_count: int = 0
    notices: tuple[LogNotice, ...] = ()


@dataclass(frozen=True)
class LogReader:
    """Reads one target's log. ``protect`` masks texts before they leave memory; ``now`` is the clock."""

    target: str
    place: LogPlace
    store: Store
    protect: Protect
    limits: Limits
    now: Callable[[], datetime]

    def look(self) -> LogLook:
        """Read and keep what is new; durable when this returns, and loaded into the warehouse.

        Raises `SourceUnavailable` when the log cannot be read, `WarehouseBusy` when it is not known where reading
        stands: then nothing was read, and the next look begins where this one did.
        """
        with alone(self.store.database.file.parent, f"log {self.target}", wait_s=LOAD_WAIT_S):
            self.store.load_pending(LOAD_WAIT_S)
            found = LogLook()
            cursor = log_cursor(self.store, self.target, wait_s=LOAD_WAIT_S)
            with self.place.look() as files:
                for batch in follow(files, self.target, cursor, is_whole=is_whole_entry, limits=self.limits):
                    found = self._kept(found, batch)
            self.store.load_pending(LOAD_WAIT_S)
        return found

    def _kept(self, found: LogLook, batch: LogBatch) -> LogLook:
        rows = list(self._rows(batch))
        self.store.journal.append([*rows, CursorRow(row=batch.cursor)], run_id=None)
        read = [row.row for row in rows if isinstance(row, HallucinationRow)]
        aside = tuple(row.row for row in rows if isinstance(row, QuarantineRow))
        return LogLook(
            entries=found.entries + sum(entry.tell for entry in read),
            history=found.history + sum(not entry.tell for entry in read),
            aside=(*found.aside, *aside)[:10],
            aside_count=found.aside_count + len(aside),
            notices=(*found.notices, *batch.notices),
        )

    def _rows(self, batch: LogBatch) -> Iterator[JournalRow]:
        for line in batch.lines:
            match read_line(self.target, line):
                case HallucinationEntry() as entry:
                    yield HallucinationRow(row=self._logged(entry, batch.cursor))
                case QuarantinedLine() as aside:
                    yield QuarantineRow(row=aside)
                case None:
                    continue

    def _logged(self, entry: HallucinationEntry, cursor: LogCursor) -> LoggedHallucination:
        return LoggedHallucination(
            target=self.target,
            fingerprint=fingerprint(self.target, IncidentKind.HALLUCINATION, entry.id),
            read_at=self.now(),
            tell=not cursor.is_history(entry.generation, entry.offset),
            entry=entry.model_copy(update={"reply": protected(entry.reply, self.protect)}),
        )


def protected(reply: BlockedReply, protect: Protect) -> BlockedReply:
    """The same entry with every text in it made safe, those of unknown fields too."""
    values = reply.model_dump(mode="json", exclude={"ts"})
    safe = {name: _protected(value, protect) for name, value in values.items()}
    return BlockedReply.model_validate({**safe, "ts": reply.ts})


def _protected(value: JsonValue, protect: Protect) -> JsonValue:
    match value:
        case str():
            return protect(value)
        case list():
            return [_protected(item, protect) for item in value]
        case dict():
            return {protect(name): _protected(item, protect) for name, item in value.items()}
        case _:
            return value


def masked(account_patterns: tuple[str, ...]) -> Protect:
    """Personal data and secrets become their kind's name."""
    return lambda text: redact(text, account_patterns=account_patterns)
