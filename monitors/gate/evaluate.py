"""Build the report of a run from its results: the entry point of the gate.

A case can be asked several times. Such a case counts as right only if it was right every time. A case that was
sometimes right and sometimes wrong is **flaky**: it counts as failed and sends an alert, but a single flaky case
cannot fail the run. A reason to fail does not count if it would disappear when one flaky case is counted as right.
Two flaky cases can fail a run together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from monitors.facts.issue_questions import QuestionWorth, rate_questions
from monitors.gate.compare import compare_with_baseline, compute_language_gaps
from monitors.gate.dimensions import build_comparison_with_triage_change, build_triage_summary
from monitors.gate.metrics import (
    collect_graded_case_ids,
    compute_metrics,
    compute_scores,
    is_graded,
    select_worst_repeats,
)
from monitors.gate.ratings import (
    collect_ratings,
    compute_average_rating,
    count_met_criteria,
    find_unrated_report_ids,
    is_report,
)
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import compute_detectable_drops, compute_suite_balance
from monitors.gate.verdict import GateInputs, collect_languages_with_enough_pairs, compute_coverage, decide_verdict
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
    format_missing_price,
)
from monitors.records.targets import GitChange, PullRequest
from monitors.stats.intervals import compute_percentile, compute_wilson_interval


def find_flaky_cases(assessments: Sequence[Assessment], *, outage: bool) -> tuple[FlakyCase, ...]:
    """Return the cases that were right at least once and failed at least once, the most severe first."""
    graded: dict[str, list[Assessment]] = {}
    for assessment in assessments:
        if is_graded(assessment, outage=outage):
            graded.setdefault(assessment.case_id, []).append(assessment)
    candidates = (_build_case_if_flaky(asked) for asked in graded.values() if len(asked) > 1)
    return tuple(sorted((case for case in candidates if case), key=lambda case: (-case.severity, case.case_id)))


def _build_case_if_flaky(asked: Sequence[Assessment]) -> FlakyCase | None:
    right = sum(assessment.outcome is CaseOutcome.CORRECT for assessment in asked)
    if not 0 < right < len(asked):
        return None
    severity = max(assessment.severity for assessment in asked)
    return FlakyCase(case_id=asked[0].case_id, severity=severity, asked=len(asked), right=right)


UNKNOWN_PATH = "not said"
"""Used instead of the path of an answer if the application reports none. A path is, for example, a model name."""


def count_outcomes_by_group(assessments: Sequence[Assessment]) -> tuple[Breakdown, ...]:
    """Count the outcomes by type, by language, by path and by severity.

    Within each of these four attributes, the largest group comes first.
    """
    groups: dict[str, Callable[[Assessment], str]] = {
        "type": lambda a: a.type,
        "language": lambda a: a.language,
        "path": lambda a: a.app_path or UNKNOWN_PATH,
        "severity": lambda a: str(a.severity.value),
    }
    return tuple(row for group, key in groups.items() for row in _count_outcomes_by_key(group, key, assessments))


def _count_outcomes_by_key(
    group: str, key: Callable[[Assessment], str], assessments: Sequence[Assessment]
) -> list[Breakdown]:
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


def list_judge_notes(judging: Judging | None, assessments: Sequence[Assessment]) -> tuple[VerdictReason, ...]:
    """Return notes on the judge's grades, and on the reasons for ungraded answers. No note changes the verdict."""
    if judging is None:
        return ()
    ungraded_cases = tuple(a.case_id for a in assessments if a.outcome is CaseOutcome.UNGRADED)
    ungraded = ungraded_cases if judging.ungraded else ()
    texts = (
        [_format_judge_off_note(judging, assessments)]
        if judging.state is JudgeState.OFF
        else list(_format_judge_notes(judging))
    )
    return tuple(
        VerdictReason(kind=ReasonKind.NOTE, text=text, case_ids=ungraded if number == 0 else (), decisive=False)
        for number, text in enumerate(texts)
    )


def _format_judge_off_note(judging: Judging, assessments: Sequence[Assessment]) -> str:
    unrated = sum(map(is_report, assessments))
    answers = max(0, judging.needed_judge_count - unrated)
    counts = [f"{answers} of {plural(judging.answers, 'answer')} left ungraded"] if answers else []
    counts += [f"{plural(unrated, 'report')} not rated"] if unrated else []
    return f"the judge is off ({judging.why}): {', '.join(counts) or 'no answer needed the judge'}"


