"""A run's results into its report: the gate's only entrance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from monitors.gate.judge_notes import judge_notes
from monitors.gate.metrics import breakdowns, metrics
from monitors.gate.score import one_per_case, score, told_cases
from monitors.gate.settings import GateSettings
from monitors.gate.verdict import coverage_of, decide
from monitors.records.base import Record
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.grades import Judged
from monitors.records.judging import Judging
from monitors.records.runs import CaseResult, Latency, RunReport
from monitors.records.targets import Target
from monitors.stats import percentile


class RunFacts(Record):
    """What is known of a run besides its results.

    ``planned`` is how many cases the suite has; ``not_ready`` says why nothing was asked, when the deploy did not
    come to serve. ``judging`` is what a judge did.
    """

    run_id: str
    target: Target
    suite_name: str
    suite_sha256: str
    planned: int
    commit: str | None = None
    started_at: datetime
    finished_at: datetime
    interrupted: bool = False
    resumed_cases: int = 0
    not_ready: str | None = None
    judging: Judging | None = None


def evaluate(facts: RunFacts, results: Sequence[CaseResult], settings: GateSettings) -> RunReport:
    """Scores, metrics, coverage, latency and the verdict with its reasons. Pure: same input, same report."""
    assessments = one_per_case([result.assessment for result in results])
    outage = facts.not_ready or _outage(results)
    told = told_cases(assessments, outage=outage is not None)
    scores = score(assessments, told, settings.weights)
    measured = metrics(assessments, settings)
    coverage = coverage_of(told, facts.planned, settings)
    verdict, reasons = decide(
        assessments,
        told=told,
        outage=outage,
        scores=scores,
        metrics=measured,
        coverage=coverage,
        interrupted=facts.interrupted,
        settings=settings,
    )
    return RunReport(
        **facts.model_dump(exclude={"planned", "target", "not_ready", "judging"}),
        target=facts.target,
        judging=facts.judging,
        verdict=verdict,
        reasons=(*reasons, *judge_notes(facts.judging, assessments)),
        scores=scores,
        metrics=measured,
        coverage=coverage,
        latency=_latency(results, settings),
        breakdowns=breakdowns(assessments),
        cost_usd=facts.judging.cost_usd if facts.judging else _cost(results),
    )


def _outage(results: Sequence[CaseResult]) -> str | None:
    """What was said of the app when it was down: the run stopped asking, or nothing at all came back."""
    silent = [r.result for r in results if isinstance(r.result, NoAnswer)]
    stopped = any(n.reason is NoAnswerReason.CIRCUIT_OPEN for n in silent)
    asked = [n for n in silent if n.reason is not NoAnswerReason.CIRCUIT_OPEN]
    nothing = bool(asked) and len(silent) == len(results)
    if not stopped and not nothing:
        return None
    return f"{asked[-1].reason}: {asked[-1].detail}" if asked else "nothing was asked"


def _latency(results: Sequence[CaseResult], settings: GateSettings) -> Latency | None:
    times = [r.result.timings.total_ms for r in results if isinstance(r.result, Exchange)]
    if not times:
        return None
    return Latency(
        answered=len(times),
        p50_ms=percentile(times, 0.50),
        p95_ms=percentile(times, 0.95),
        objective_p50_ms=settings.latency_objective_p50_ms,
    )


def _cost(results: Sequence[CaseResult]) -> Decimal:
    grades = (grade for result in results for grade in result.assessment.grades)
    return sum((g.cost_usd for g in grades if isinstance(g, Judged)), Decimal(0))
