"""Reads the progress of runs without a report, for the site.

This module reads the start file and the journal segments, and tests whether a process works on the run. The module
changes nothing, and a run never waits for it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Final, Self

from flows.verify.run_folder import RESUME_WITHIN, RunStart, has_live_process, is_run_complete, read_run_start
from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.records.base import Blame, Record, Severity, UtcTime
from monitors.records.grades import Assessment, CaseOutcome
from warehouse.journal.journal import Journal
from warehouse.journal.segments import Segment, parse_segment_id, parse_time

LISTED_FOR: Final = timedelta(hours=24)
"""Maximum age of a run in the list of unfinished runs, counted from its start."""
CACHE_FOR: Final = timedelta(seconds=1)
"""Time for which a list of runs is cached."""
MAX_RUNS: Final = 16
_TIME_PREFIX: Final = "%Y%m%dT%H%M%SZ"


class RunState(StrEnum):
    """The state of a run without a report."""

    GOING_ON = "going on"
    STOPPED = "stopped"
    DONE = "done"
    """The report is stored, but not yet loaded into the warehouse."""


class SevereFailure(Record):
    """A severity-3 failure in a run without a report. ``asked`` and ``reason`` may contain personal data."""

    case_id: str
    repeat: int
    asked: str
    reason: str
    unconfirmed: bool
    found_at: UtcTime

    def mask(self, mask: Callable[[str], str]) -> Self:
        """Return a copy whose texts are masked by ``mask``, so that a page can show it."""
        return self.model_copy(update={"asked": mask(self.asked), "reason": mask(self.reason)})


class RunProgress(Record):
    """The progress of a run without a report. ``planned`` is the number of results, or ``None`` if unknown.

    ``last_at`` is when the last result was stored. A stopped run can be resumed until ``goes_on_until``.
    """

    run_id: str
    target: str
    environment: str
    commit: str | None
    state: RunState
    started_at: UtcTime
    last_at: UtcTime | None
    goes_on_until: UtcTime
    planned: int | None
    outcomes: dict[CaseOutcome, int]
    severe: tuple[SevereFailure, ...]

    def mask(self, mask: Callable[[str], str]) -> Self:
        """Return a copy whose texts are masked by ``mask``, so that a page can show it."""
        return self.model_copy(update={"severe": tuple(failure.mask(mask) for failure in self.severe)})

    @property
    def result_count(self) -> int:
        """The number of results so far, including questions without an answer."""
        return sum(self.outcomes.values())

    @property
    def graded(self) -> int:
        """The number of answers that were graded right or wrong."""
        return self.outcomes.get(CaseOutcome.CORRECT, 0) + self.failed

    @property
    def failed(self) -> int:
        """The number of wrong answers so far."""
        return self.outcomes.get(CaseOutcome.FAILED, 0)


@dataclass
class _Results:
    """The results of a run in the journal segments that were read so far."""

    segments: set[str] = field(default_factory=set[str])
    outcomes: dict[tuple[str, int], CaseOutcome] = field(default_factory=dict[tuple[str, int], CaseOutcome])
    severe: dict[tuple[str, int], SevereFailure] = field(default_factory=dict[tuple[str, int], SevereFailure])
    last_at: datetime | None = None

    def add(self, name: str, segment: Segment) -> None:
        """Add the results of a segment. If a case was asked twice, the later result counts."""
        stored_at = parse_time(parse_segment_id(name))
        questions = dict(_parse_last_question_per_result(segment))
        for line in segment.lines:
            if line.table == "assessments":
                assessment = Assessment.model_validate_json(line.row_json)
                self._count_assessment(
                    assessment, questions.get((assessment.case_id, assessment.repeat), ""), stored_at
                )
                self.last_at = max(stored_at, self.last_at or stored_at)

    def _count_assessment(self, assessment: Assessment, question: str, stored_at: datetime) -> None:
        key = (assessment.case_id, assessment.repeat)
        self.outcomes[key] = assessment.outcome
        self.severe.pop(key, None)
        is_silent = assessment.outcome is CaseOutcome.NO_ANSWER and assessment.blame is Blame.APP
        if assessment.severity is Severity.CRITICAL and (is_silent or assessment.outcome is CaseOutcome.FAILED):
            self.severe[key] = SevereFailure(
                case_id=assessment.case_id,
                repeat=assessment.repeat,
                asked=question,
                reason=assessment.reason,
                unconfirmed=assessment.unconfirmed,
                found_at=stored_at,
            )


def _parse_last_question_per_result(segment: Segment) -> Iterator[tuple[tuple[str, int], str]]:
    for line in segment.lines:
        if line.table == "results":
            row = json.loads(line.row_json)
            turns = row.get("turns") or [""]
            yield (row["case_id"], row.get("repeat", 0)), turns[-1]


class RunWatch:
    """The runs of one data folder that have no report yet. Several threads can use it."""

    def __init__(self, runs: Path, journal: Journal) -> None:
        self._runs = runs
        self._journal = journal
        self._read: dict[str, _Results] = {}
        self._listed: tuple[datetime, tuple[RunProgress, ...]] | None = None
        self._guard = Lock()

    def list_recent_unfinished_runs(self, now: datetime) -> tuple[RunProgress, ...]:
        """List recent runs that have no report. Active runs come first, then the newest runs.

        Raises `WarehouseUnwritable` if the journal cannot be reached.
        """
        with self._guard:
            if self._listed is None or abs(now - self._listed[0]) > CACHE_FOR:
                self._listed = (now, self._load_open_runs(now))
            return self._listed[1]

    def load_progress(self, run_id: str) -> RunProgress | None:
        """Load the progress of a run of any age. Return ``None`` if the run is unknown."""
        if "/" in run_id or run_id.startswith("."):
            return None
        with self._guard:
            return self._load_progress(self._runs / run_id)

    def _load_open_runs(self, now: datetime) -> tuple[RunProgress, ...]:
        since = f"{now - LISTED_FOR:{_TIME_PREFIX}}"
        try:
            names = sorted((entry.name for entry in os.scandir(self._runs) if entry.name >= since), reverse=True)
        except OSError:
            return ()
        folders = (self._runs / name for name in names)
        runs = [self._load_progress(folder) for folder in folders if not is_run_complete(folder)]
        listed = sorted((entry for entry in runs if entry), key=lambda entry: entry.state is not RunState.GOING_ON)
        return tuple(listed[:MAX_RUNS])

    def _load_progress(self, folder: Path) -> RunProgress | None:
        start = read_run_start(folder)
        if start is None:
            return None
        is_alive, results = has_live_process(folder), self._load_results(start.run_id)
        state = RunState.GOING_ON if is_alive else RunState.DONE if is_run_complete(folder) else RunState.STOPPED
        return _build_progress(start, state, results)

    def _load_results(self, run_id: str) -> _Results:
        results = self._read.pop(run_id, None) or _Results()
        self._read[run_id] = results  # the newest is last; the first is evicted
        while len(self._read) > MAX_RUNS:
            self._read.pop(next(iter(self._read)))
        for name in self._journal.segments.list_segments(run_id):
            if name not in results.segments:
                self._load_segment(name, results)
        return results

    def _load_segment(self, name: str, results: _Results) -> None:
        try:
            segment = self._journal.read(name)
        except FileNotFoundError:
            return  # the segment was compacted after it was listed
        except (WarehouseDamaged, SchemaTooNew):
            results.segments.add(name)  # the loader reports this error
            return
        results.segments.add(name)
        results.add(name, segment)


def _build_progress(start: RunStart, state: RunState, results: _Results) -> RunProgress:
    return RunProgress(
        run_id=start.run_id,
        target=start.target.name,
        environment=start.target.environment,
        commit=start.commit,
        state=state,
        started_at=start.started_at,
        last_at=results.last_at,
        goes_on_until=start.started_at + RESUME_WITHIN,
        planned=start.planned,
        outcomes=dict(Counter(results.outcomes.values())),
        severe=tuple(sorted(results.severe.values(), key=lambda failure: failure.found_at, reverse=True)),
    )