def _format_judge_notes(judging: Judging) -> Iterator[str]:
    ungraded = plural(judging.ungraded, "answer")
    share = f"{judging.needed_judge_count} of {plural(judging.answers, 'answer')} needed the judge"
    if judging.to_confirm:
        share += f" ({judging.to_confirm} to confirm a grade of the rules)"
    if not judging.needed_judge_count:
        yield f"no answer needed the judge ({', '.join(judging.models)})"
        return
    yield f"{share}. {', '.join(judging.models)} graded {judging.judged} of them ({judging.cost_text})"
    yield from map(format_missing_price, judging.unpriced_models)
    if judging.estimated_calls:
        calls = plural(judging.estimated_calls, "call")
        yield f"the cost of {calls} is an estimate, because the provider did not report the number of tokens"
    if judging.budget_reached:
        yield f"the judge spent its budget of ${judging.budget_usd:.2f} and left {ungraded} ungraded"
    if judging.void_groups:
        discarded = plural(judging.void_grades, "judge grade was", "judge grades were")
        batches = f"{judging.void_groups} of {plural(judging.groups, 'batch', 'batches')}"
        yield f"{discarded} discarded, because the judge graded control answers wrong in {batches}"
    if judging.ungraded and not judging.budget_reached and not judging.void_groups:
        yield f"the judge left {ungraded} ungraded: {'; '.join(judging.ungraded_because[:2])}"


class RunFacts(RunIdentity):
    """Facts about a run in addition to its results.

    - ``planned`` is the number of cases in the suite.
    - ``not_ready`` is the reason why the application did not start. In this case, no question was asked.
    - ``request_limit`` states how long the run waited because the application limits requests.
    - ``judging`` describes what the judge did.
    """

    planned: int
    interrupted: bool = False
    resumed_cases: int = 0
    not_ready: str | None = None
    request_limit: str = ""
    judging: Judging | None = None
    pull_request: PullRequest | None = None
    change: GitChange | None = None


def evaluate_results(
    facts: RunFacts,
    results: Sequence[CaseResult],
    settings: GateSettings,
    *,
    baseline: Baseline | None = None,
    suite: Sequence[GoldCase] | None = None,
) -> RunReport:
    """Return the report of a run: verdict, reasons, scores, metrics, comparison and latency.

    ``baseline`` is the run to compare with. If the two runs are not comparable, the report contains the reason.
    ``suite`` contains all cases of the suite. If it is ``None``, only the cases that were asked are used.
    """
    asked = [result.assessment for result in results]
    run = _build_gate_inputs(facts, results, asked, settings, baseline=baseline, suite=suite)
    verdict, reasons = decide_verdict(run)
    triage = build_triage_summary(results, run.assessments, run.graded)
    limit = facts.request_limit
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
        change=facts.change,
        judging=facts.judging,
        verdict=verdict,
        reasons=(
            *reasons,
            *_note_baseline_of_other_branch(facts, baseline),
            *([VerdictReason(kind=ReasonKind.NOTE, text=limit, decisive=False)] if limit else ()),
            *list_judge_notes(facts.judging, run.assessments),
        ),
        triage=triage,
        scores=run.scores,
        metrics=tuple(measured.metric for measured in run.measured),
        coverage=run.coverage,
        latency=_compute_latency(results, settings),
        breakdowns=count_outcomes_by_group(run.assessments),
        cost_usd=(
            facts.judging.cost_usd
            if facts.judging
            else sum((g.cost_usd for a in asked for g in a.grades if isinstance(g, Judged)), Decimal(0))
        ),
        parity=tuple(run.parity),
        comparison=baseline
        and run.compared
        and build_comparison_with_triage_change(run.compared, baseline.report.triage, triage, results),
        rubric=run.rubric,
        sights=tuple(run.detectable_drops),
        flaky=tuple(run.flaky),
        balance=run.balance,
        questions=count_agent_questions(results),
    )


def _note_baseline_of_other_branch(facts: RunFacts, baseline: Baseline | None) -> Iterator[VerdictReason]:
    """Yield a note unless the baseline is a run of the branch that this change will be merged into."""
    if baseline is None or (facts.change is None and facts.pull_request is None):
        return
    target = facts.change.target_branch if facts.change else None
    branch = baseline.report.change.branch if baseline.report.change else None
    if target is not None and branch == target:
        return
    source = f"branch {branch}" if branch else "an unknown branch"
    aim = f"this change goes to branch {target}" if target else "the target branch of this change is unknown"
    text = f"the baseline, run {baseline.report.run_id}, is from {source}, but {aim}"
    yield VerdictReason(kind=ReasonKind.NOTE, text=text, decisive=False)


def compute_verdict_only(
    facts: RunFacts,
    results: Sequence[CaseResult],
    settings: GateSettings,
    *,
    baseline: Baseline | None = None,
    suite: Sequence[GoldCase] | None = None,
) -> Verdict:
    """Return the verdict of `evaluate_results` without building the report."""
    asked = [result.assessment for result in results]
    return decide_verdict(_build_gate_inputs(facts, results, asked, settings, baseline=baseline, suite=suite))[0]


