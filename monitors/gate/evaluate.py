"""A run's results into its report: the gate's only entrance.

A case asked several times counts as right only when it was right every time (pass^k). One that was right at some
times and failed at others is **flaky**: it counts as failed, it sends an alert, and it is named, but it does not
decide a verdict alone. Every reason that would change the verdict must still stand when any one flaky case is taken
to have been right. Two flaky cases may decide together, and a case that was never right is not flaky.

The report also says how each group of cases did (by type, language, path and severity), and has notes on the judge
beside the verdict's reasons, shown wherever those are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from monitors.facts.issue_questions import QuestionWorth, read_questions
from monitors.gate.compare import compare, parity
from monitors.gate.dimensions import triage_summary, with_triage
from monitors.gate.metrics import graded_cases, is_graded, metrics, one_per_case, score
from monitors.gate.ratings import average_of, is_report, ratings, unrated_reports
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import balance_of, sights_of
from monitors.gate.verdict import GateInputs, coverage_of, decide, in_pairs
from monitors.plural import plural
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.comparisons import FlakyCase
from monitors.records.exchanges import NOT_READ, Exchange, NoAnswer, NoAnswerReason
from monitors.records.grades import Assessment, CaseOutcome, Judged
from monitors.records.runs import (
    Baseline,
    Breakdown,
    CaseResult,
    JudgeState,
    Judging,
    Latency,
    QuestionCounts,
    ReasonKind,
    RunIdentity,
    RunReport,
    Verdict,
    VerdictReason,
)
from monitors.records.targets import PullRequest
from monitors.stats.intervals import percentile, wilson


def flaky_cases(assessments: Sequence[Assessment], *, outage: bool) -> tuple[FlakyCase, ...]:
    """The cases that were right at least once and failed at least once, severest first.

    Ungraded asks, for want of a grader or in an outage, say neither.
    """
    graded: dict[str, list[Assessment]] = {}
    for assessment in assessments:
        if is_graded(assessment, outage=outage):
            graded.setdefault(assessment.case_id, []).append(assessment)
    found = (_flaky(asked) for asked in graded.values() if len(asked) > 1)
    return tuple(sorted((one for one in found if one), key=lambda one: (-one.severity, one.case_id)))


def _flaky(asked: Sequence[Assessment]) -> FlakyCase | None:
    right = sum(one.outcome is CaseOutcome.CORRECT for one in asked)
    if not 0 < right < len(asked):
        return None
    severity = max(one.severity for one in asked)
    return FlakyCase(case_id=asked[0].case_id, severity=severity, asked=len(asked), right=right)


UNKNOWN_PATH = "not said"
"""The path of an answer whose application does not say which one it took."""


def breakdowns(assessments: Sequence[Assessment]) -> tuple[Breakdown, ...]:
    """How each type, language, path and severity did; the largest group of each first."""
    groups: dict[str, Callable[[Assessment], str]] = {
        "type": lambda a: a.type,
        "language": lambda a: a.language,
        "path": lambda a: a.app_path or UNKNOWN_PATH,
        "severity": lambda a: str(a.severity.value),
    }
    return tuple(row for group, key in groups.items() for row in _grouped(group, key, assessments))


def _grouped(group: str, key: Callable[[Assessment], str], assessments: Sequence[Assessment]) -> list[Breakdown]:
    members: dict[str, list[CaseOutcome]] = {}
    for assessment in assessments:
        members.setdefault(key(assessment), []).append(assessment.outcome)
    rows = [
        Breakdown(
            group=group,
            key=name,
            cases=len(outcomes),
            correct=outcomes.count(CaseOutcome.CORRECT),
            failed=outcomes.count(CaseOutcome.FAILED),
            no_answer=outcomes.count(CaseOutcome.NO_ANSWER),
            ungraded=outcomes.count(CaseOutcome.UNGRADED),
        )
        for name, outcomes in members.items()
    ]
    return sorted(rows, key=lambda row: (-row.cases, row.key))


def judge_notes(judging: Judging | None, assessments: Sequence[Assessment]) -> tuple[VerdictReason, ...]:
    """One note on what the judge did, and one for each thing that stopped it doing more. None of them decides."""
    if judging is None:
        return ()
    ungraded_cases = tuple(a.case_id for a in assessments if a.outcome is CaseOutcome.UNGRADED)
    ungraded = ungraded_cases if judging.ungraded else ()
    texts = [_off(judging, assessments)] if judging.state is JudgeState.OFF else list(_on(judging))
    return tuple(
        VerdictReason(kind=ReasonKind.NOTE, text=text, case_ids=ungraded if number == 0 else (), decisive=False)
        for number, text in enumerate(texts)
    )


def _off(judging: Judging, assessments: Sequence[Assessment]) -> str:
    unrated = sum(map(is_report, assessments))
    answers = max(0, judging.reached_judge - unrated)
    left = [f"{answers} of {plural(judging.answers, 'answer')} left ungraded"] if answers else []
    left += [f"{plural(unrated, 'report')} not rated"] if unrated else []
    return f"the judge is off ({judging.why}); {', '.join(left) or 'no answer needed it'}"


def _on(judging: Judging) -> Iterator[str]:
    ungraded = plural(judging.ungraded, "answer")
    share = f"{judging.reached_judge} of {plural(judging.answers, 'answer')} needed a judge"
    if judging.to_confirm:
        share += f", {judging.to_confirm} of them to confirm what the rules say"
    if not judging.reached_judge:
        yield f"no answer needed a judge ({', '.join(judging.models)} stood by)"
        return
    yield f"{share}: {', '.join(judging.models)} graded {judging.judged} for ${judging.cost_usd:.4f}"
    if judging.budget_reached:
        yield (
            f"the budget for judging, ${judging.budget_usd:.2f}, was reached: the run is partial, "
            f"{ungraded} left ungraded"
        )
    if judging.void_groups:
        void = plural(judging.void_grades, "grade of the judge is", "grades of the judge are")
        groups = f"{judging.void_groups} of {plural(judging.groups, 'group')}"
        yield f"{void} void: it missed known answers in {groups}"
    if judging.ungraded and not judging.budget_reached and not judging.void_groups:
        yield f"{ungraded} left ungraded: {'; '.join(judging.ungraded_because[:2])}"


class RunFacts(RunIdentity):
    """What is known of a run besides its results.

    ``planned`` is how many cases the suite has; ``not_ready`` says why nothing was asked, when the deploy did not
    come to serve. ``judging`` is what a judge did.
    """

    planned: int
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
    run = _gather_inputs(facts, results, asked, settings, baseline=baseline, suite=suite)
    verdict, reasons = decide(run)
    triage = triage_summary(results, run.assessments, run.graded)
    return RunReport(
        run_id=facts.run_id,
        target=facts.target,
        suite_name=facts.suite_name,
        suite_sha256=facts.suite_sha256,
        commit=facts.commit,
        started_at=facts.started_at,
        finished_at=facts.finished_at,
        interrupted=facts.interrupted,
        resumed_cases=facts.resumed_cases,
        pull_request=facts.pull_request,
        judging=facts.judging,
        verdict=verdict,
        reasons=(*reasons, *judge_notes(facts.judging, run.assessments)),
        triage=triage,
        scores=run.scores,
        metrics=tuple(one.metric for one in run.measured),
        coverage=run.coverage,
        latency=_latency(results, settings),
        breakdowns=breakdowns(run.assessments),
        cost_usd=facts.judging.cost_usd if facts.judging else _cost(asked),
        parity=tuple(run.parity),
        comparison=baseline and run.compared and with_triage(run.compared, baseline.report.triage, triage, results),
        rubric=run.rubric,
        sights=tuple(run.sights),
        flaky=tuple(run.flaky),
        balance=run.balance,
        questions=question_counts(results),
    )


def verdict_of(
    facts: RunFacts,
    results: Sequence[CaseResult],
    settings: GateSettings,
    *,
    baseline: Baseline | None = None,
    suite: Sequence[GoldCase] | None = None,
) -> Verdict:
    """The verdict of `evaluate` alone, without the report."""
    asked = [result.assessment for result in results]
    return decide(_gather_inputs(facts, results, asked, settings, baseline=baseline, suite=suite))[0]


def question_counts(results: Sequence[CaseResult]) -> QuestionCounts | None:
    """The agents' questions about issues, and how many were useful; ``None`` without any.

    Those of a job that came to no report count too.
    """
    read = [
        reading.worth
        for one in results
        if one.case.triage
        for _, reading in read_questions(one.case.triage.issue, one.result.evidence.questions)
    ]
    if not read:
        return None
    useful, needless = read.count(QuestionWorth.USEFUL), read.count(QuestionWorth.NEEDLESS)
    if not useful + needless:
        return QuestionCounts(asked=len(read), useful=0, needless=0)
    low, high = wilson(useful, useful + needless)
    share = useful / (useful + needless)
    return QuestionCounts(asked=len(read), useful=useful, needless=needless, share=share, low=low, high=high)


def _gather_inputs(
    facts: RunFacts,
    results: Sequence[CaseResult],
    asked: Sequence[Assessment],
    settings: GateSettings,
    *,
    baseline: Baseline | None,
    suite: Sequence[GoldCase] | None,
) -> GateInputs:
    folded = one_per_case(asked)
    outage = f"{DOWN}: {facts.not_ready}" if facts.not_ready else _outage(results)
    graded = graded_cases(folded, outage=outage is not None)
    scores = score(folded, graded, settings.weights)
    rated = ratings(asked)
    clusters = {result.case.id: result.case.related for result in results}
    compared = baseline and compare(
        baseline,
        run_id=facts.run_id,
        suite_sha256=facts.suite_sha256,
        judging=facts.judging,
        assessments=folded,
        graded=graded,
        scores=scores,
        ratings_now=rated,
        clusters=clusters,
        settings=settings,
    )
    gaps = parity(asked, most_gap=settings.targets.language_gap)
    shared = {pair.case_id for pair in compared.pairs} if compared and not compared.comparison.refused else None
    cases = suite if suite is not None else {result.case.id: result.case for result in results}.values()
    return GateInputs(
        assessments=folded,
        graded=graded,
        flaky=flaky_cases(asked, outage=outage is not None),
        scores=scores,
        measured=metrics(folded, settings, repeated=_repeated(asked, folded), paired=in_pairs(gaps)),
        parity=gaps,
        coverage=coverage_of(graded, facts.planned, settings),
        ratings=rated,
        rubric=average_of(rated, clusters, drop=settings.max_rubric_drop),
        unrated=unrated_reports(results, rated),
        compared=compared,
        sights=sights_of(folded, graded, None if shared is None else frozenset(shared)),
        balance=balance_of(cases, settings),
        outage=outage,
        disputed=tuple(dict.fromkeys(a.case_id for a in asked if a.is_disputed)),
        interrupted=facts.interrupted,
        settings=settings,
    )


def _repeated(asked: Sequence[Assessment], folded: Sequence[Assessment]) -> Sequence[Assessment]:
    """The folded assessments of cases that were asked more than once."""
    asks = Counter(a.case_id for a in asked)
    return [a for a in folded if asks[a.case_id] > 1]


DOWN: Final = "the app did not serve"


def _outage(results: Sequence[CaseResult]) -> str | None:
    """Why the run stopped asking, or nothing at all came back; by whose fault, as far as that is known."""
    silent = [r.result for r in results if isinstance(r.result, NoAnswer)]
    stopped = any(n.reason is NoAnswerReason.CIRCUIT_OPEN for n in silent)
    asked = [n for n in silent if n.reason is not NoAnswerReason.CIRCUIT_OPEN]
    nothing = bool(asked) and len(silent) == len(results)
    if (not stopped and not nothing) or (asked and all(n.reason is NoAnswerReason.OLD_JOB for n in asked)):
        return None  # an app that gives old jobs back serves; coverage says that nothing was graded
    if not asked:
        return f"{DOWN}: nothing was asked"
    last = asked[-1]
    if last.reason in NOT_READ:
        return f"no answer could be read: {last.detail}"
    if last.reason is NoAnswerReason.NO_SUCH_PATH:
        return f"no question could be asked: {last.detail}"
    what = DOWN if last.blame is Blame.APP else "no question could be asked"
    return f"{what}: {last.reason.value.replace('_', ' ')}: {last.detail}"


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
