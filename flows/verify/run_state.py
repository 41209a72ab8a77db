"""The state of an active verification run.

Results are compressed in memory, so that a large suite needs little memory. This module also finds the run's
baseline, which is a named run or the last accepted run. Runs with different judges are not compared.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar, overload

from pydantic import BaseModel, TypeAdapter

from flows.alerting.faults import Fault
from flows.data_folder import get_runs_folder
from flows.runtime.run import RunContext
from flows.verify.run_folder import AUTO, NO_BASELINE
from monitors.errors import ConfigError, ProbeError, WarehouseError
from monitors.gate.compare import build_baseline
from monitors.gate.evaluate import RunFacts
from monitors.judge.lineage import decide_if_grades_are_comparable
from monitors.probes.request_limit import RequestLimit
from monitors.probes.runner import iterate_questions_by_severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer, ProbeResult
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import Baseline, CaseResult, Judging
from monitors.records.targets import PullRequest
from monitors.reports.results_json import read_results
from warehouse.journal.rows import AssessmentRow, ResultRow
from warehouse.queries.runs import find_baseline_run

_RESULT: Final[TypeAdapter[ProbeResult]] = TypeAdapter(ProbeResult)
COMPRESSION_LEVEL: Final = 1
"""Compression level of the results.

A result takes 18 kB as objects, 3 kB as JSON and 1.2 kB compressed. Compressing and decompressing take 0.1 ms each.
"""

Key = tuple[str, int]
Model = TypeVar("Model", bound=BaseModel)


MAX_UNPACKED: Final = 500
"""Maximum number of results that are also cached uncompressed, because a run reads each about forty times."""


class PackedResults(Sequence[CaseResult]):
    """Compressed results by case and repeat, in the order in which they arrived.

    Access to a result usually decompresses the result. To save memory, iterate over the results instead of building
    a list. Results that are added during an iteration are not part of the iteration.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, _PackedResult] = {}
        self._unpacked: dict[_PackedResult, CaseResult] = {}

    def put(self, result: CaseResult) -> None:
        """Store a result. It replaces an earlier result for the same case and repeat."""
        key = result.case.id, result.result.repeat
        if key in self._packed:
            self._unpacked.pop(self._packed[key], None)
        self._packed[key] = _PackedResult(result)

    @property
    def keys(self) -> Sequence[Key]:
        """Return the case and repeat of each result."""
        return tuple(self._packed)

    @property
    def has_answers(self) -> bool:
        """Return whether any question was answered."""
        return any(packed.is_answer for packed in tuple(self._packed.values()))

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[CaseResult]:
        return map(self._unpack, tuple(self._packed.values()))

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CaseResult]: ...
    def __getitem__(self, index: int | slice) -> CaseResult | Sequence[CaseResult]:
        chosen = tuple(self._packed.values())[index]
        return self._unpack(chosen) if isinstance(chosen, _PackedResult) else tuple(map(self._unpack, chosen))

    def _unpack(self, packed: _PackedResult) -> CaseResult:
        result = self._unpacked.get(packed) or packed.unpack()
        if len(self._unpacked) < MAX_UNPACKED:
            self._unpacked[packed] = result
        return result


class _PackedResult:
    __slots__ = ("_assessment", "_case", "_result", "is_answer")

    def __init__(self, result: CaseResult) -> None:
        self._case: GoldCase = result.case
        self._result = zlib.compress(result.result.model_dump_json().encode(), COMPRESSION_LEVEL)
        self._assessment = zlib.compress(result.assessment.model_dump_json().encode(), COMPRESSION_LEVEL)
        self.is_answer = isinstance(result.result, Exchange)

    def unpack(self) -> CaseResult:
        return CaseResult(
            case=self._case,
            result=_share_field_names(_RESULT.validate_json(zlib.decompress(self._result))),
            assessment=_share_field_names(Assessment.model_validate_json(zlib.decompress(self._assessment))),
        )


_NAMES: Final[dict[frozenset[str], set[str]]] = {}


def _share_field_names(record: Model) -> Model:
    """Let a record share its sets of field names with other records, which halves the record's size in memory.

    Sharing is safe, because records are frozen.
    """
    names = record.model_fields_set
    object.__setattr__(record, "__pydantic_fields_set__", _NAMES.setdefault(frozenset(names), names))
    for value in record.__dict__.values():
        for part in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType] - of any record
            if isinstance(part, BaseModel):
                _share_field_names(part)
    return record


OnStep = Callable[[int, int], Awaitable[None]]
"""A function that is called after each final result, with the numbers of final results and of planned results."""


async def _ignore_step(done: int, planned: int) -> None:
    del done, planned


