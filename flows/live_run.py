"""A run while it goes: what is planned, what has come back, what is still to ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flows.kept_results import KeptResults
from flows.monitor_fault import Fault
from flows.wiring import Wired
from monitors.errors import ProbeError
from monitors.gate.evaluate import RunFacts
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.judging import Judging
from monitors.records.runs import CaseResult
from warehouse.rows import AssessmentRow, ResultRow


class LiveRun:
    """Belongs to one flow run and its event loop. Not a record: it is alive, and Prefect passes it as it is."""

    def __init__(self, wired: Wired) -> None:
        self.wired = wired
        self._cases = {case.id: case for case in wired.suite.cases}
        self._results = KeptResults()
        self.kept = 0
        self.interrupted = False
        self.faults: list[Fault] = []
        self.serving: str | None = None
        self.not_ready: ProbeError | None = None
        self.judging: Judging | None = None
        self.judge_void = ""
        self.judge_changed = False

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
        return self.wired.start.commit or self.serving

    def recall(self) -> None:
        """Take over what a stopped run has in the journal. A no-answer is asked again: an answer is better."""
        found: dict[tuple[str, int], Exchange | NoAnswer] = {}
        for row in self.wired.journal.read_run(self.wired.run_id):
            match row:
                case ResultRow(row=result):
                    found[result.case_id, result.repeat] = result
                case AssessmentRow(row=assessment):
                    self._recall_one(found.get((assessment.case_id, assessment.repeat)), assessment)
                case _:
                    continue
        self.kept = len(self._results)

    def _recall_one(self, result: Exchange | NoAnswer | None, assessment: Assessment) -> None:
        case = self._cases.get(assessment.case_id)
        if case is not None and isinstance(result, Exchange):
            self._results.put(CaseResult(case=case, result=result, assessment=assessment))

    def keep(self, case: GoldCase, result: Exchange | NoAnswer, assessment: Assessment) -> CaseResult:
        """Make a result durable, then count it: what is counted survives a kill."""
        rows = (ResultRow(row=result), AssessmentRow(row=assessment))
        self.wired.journal.append(rows, run_id=self.wired.run_id)
        told = CaseResult(case=case, result=result, assessment=assessment)
        self._results.put(told)
        return told

    @property
    def answered(self) -> Sequence[tuple[str, int]]:
        """Case and repeat of every question that needs no asking any more."""
        return self._results.keys

    @property
    def graded(self) -> int:
        """Answers of which it could be told whether they were right."""
        told = (CaseOutcome.CORRECT, CaseOutcome.FAILED)
        return sum(isinstance(r.result, Exchange) and r.assessment.outcome in told for r in self.results)

    def facts(self, finished_at: datetime) -> RunFacts:
        """What the gate needs to know besides the results."""
        start = self.wired.start
        return RunFacts(
            run_id=start.run_id,
            target=self.wired.target,
            suite_name=self.wired.suite.name,
            suite_sha256=self.wired.suite.sha256,
            planned=len(self._cases),
            commit=self.commit,
            started_at=start.started_at,
            finished_at=finished_at,
            interrupted=self.interrupted,
            resumed_cases=self.kept,
            not_ready=str(self.not_ready) if self.not_ready else None,
            judging=self.judging,
            pull_request=start.pull_request,
        )
