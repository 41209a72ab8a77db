"""What one night has kept so far, and what earlier nights came to: a killed night goes on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from flows.night_judging import NightJudged, is_open
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
from warehouse.nights import known_conversations, night_of_run, recent_nights
from warehouse.rows import AssessmentRow, ConversationRow, JournalRow, NightRow, OutboxRow, ResultRow
from warehouse.store import Store

LOAD_WAIT_S: Final = 60.0
READING: Final = "reading.json"
JUDGED: Final = "judged.json"
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
    """The journal of one night's run, and two notes beside it: what reading came to, and what judging did.

    A note is written before the rows that it belongs to, which are one segment, and counts once they are there: a
    kill in between does that step again from its beginning. Both notes go when the night is over.
    """

    def __init__(self, store: Store, target: str, run_id: str, folder: Path) -> None:
        self._store, self._target, self._run_id = store, target, run_id
        self._folder = folder

    def earlier(self) -> tuple[NightReport, ...]:
        """Nights before this one, newest first. Loads what waits."""
        self._store.load_pending(LOAD_WAIT_S)
        nights = recent_nights(self._store, self._target, EARLIER_NIGHTS)
        return tuple(one for one in nights if one.run_id != self._run_id)

    def known(self, since: Mapping[str, datetime]) -> Mapping[str, frozenset[str]]:
        """Ids that earlier nights took of each source since a time; what this night kept itself is none of them."""
        mine = {one.id for one in self._seen()}
        return {
            name: known_conversations(self._store, self._target, name, moment) - mine
            for name, moment in since.items()
        }

    def keep_reading(self, read: NightRead, rows: Sequence[JournalRow]) -> Reading:
        """Keep all that was seen, and what was drawn with its grades: ``rows`` together."""
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
        self._note(READING, reading)
        self._append(rows)
        return reading

    def reading(self) -> Reading | None:
        """What reading came to, once it was done."""
        text = self._noted(READING)
        reading = Reading.model_validate_json(text) if text is not None else None
        return reading if reading is not None and (not reading.read or self._seen()) else None

    def keep_judged(self, judged: NightJudged, settled: Sequence[CaseResult]) -> None:
        """Keep what judging came to, with the replies that it ``settled``."""
        self._note(JUDGED, judged)
        self._append([AssessmentRow(row=one.assessment) for one in settled])

    def judged(self) -> NightJudged | None:
        """What judging came to, once it was done."""
        text = self._noted(JUDGED)
        if text is None or any(is_open(one) for one in self.turns()):
            return None
        return NightJudged.model_validate_json(text)

    def finish(self, report: NightReport) -> None:
        """The night is over."""
        self._append([NightRow(row=report)])
        for name in (JUDGED, READING):
            (self._folder / name).unlink(missing_ok=True)

    def report(self) -> NightReport | None:
        """What the night came to, once it was done."""
        kept = next((row.row for row in self._rows() if isinstance(row, NightRow)), None)
        return kept or night_of_run(self._store, self._run_id)

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

    def sources(self) -> Mapping[str, str]:
        """The source of each drawn conversation, by the id that it is stored under."""
        return {one.drawn.conversation.id: one.source for one in self._seen() if one.drawn is not None}

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

    def _note(self, name: str, record: Record) -> None:
        write_atomically(self._folder / name, [record.model_dump_json()])

    def _noted(self, name: str) -> str | None:
        file = self._folder / name
        return file.read_text(encoding="utf-8") if file.exists() else None

    def _append(self, rows: Sequence[JournalRow]) -> None:
        if rows:
            self._store.journal.append(rows, run_id=self._run_id)

    def _seen(self) -> list[SeenConversation]:
        """Each conversation once: a night whose note was lost has read twice."""
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
