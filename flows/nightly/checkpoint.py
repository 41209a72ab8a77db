"""Stores the progress of a nightly run, so that a killed run can be resumed. Also reads earlier reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from flows.data_folder import UPKEEP_WAIT_S
from flows.nightly.census import Census
from flows.nightly.grading import GradedTurn, NightlyJudging, TrafficGrader, build_turn_id, is_waiting_for_judge
from flows.nightly.read import NightlyRead
from flows.nightly.state import IntakeCheckpoint, NightlyState
from monitors.records.exchanges import Exchange
from monitors.records.grades import Assessment
from monitors.records.nightly import NightlyReport, SeenConversation
from monitors.records.runs import CaseResult
from monitors.records.traffic import StratumCount
from monitors.sources.intake import KnownIds
from monitors.sources.question_quality import add_tallies, summarise_question_thumbs
from monitors.storage import write_atomically
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ConversationRow, JournalRow, NightlyRunRow, OutboxRow, ResultRow
from warehouse.queries.traffic import (
    find_nightly_report,
    iterate_known_conversation_hashes,
    list_recent_nightly_reports,
)

READING_FILE: Final = "reading.json"
JUDGED_FILE: Final = "judged.json"
ROWS_PER_SEGMENT: Final = 5_000
"""The number of conversations in one journal segment. Such a segment has about 1.5 MB."""
EARLIER_NIGHT_COUNT: Final = 30
"""The number of earlier nightly runs from which expected rates and watermarks are computed.

