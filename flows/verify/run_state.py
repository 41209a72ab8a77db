"""The state of a run while it goes: what is planned, what has come back, what is still to ask.

Results take little room, so that the orchestrating process does not grow with the suite. The run also finds its
baseline: a named run, or the last accepted one of the base branch. When its judge is not the one of the run before,
the two are not compared.
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
from monitors.judge.lineage import compare_lineages
from monitors.probes.runner import order_questions
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer, ProbeResult
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import Baseline, CaseResult, Judging
from monitors.records.targets import PullRequest
from monitors.reports.results_json import read_results
from warehouse.journal.rows import AssessmentRow, ResultRow
from warehouse.queries.runs import find_last_accepted

_RESULT: Final[TypeAdapter[ProbeResult]] = TypeAdapter(ProbeResult)
COMPRESSION_LEVEL: Final = 1
"""Level of compression: a result of 18 kB as objects and 3 kB as JSON becomes 1.2 kB, in 0.1 ms each way."""

Key = tuple[str, int]
Model = TypeVar("Model", bound=BaseModel)


MAX_UNPACKED: Final = 500
"""Results of which the records are kept once made: a run goes through its results some forty times, 0.2 ms each."""


class PackedResults(Sequence[CaseResult]):
    """Results by case and repeat, in the order in which they first came.

    Each read makes the records of a long run anew: go through it rather than make a list of it. Safe while it
    grows: an iteration sees what was there when it began.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, _PackedResult] = {}
        self._unpacked: dict[_PackedResult, CaseResult] = {}

    def put(self, result: CaseResult) -> None:
        """Store a result in place of the one before it."""
        key = result.case.id, result.result.repeat
        if key in self._packed:
            self._unpacked.pop(self._packed[key], None)
        self._packed[key] = _PackedResult(result)

    @property
    def keys(self) -> Sequence[Key]:
        """Case and repeat of each."""
        return tuple(self._packed)

    @property
    def has_answers(self) -> bool:
        """Whether anything was answered."""
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
    """The same record, sharing its sets of field names with others of its kind: they are half of its size.

    Records are frozen, so that nobody changes such a set; a copy of a record gets a copy of it.
    """
    names = record.model_fields_set
    object.__setattr__(record, "__pydantic_fields_set__", _NAMES.setdefault(frozenset(names), names))
    for value in record.__dict__.values():
        for part in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType] - of any record
            if isinstance(part, BaseModel):
                _share_field_names(part)
    return record


OnStep = Callable[[int, int], Awaitable[None]]
"""Hears after each final result how many there are, and of how many."""


async def _ignore_step(done: int, planned: int) -> None:
    del done, planned


class LiveRun:
    """Belongs to one flow run and its event loop. Not a record: it is alive, and Prefect passes it as it is."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self._cases = {case.id: case for case in context.suite.cases}
        self._results = PackedResults()
        self.resumed = 0
        self.done = 0
        """Final results, those of a stopped run included."""
        self.on_step: OnStep = _ignore_step
        self.asking: asyncio.Task[None] | None = None
        """Where the questions are asked before the flow begins: the flow waits for it instead of asking."""
        self.interrupted = False
        self.faults: list[Fault] = []
        self.serving: str | None = None
        self.not_ready: ProbeError | None = None
        self.judging: Judging | None = None
        self.judge_void = ""
        self.judge_changed = False
        self.browser: str | None = None
        self.accepted_commit: str | None = None

    @property
    def planned(self) -> int:
        """How many results the run will have, repeats included."""
        repeats = self.context.configured.probe.repeats_severity_3
        return sum(1 for _ in order_questions(self.context.suite.cases, repeats_severity_3=repeats))

    @property
    def results(self) -> Sequence[CaseResult]:
        """All results so far, those of a stopped run included."""
        return self._results

    @property
    def has_answers(self) -> bool:
        """Whether the app has answered anything, in this process or in the one that was stopped."""
        return self._results.has_answers

    @property
    def commit(self) -> str | None:
        """The commit that is verified: as it was asked for, else as the target says it runs."""
        return self.context.start.commit or self.serving

    def load_stored(self) -> None:
        """Take over a stopped run's results, but ask again what had no answer: an answer is better."""
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
        """Make a result durable, then count it: what is counted survives a kill."""
        rows = (ResultRow(row=result), AssessmentRow(row=assessment))
        self.context.journal.append(rows, run_id=self.context.run_id)
        saved = CaseResult(case=case, result=result, assessment=assessment)
        self._results.put(saved)
        return saved

    @property
    def answered(self) -> Sequence[tuple[str, int]]:
        """Case and repeat of every question that needs no asking any more."""
        return self._results.keys

    @property
    def graded(self) -> int:
        """Answers that were graded right or wrong."""
        graded_outcomes = (CaseOutcome.CORRECT, CaseOutcome.FAILED)
        return sum(isinstance(r.result, Exchange) and r.assessment.outcome in graded_outcomes for r in self.results)

    def facts(self, finished_at: datetime, pull_request: PullRequest | None = None) -> RunFacts:
        """What the gate needs to know besides the results; ``pull_request`` is where the deploy belongs."""
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
            judging=self.judging,
            pull_request=pull_request or start.pull_request,
        )


RESULTS_FILE: Final = "results.json"


def find_baseline(run: LiveRun) -> Baseline | None:
    """The baseline of a run that was graded; ``None`` without any. Raises `ConfigError` as `load_named_baseline` does.

    A warehouse that cannot be read gives none: a run without comparison is better than no run.
    """
    context = run.context
    if context.request.baseline != AUTO:
        return load_named_baseline(context.request.baseline, get_runs_folder(context.config))
    try:
        return find_last_accepted(
            context.store,
            context.target.name,
            context.target.environment,
            context.suite.sha256,
            lineages=run.judging.lineages if run.judging else (),
            before=context.run_id,
        )
    except WarehouseError:
        return None


def load_named_baseline(name: str, runs: Path) -> Baseline | None:
    """The run of a results.json, or of a run's id in the folder of ``runs``; ``None`` where none is wanted.

    `AUTO` names no run: it is resolved once the judges are known. Raises `ConfigError` for what is not there or no
    result, before anything is asked.
    """
    if name in (AUTO, NO_BASELINE):
        return None
    paths = (Path(name), runs / name / RESULTS_FILE)
    file = next((place for place in paths if place.is_file()), None)
    if file is None:
        raise ConfigError(
            f"--baseline {name}: neither a file nor a finished run in {runs}; accepted: {AUTO} (the last accepted "
            f"run), {NO_BASELINE}, a run's id, the path of its {RESULTS_FILE}"
        )
    return build_baseline(*read_results(file))


JUDGE_CHANGED = "JudgeChanged"


def find_judge_change(run: LiveRun) -> None:
    """Note a changed judge: the run says so once, and is not compared with the one before.

    A run that no judge was needed for compares with any: nothing in it is a judge's.
    """
    if run.judging is None or not run.judging.lineages:
        return
    context = run.context
    try:
        previous = context.store.last_report(context.target.name, context.suite.sha256, before=context.run_id)
    except WarehouseError:
        return
    if previous is None or previous.judging is None or not previous.judging.lineages:
        return
    compared = compare_lineages(previous.judging.lineages, run.judging.lineages)
    if not compared.allowed:
        run.judge_changed = True
        run.faults.append(Fault(JUDGE_CHANGED, f"Not compared with run {previous.run_id}: {compared.reason}"))