def count_agent_questions(results: Sequence[CaseResult]) -> QuestionCounts | None:
    """Count the questions that the agent asked about issues, and how many of them were useful.

    Return ``None`` if the agent asked no questions. The questions count even if the agent wrote no report.
    """
    worths = [
        reading.worth
        for result in results
        if result.case.triage
        for _, reading in rate_questions(result.case.triage.issue, result.result.evidence.questions)
    ]
    if not worths:
        return None
    useful, needless = worths.count(QuestionWorth.USEFUL), worths.count(QuestionWorth.NEEDLESS)
    if not useful + needless:
        return QuestionCounts(asked=len(worths), useful=0, needless=0)
    low, high = compute_wilson_interval(useful, useful + needless)
    share = useful / (useful + needless)
    return QuestionCounts(asked=len(worths), useful=useful, needless=needless, share=share, low=low, high=high)


def _build_gate_inputs(
    facts: RunFacts,
    results: Sequence[CaseResult],
    asked: Sequence[Assessment],
    settings: GateSettings,
    *,
    baseline: Baseline | None,
    suite: Sequence[GoldCase] | None,
) -> GateInputs:
    folded = select_worst_repeats(asked)
    outage = f"{DOWN}: {facts.not_ready}" if facts.not_ready else _find_outage_reason(results)
    graded = collect_graded_case_ids(folded, outage=outage is not None)
    scores = compute_scores(folded, graded, settings.weights)
    rated = collect_ratings(asked)
    compared = baseline and compare_with_baseline(
        baseline,
        run_id=facts.run_id,
        suite_sha256=facts.suite_sha256,
        judging=facts.judging,
        assessments=folded,
        graded=graded,
        scores=scores,
        ratings_now=rated,
        settings=settings,
    )
    gaps = compute_language_gaps(asked, max_gap=settings.targets.language_gap)
    shared = {pair.case_id for pair in compared.pairs} if compared and not compared.comparison.refused else None
    cases = suite if suite is not None else {result.case.id: result.case for result in results}.values()
    asks = Counter(a.case_id for a in asked)
    return GateInputs(
        assessments=folded,
        graded=graded,
        flaky=find_flaky_cases(asked, outage=outage is not None),
        scores=scores,
        measured=compute_metrics(
            folded,
            settings,
            repeated=[a for a in folded if asks[a.case_id] > 1],
            paired=collect_languages_with_enough_pairs(gaps),
        ),
        parity=gaps,
        coverage=compute_coverage(graded, facts.planned, settings),
        ratings=rated,
        rubric=compute_average_rating(rated, count_met_criteria(asked)),
        unrated=find_unrated_report_ids(results, rated),
        compared=compared,
        detectable_drops=compute_detectable_drops(folded, graded, None if shared is None else frozenset(shared)),
        balance=compute_suite_balance(cases, settings),
        outage=outage,
        disputed=tuple(dict.fromkeys(a.case_id for a in asked if a.is_disputed)),
        interrupted=facts.interrupted,
        settings=settings,
    )


DOWN: Final = "the app was not available"


def _find_outage_reason(results: Sequence[CaseResult]) -> str | None:
    """Return why the run stopped asking questions, or why no question got an answer.

    Return ``None`` if there was no outage.
    """
    silent = [r.result for r in results if isinstance(r.result, NoAnswer)]
    stopped = any(n.reason is NoAnswerReason.CIRCUIT_OPEN for n in silent)
    asked = [n for n in silent if n.reason is not NoAnswerReason.CIRCUIT_OPEN]
    nothing = bool(asked) and len(silent) == len(results)
    if (not stopped and not nothing) or (asked and all(n.reason is NoAnswerReason.OLD_JOB for n in asked)):
        return None  # an app that returns old jobs is up; coverage reports that nothing was graded
    if not asked:
        return f"{DOWN}, so Lookout asked no questions"
    last = asked[-1]
    if last.reason in NOT_READ:
        return f"Lookout could not read any answer: {last.detail}"
    if last.reason is NoAnswerReason.NO_SUCH_PATH:
        return f"Lookout could not ask any question: {last.detail}"
    fault = DOWN if last.blame is Blame.APP else "Lookout could not ask any question"
    return f"{fault}: {last.reason.value.replace('_', ' ')}: {last.detail}"


def _compute_latency(results: Sequence[CaseResult], settings: GateSettings) -> Latency | None:
    times = [r.result.timings.total_ms for r in results if isinstance(r.result, Exchange)]
    if not times:
        return None
    return Latency(
        answered=len(times),
        p50_ms=compute_percentile(times, 0.50),
        p95_ms=compute_percentile(times, 0.95),
        objective_p50_ms=settings.latency_objective_p50_ms,
    )