A watermark is the time up to which a source has been read.
"""


class NightlyCheckpoint:
    """Stores the progress of one nightly run in the journal and in two files.

    The files contain the results of reading and of judging. Each file is written before the journal segment with
    the rows of the same step, and is valid only if these rows exist. If the process is killed between these two
    writes, the resumed run repeats the step. Both files are deleted when the nightly run has ended.
    """

    def __init__(self, store: Store, target: str, run_id: str, folder: Path, grader: TrafficGrader) -> None:
        self._store, self._target, self._run_id = store, target, run_id
        self._folder, self._grader = folder, grader

    def load_journal_and_earlier_reports(self) -> tuple[NightlyReport, ...]:
        """Load the journal into the warehouse. Return the reports of earlier nightly runs, newest first."""
        self._store.load_pending(UPKEEP_WAIT_S)
        nightly_runs = list_recent_nightly_reports(self._store, self._target, EARLIER_NIGHT_COUNT)
        return tuple(nightly for nightly in nightly_runs if nightly.run_id != self._run_id)

    def load_known_conversation_ids(self, since: Mapping[str, datetime]) -> Mapping[str, KnownIds]:
        """For each source, load the ids of the conversations that other nightly runs have read.

        ``since`` maps the name of a source to a time. Conversations before this time are not included.
        """
        return {
            name: KnownIds(
                iterate_known_conversation_hashes(self._store, self._target, name, moment, except_run=self._run_id)
            )
            for name, moment in since.items()
        }

    def store_read_conversations(self, state: NightlyState, counted: Iterable[SeenConversation]) -> None:
        """Store the conversations that were read but not sampled (``counted``), then the graded sample.

        The conversations in ``counted`` are stored without the run's id, because a resumed run does not need them.
        """
        unsampled = (ConversationRow(row=conversation) for conversation in counted)
        while part := list[JournalRow](islice(unsampled, ROWS_PER_SEGMENT)):
            self._store.journal.append(part, run_id=None)
        write_atomically(self._folder / READING_FILE, state.reading.model_dump_json())
        rows: list[JournalRow] = []
        for result in state.results:
            rows += [ResultRow(row=result.result), AssessmentRow(row=result.assessment)]
        rows += [ConversationRow(row=row) for row in state.sample]
        if rows:
            self._store.journal.append(rows, run_id=self._run_id)

    def save_judged_replies(self, judged: NightlyJudging, results: Sequence[CaseResult]) -> None:
        """Store the result of judging, and the replies with their new grades."""
        write_atomically(self._folder / JUDGED_FILE, judged.model_dump_json())
        if results:
            rows = [AssessmentRow(row=result.assessment) for result in results]
            self._store.journal.append(rows, run_id=self._run_id)

    def load_state_to_resume(self) -> NightlyState | None:
        """Load the state of a killed nightly run.

        Return ``None`` if the run was killed before it stored its sample.
        """
        text = self._read_checkpoint_file(READING_FILE)
        reading = IntakeCheckpoint.model_validate_json(text) if text is not None else None
        if reading is None or (reading.read and not reading.strata):
            return None
        sample = self.load_sample()
        if not sample and any(stratum.sampled for stratum in reading.strata):
            return None
        state = NightlyState(reading=reading, sample=sample, turns=self._load_graded_turns(sample))
        text = self._read_checkpoint_file(JUDGED_FILE)
        if text is None or any(is_waiting_for_judge(turn) for turn in state.turns):
            return state
        return state.with_judging(NightlyJudging.model_validate_json(text))

    def store_report_and_finish(self, report: NightlyReport) -> None:
        """Store the report and delete the checkpoint's files."""
        self._store.journal.append([NightlyRunRow(row=report)], run_id=self._run_id)
        for name in (JUDGED_FILE, READING_FILE):
            (self._folder / name).unlink(missing_ok=True)

    def load_report(self) -> NightlyReport | None:
        """Load the report of the nightly run, or ``None`` if the run is not finished."""
        saved = next((row.row for row in self._read_rows() if isinstance(row, NightlyRunRow)), None)
        return saved or find_nightly_report(self._store, self._run_id)

    def load_sample(self) -> tuple[SeenConversation, ...]:
        """Load the sampled conversations without duplicates.

        There can be duplicates, because a run that had to read its sources twice may store its sample twice.
        """
        sample: dict[str, SeenConversation] = {}
        for row in self._read_rows():
            if isinstance(row, ConversationRow) and row.row.sampled is not None:
                sample.setdefault(row.row.id, row.row)
        return tuple(sample.values())

    def load_results(self) -> list[CaseResult]:
        """Load each sampled reply with its last assessment, in the order of the sample."""
        exchanges: dict[str, Exchange] = {}
        assessments: dict[str, Assessment] = {}
        for row in self._read_rows():
            if isinstance(row, ResultRow) and isinstance(row.row, Exchange):
                exchanges[row.row.case_id] = row.row
            elif isinstance(row, AssessmentRow):
                assessments[row.row.case_id] = row.row
        return [
            CaseResult(case=self._grader.rebuild_case(exchange, assessment), result=exchange, assessment=assessment)
            for key, exchange in exchanges.items()
            for assessment in [assessments[key]]
        ]

    def _load_graded_turns(self, sample: Sequence[SeenConversation]) -> tuple[GradedTurn, ...]:
        """Load each sampled reply with its last assessment and its stored passages."""
        passages = {
            build_turn_id(row.sampled.conversation.id, number): turn.context
            for row in sample
            if row.sampled is not None
            for number, turn in enumerate(row.sampled.conversation.turns)
        }
        return tuple(
            GradedTurn(result=result, passages=passages.get(result.case.id, ())) for result in self.load_results()
        )

    def _read_checkpoint_file(self, name: str) -> str | None:
        file = self._folder / name
        return file.read_text(encoding="utf-8") if file.exists() else None

    def _read_rows(self) -> list[JournalRow | OutboxRow]:
        return list(self._store.journal.read_run(self._run_id))


def build_intake_checkpoint(
    read: NightlyRead,
    census: Census | None = None,
    strata: Sequence[StratumCount] = (),
) -> IntakeCheckpoint:
    """Build the checkpoint that is stored after the sources were read. The checkpoint contains no conversations.

    ``census`` and ``strata`` are missing if the nightly run is only planned, not executed.
    """
    census = census or Census()
    return IntakeCheckpoint(
        since=read.since,
        until=read.until,
        read=read.count,
        known=read.known,
        repeated=read.repeated,
        questions=summarise_question_thumbs(
            add_tallies(tally.count_clarifying_questions() for tally in read.tallies.values())
        ),
        watermarks=tuple(read.watermarks),
        issues=tuple(read.issues),
        issue_count=read.issue_count,
        unusable=dict(read.unusable),
        interrupted=tuple(read.interrupted),
        citations_checked=dict(census.citing),
        strata=tuple(strata),
        census=census.rates,
        examples=census.examples,
    )
