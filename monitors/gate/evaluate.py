"""A run's results into its report: the gate's only entrance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from monitors.gate.balance import balance_of
from monitors.gate.breakdowns import breakdowns
from monitors.gate.compare import compare
from monitors.gate.flaky import flaky_cases
from monitors.gate.judge_notes import judge_notes
from monitors.gate.metrics import metrics
from monitors.gate.parity import parity
from monitors.gate.parity_reasons import in_pairs
from monitors.gate.ratings import average_of, ratings
from monitors.gate.score import one_per_case, score, told_cases
from monitors.gate.settings import GateSettings
from monitors.gate.sight import sights_of
from monitors.gate.verdict import coverage_of, decide
from monitors.gate.weighing import Weighing
from monitors.records.base import Record
from monitors.records.baselines import Baseline
from monitors.records.cases import GoldCase
from monitors.records.deploys import PullRequest
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.grades import Assessment, Judged
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
    pull_request: PullRequest | None = None


def evaluate(
    facts: RunFacts,
    results: Sequence[CaseResult],
    settings: GateSettings,
    *,
    baseline: Baseline | None = None,
    suite: Sequence[GoldCase] | None = None,
) -> RunReport:
    """Scores, metrics, comparison, latency and the verdict with its reasons. Pure: same input, same report.

    ``baseline`` is the run to compare with; whether it may be compared is decided here. ``suite`` are all planned
    cases, for their balance; without it, those that were asked.
    """
    asked = [result.assessment for result in results]
    run = _weigh(facts, results, asked, settings, baseline=baseline, suite=suite)
    verdict, reasons = decide(run)
    return RunReport(
        **facts.model_dump(exclude={"planned", "target", "not_ready", "judging", "pull_request"}),
        target=facts.target,
        pull_request=facts.pull_request,
        judging=facts.judging,
        verdict=verdict,
        reasons=(*reasons, *judge_notes(facts.judging, run.assessments)),
        scores=run.scores,
        metrics=tuple(one.metric for one in run.measured),
        coverage=run.coverage,
        latency=_latency(results, settings),
        breakdowns=breakdowns(run.assessments),
        cost_usd=facts.judging.cost_usd if facts.judging else _cost(asked),
        parity=tuple(run.parity),
        comparison=run.compared.comparison if run.compared else None,
        rubric=average_of(run.ratings),
        sights=tuple(run.sights),
        flaky=tuple(run.flaky),
        balance=run.balance,
    )


def _weigh(
    facts: RunFacts,
    results: Sequence[CaseResult],
    asked: Sequence[Assessment],
    settings: GateSettings,
    *,
    baseline: Baseline | None,
    suite: Sequence[GoldCase] | None,
) -> Weighing:
    folded = one_per_case(asked)
    outage = facts.not_ready or _outage(results)
    told = told_cases(folded, outage=outage is not None)
    scores = score(folded, told, settings.weights)
    rated = ratings(asked)
    compared = baseline and compare(
        baseline,
        run_id=facts.run_id,
        suite_sha256=facts.suite_sha256,
        judging=facts.judging,
        assessments=folded,
        told=told,
        scores=scores,
        ratings_now=rated,
        weights=settings.weights,
    )
    gaps = parity(asked, most_gap=settings.targets.language_gap)
    shared = {pair.case_id for pair in compared.pairs} if compared and not compared.comparison.refused else None
    cases = suite if suite is not None else {result.case.id: result.case for result in results}.values()
    return Weighing(
        assessments=folded,
        told=told,
        flaky=flaky_cases(asked, outage=outage is not None),
        scores=scores,
        measured=metrics(folded, settings, repeated=_repeated(asked, folded), paired=in_pairs(gaps)),
        parity=gaps,
        coverage=coverage_of(told, facts.planned, settings),
        ratings=rated,
        compared=compared,
        sights=sights_of(folded, told, None if shared is None else frozenset(shared)),
        balance=balance_of(cases, settings),
        outage=outage,
        interrupted=facts.interrupted,
        settings=settings,
    )


def _repeated(asked: Sequence[Assessment], folded: Sequence[Assessment]) -> Sequence[Assessment]:
    """The folded assessments of cases that were asked more than once."""
    asks = Counter(a.case_id for a in asked)
    return [a for a in folded if asks[a.case_id] > 1]


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


def _cost(asked: Sequence[Assessment]) -> Decimal:
    grades = (grade for assessment in asked for grade in assessment.grades)
    return sum((g.cost_usd for g in grades if isinstance(g, Judged)), Decimal(0))
