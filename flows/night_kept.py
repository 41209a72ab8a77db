"""What one night has kept so far, and what earlier nights came to: a killed night goes on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from flows.night_reading import MOST_NOTICES, NightRead
from flows.night_weighing import strata_of
from flows.traffic_grading import GradedTurn, case_of, turn_id
from monitors.records.base import Record
from monitors.records.exchanges import Exchange
from monitors.records.grades import Assessment
from monitors.records.nights import NightReport, SeenConversation
from monitors.records.runs import CaseResult
from monitors.records.traffic import Sampled, SourceNotice, StratumCount, Watermark
from monitors.reports.atomic import write_atomically
from warehouse.nights import known_conversations, recent_nights
from warehouse.rows import AssessmentRow, ConversationRow, JournalRow, NightRow, OutboxRow, ResultRow
from warehouse.store import Store

LOAD_WAIT_S: Final = 60.0
EARLIER_NIGHTS: Final = 30
"""Whose counts expectations are made of, and whose watermarks are looked at."""


class Reading(Record):
    """What reading came to, kept beside the run: a night that goes on after a kill does not read again."""

    since: datetime
    until: datetime
    read: int
    known: int
    watermarks: tuple[Watermark, ...]
    notices: tuple[SourceNotice, ...]
    notice_count: int
    interrupted: tuple[str, ...]


class NightKept:
    """The journal of one night's run, and a file with what reading came to."""

    def __init__(self, store: Store, target: str, run_id: str, folder: Path) -> None:
        self._store, self._target, self._run_id = store, target, run_id
        self._file = folder / "reading.json"

    def earlier(self) -> tuple[NightReport, ...]:
        """Nights before this one, newest first. Loads what waits."""
        self._store.load_pending(LOAD_WAIT_S)
        nights = recent_nights(self._store, self._target, EARLIER_NIGHTS)
        return tuple(one for one in nights if one.run_id != self._run_id)

    def known(self, since: Mapping[str, datetime]) -> Mapping[str, frozenset[str]]:
        """Ids that earlier nights took of each source since a time."""
        return {
            name: known_conversations(self._store, self._target, name, moment) for name, moment in since.items()
        }

    def append(self, rows: Sequence[JournalRow]) -> None:
        """Keep rows together."""
        if rows:
            self._store.journal.append(rows, run_id=self._run_id)

    def note(self, read: NightRead) -> Reading:
        """Note that everything was read and drawn: written after the rows."""
        reading = Reading(
            since=read.since,
            until=read.until,
            read=len(read.conversations),
            known=read.known,
            watermarks=tuple(read.watermarks),
            notices=tuple(read.notices[:MOST_NOTICES]),
            notice_count=len(read.notices),
            interrupted=tuple(read.interrupted),
        )
        write_atomically(self._file, [reading.model_dump_json()])
        return reading

    def reading(self) -> Reading | None:
        """What reading came to, once it was done."""
        if not self._file.exists():
            return None
        return Reading.model_validate_json(self._file.read_text(encoding="utf-8"))

    def report(self) -> NightReport | None:
        """What the night came to, once it was done."""
        return next((row.row for row in self._rows() if isinstance(row, NightRow)), None)

    def strata(self) -> tuple[StratumCount, ...]:
        """How many conversations each stratum had, and how many of them were drawn."""
        counts: dict[str, tuple[int, int]] = {}
        for one in self._seen():
            there, drawn = counts.get(one.stratum, (0, 0))
            counts[one.stratum] = there + 1, drawn + (one.drawn is not None)
        return strata_of(counts)

    def sampled(self) -> list[Sampled]:
        """The drawn conversations as they may be stored."""
        return [one.drawn for one in self._seen() if one.drawn is not None]

    def turns(self) -> list[GradedTurn]:
        """Every drawn reply with what it came to last, and the passages that were kept of it."""
        passages = {
            turn_id(one.conversation.id, number): turn.context
            for one in self.sampled()
            for number, turn in enumerate(one.conversation.turns)
        }
        return [GradedTurn(result=result, passages=passages.get(result.case.id, ())) for result in self.results()]

    def results(self) -> list[CaseResult]:
        """Every drawn reply with what it came to last, in the order in which they were drawn."""
        exchanges: dict[str, Exchange] = {}
        assessments: dict[str, Assessment] = {}
        for row in self._rows():
            if isinstance(row, ResultRow) and isinstance(row.row, Exchange):
                exchanges[row.row.case_id] = row.row
            elif isinstance(row, AssessmentRow):
                assessments[row.row.case_id] = row.row
        return [
            CaseResult(case=case_of(exchange, assessments[key]), result=exchange, assessment=assessments[key])
            for key, exchange in exchanges.items()
        ]

    def _seen(self) -> list[SeenConversation]:
        """Each conversation once: a night that was killed before its note has read twice."""
        seen: dict[str, SeenConversation] = {}
        for row in self._rows():
            if isinstance(row, ConversationRow):
                seen.setdefault(row.row.id, row.row)
        return list(seen.values())

    def _rows(self) -> list[JournalRow | OutboxRow]:
        return list(self._store.journal.read_run(self._run_id))


def rows_of(result: CaseResult) -> list[JournalRow]:
    """What is kept of a graded reply."""
    return [ResultRow(row=result.result), AssessmentRow(row=result.assessment)]