class LiveRun:
    """The state of one run while it asks and grades. Use each instance in one event loop only."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self._cases = {case.id: case for case in context.suite.cases}
        self._results = PackedResults()
        self.resumed = 0
        self.done = 0
        """The number of final results, including results from before the run was resumed."""
        self.on_step: OnStep = _ignore_step
        self.asking: asyncio.Task[None] | None = None
        """The task that started to ask before the flow began. The flow waits for this task."""
        self.interrupted = False
        self.faults: list[Fault] = []
        self.serving: str | None = None
        self.not_ready: ProbeError | None = None
        self.limit: RequestLimit | None = None
        self.judging: Judging | None = None
        self.judge_void = ""
        self.judge_changed = False
        self.browser: str | None = None
        self.accepted_commit: str | None = None

    @property
    def planned(self) -> int:
        """The number of results of the complete run, including repeats."""
        repeats = self.context.configured.probe.repeats_severity_3
        return sum(1 for _ in iterate_questions_by_severity(self.context.suite.cases, repeats_severity_3=repeats))

    @property
    def results(self) -> Sequence[CaseResult]:
        """All results so far, including results from before the run was resumed."""
        return self._results

    @property
    def has_answers(self) -> bool:
        """Return whether the application has answered a question of this run."""
        return self._results.has_answers

    @property
    def commit(self) -> str | None:
        """The verified commit: the requested commit, or else the commit that the target serves."""
        return self.context.start.commit or self.serving or self.context.start.serving

    def describe_request_limit(self) -> str:
        """Describe how the run followed the application's request limit. Return an empty string without a limit."""
        return self.limit.describe_waits() if self.limit else ""

    def load_earlier_results(self) -> None:
        """Load the answers of a stopped run. Questions without an answer are asked again."""
        results: dict[tuple[str, int], Exchange | NoAnswer] = {}
        for row in self.context.journal.read_run(self.context.run_id):
            match row:
                case ResultRow(row=result):
                    results[result.case_id, result.repeat] = result
                case AssessmentRow(row=assessment):
                    case = self._cases.get(assessment.case_id)
                    result = results.get((assessment.case_id, assessment.repeat))
                    if case is not None and isinstance(result, Exchange):
                        self._results.put(CaseResult(case=case, result=result, assessment=assessment))
                case _:
                    continue
        self.resumed = self.done = len(self._results)

    def save(self, case: GoldCase, result: Exchange | NoAnswer, assessment: Assessment) -> CaseResult:
        """Store a result in the journal, and add it to the results of the run."""
        rows = (ResultRow(row=result), AssessmentRow(row=assessment))
        self.context.journal.append(rows, run_id=self.context.run_id)
        saved = CaseResult(case=case, result=result, assessment=assessment)
        self._results.put(saved)
        return saved

    @property
    def answered_questions(self) -> Sequence[tuple[str, int]]:
        """The case and the repeat of each question with a result."""
        return self._results.keys

    @property
    def graded(self) -> int:
        """The number of answers that were graded right or wrong."""
        graded_outcomes = (CaseOutcome.CORRECT, CaseOutcome.FAILED)
        return sum(isinstance(r.result, Exchange) and r.assessment.outcome in graded_outcomes for r in self.results)

    def build_facts(self, finished_at: datetime, pull_request: PullRequest | None = None) -> RunFacts:
        """Build the facts that the gate needs besides the results.

        ``pull_request`` is the deploy's pull request.
        """
        start = self.context.start
        return RunFacts(
            run_id=start.run_id,
            target=self.context.target,
            suite_name=self.context.suite.name,
            suite_sha256=self.context.suite.sha256,
            planned=len(self._cases),
            commit=self.commit,
            started_at=start.started_at,
            finished_at=finished_at,
            interrupted=self.interrupted,
            resumed_cases=self.resumed,
            not_ready=str(self.not_ready) if self.not_ready else None,
            request_limit=self.describe_request_limit(),
            judging=self.judging,
            pull_request=pull_request or start.pull_request,
            change=self.context.request.change or start.change,
        )


RESULTS_FILE: Final = "results.json"


def find_baseline(run: LiveRun) -> Baseline | None:
    """Find the baseline of a graded run. Return ``None`` without a baseline, or if the warehouse cannot be read.

    Raises `ConfigError` if a named baseline does not exist.
    """
    context = run.context
    change = context.request.change or context.start.change
    if context.request.baseline != AUTO:
        return load_named_baseline(context.request.baseline, get_runs_folder(context.config))
    try:
        return find_baseline_run(
            context.store,
            context.target.name,
            context.target.environment,
            context.suite.sha256,
            lineages=run.judging.lineages if run.judging else (),
            branch=change.target_branch if change else None,
            except_run=context.run_id,
        )
    except WarehouseError:
        return None


def load_named_baseline(name: str, runs: Path) -> Baseline | None:
    """Load the baseline ``name``, which is a run's id or the path of a results.json.

    Return ``None`` for `AUTO` and `NO_BASELINE`. Raises `ConfigError` if the file does not exist or is not a
    result.
    """
    if name in (AUTO, NO_BASELINE):
        return None
    paths = (Path(name), runs / name / RESULTS_FILE)
    file = next((place for place in paths if place.is_file()), None)
    if file is None:
        raise ConfigError(
            f"--baseline {name} is neither a file nor a finished run in {runs}; accepted: {AUTO} (the last "
            f"accepted run), {NO_BASELINE}, the id of a finished run, or the path of its {RESULTS_FILE}"
        )
    return build_baseline(*read_results(file))


JUDGE_CHANGED = "JudgeChanged"


def mark_run_if_judge_changed(run: LiveRun) -> None:
    """Mark the run and add a fault to it if its judge differs from the judge of the previous run.

    Such runs are not compared. A run without judge grades can be compared with any run.
    """
    if run.judging is None or not run.judging.lineages:
        return
    context = run.context
    try:
        previous = context.store.find_last_report(
            context.target.name, context.suite.sha256, except_run=context.run_id
        )
    except WarehouseError:
        return
    if previous is None or previous.judging is None or not previous.judging.lineages:
        return
    compared = decide_if_grades_are_comparable(previous.judging.lineages, run.judging.lineages)
    if not compared.allowed:
        run.judge_changed = True
        run.faults.append(
            Fault(JUDGE_CHANGED, f"Lookout did not compare this run with run {previous.run_id}: {compared.reason}")
        )
