"""The verdict, PASS, FAIL or INCONCLUSIVE, with its reasons in order of weight.

Reasons to fail come from the run itself (the veto, the weighted score, missed targets, the reports' ratings),
from the comparison with the baseline (a drop of the ratings, a significant regression), and from questions asked
in several languages (Hindi may not be far behind English). Each reason decides only if it still holds with any one
flaky case counted as right (`monitors.gate.evaluate`). Other reasons make the verdict INCONCLUSIVE, or are only
notes: outage, disputed answers, coverage, balance, ungraded cases, flaky cases, undetectable drops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean

from monitors.gate.compare import MIN_PAIRS, ComparisonWithPairs, Pair, compute_p_value, find_change_direction
from monitors.gate.metrics import MeasuredMetric, find_reply_language_grade, get_weight
from monitors.gate.ratings import (
    MAX_RATING,
    Ratings,
    remove_lowest_rated_flaky,
    remove_most_dropped_flaky,
    sort_cases_by_rating,
)
from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import (
    find_undetectable_drops,
    format_possible_failure_share,
    format_undetectable_drop,
    get_relevant_drop,
)
from monitors.plural import plural
from monitors.records.base import Finding, Language, Severity
from monitors.records.comparisons import (
    Balance,
    Comparison,
    DetectableDrop,
    Direction,
    FlakyCase,
    ParityGap,
    RatingFall,
    RubricAverage,
    RubricChange,
    format_rating_bound,
)
from monitors.records.grades import Assessment, CaseOutcome, format_policy_row
from monitors.records.runs import Coverage, ReasonKind, Scores, Verdict, VerdictReason, format_metric_name
from monitors.stats.paired import ALPHA


@dataclass(frozen=True, slots=True)
class GateInputs:
    """A run before its verdict: one assessment for each case, and the figures computed from all of them.

    ``graded`` are the ids of the cases that are results about the application. ``outage`` is the reason why the
    app was down, ``None`` without an outage. ``disputed`` are the cases that rules pass and a judge fails.
    ``compared`` is ``None`` without a baseline, ``rubric`` is ``None`` if no report was rated. ``unrated`` are
    the cases with a report that should have a rating and has none.
    """

    assessments: Sequence[Assessment]
    graded: frozenset[str]
    flaky: Sequence[FlakyCase]
    scores: Scores
    measured: Sequence[MeasuredMetric]
    parity: Sequence[ParityGap]
    coverage: Coverage
    ratings: Ratings
    rubric: RubricAverage | None
    unrated: frozenset[str]
    compared: ComparisonWithPairs | None
    detectable_drops: Sequence[DetectableDrop]
    balance: Balance
    outage: str | None
    disputed: tuple[str, ...]
    interrupted: bool
    settings: GateSettings

    @property
    def flaky_ids(self) -> frozenset[str]:
        """Ids of the cases that were right only sometimes."""
        return frozenset(case.case_id for case in self.flaky)

    @property
    def has_enough_graded(self) -> bool:
        """Whether enough cases were graded for shares to be valid for the whole suite."""
        return self.coverage.graded >= self.coverage.floor * self.coverage.asked

    @property
    def has_enough_rated(self) -> bool:
        """Whether enough reports were rated for the average to be valid for all reports."""
        return len(self.ratings) >= self.coverage.floor * (len(self.ratings) + len(self.unrated))


MIN_FLAKY_FOR_VETO = 2
"""Number of flaky severity-3 failures that fails a run: one may be an odd question, two are the application."""


def list_veto_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return the veto: one severity-3 failure fails the run, unless its case is flaky and the only one."""
    severe = [a for a in run.assessments if a.outcome is CaseOutcome.FAILED and a.severity is Severity.CRITICAL]
    if not severe:
        return []
    ids = tuple(a.case_id for a in severe)
    flaky = [case for case in run.flaky if case.case_id in ids]
    if len(severe) == len(flaky) < MIN_FLAKY_FOR_VETO:
        text = (
            f"1 severity-3 failure is of a flaky case ({flaky[0].text}). It sends an alert but does not fail the "
            "run on its own"
        )
        return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids, decisive=False)]
    some = f" ({len(flaky)} of flaky cases)" if flaky else ""
    failures = "failure fails" if len(severe) == 1 else f"failures{some} fail"
    text = f"{len(severe)} severity-3 {failures} the run, whatever the score{_format_severity_rise(severe)}"
    return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids)]


def _format_severity_rise(severe: Sequence[Assessment]) -> str:
    """Format how many of these failures belong to less severe cases, and why they count as severity 3."""
    rows = [format_policy_row(a.policy_row) for a in severe if a.case_severity is not Severity.CRITICAL]
    if not rows:
        return ""
    subject = "it counts" if len(severe) == 1 else f"{len(rows)} of them {'counts' if len(rows) == 1 else 'count'}"
    return f"; {subject} as severity 3 because {' and '.join(sorted(set(rows)))}"


def list_low_score_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the weighted score is below its floor.

    It is decisive if the score stays below even when all ungraded cases count as right.
    """
    scores, floor = run.scores, run.settings.min_weighted_score
    value = scores.weighted.value
    if value is None or value >= floor:
        return []
    not_correct = [a for a in run.assessments if a.case_id in run.graded and a.outcome is not CaseOutcome.CORRECT]
    text = f"weighted score {value:.3f} ({scores.weighted.earned}/{scores.weighted.total}) is below {floor:g}"
    flaky = (a for a in not_correct if a.case_id in run.flaky_ids)
    best = _compute_best_possible_score(run, None)
    without_flaky = max((_compute_best_possible_score(run, case) for case in flaky), default=best)
    if best >= floor:
        text += f"; even if every ungraded case were right, it could reach only {best:.3f}"
    elif without_flaky >= floor:
        text += f"; without one flaky case it would be {without_flaky:.3f}"
    ids = tuple(a.case_id for a in not_correct)
    decisive = without_flaky < floor
    return [VerdictReason(kind=ReasonKind.WEIGHTED_SCORE, text=text, case_ids=ids, decisive=decisive)]


def _compute_best_possible_score(run: GateInputs, spare: Assessment | None) -> float:
    """Return the weighted score if all ungraded or unasked cases were right, and ``spare`` too.

    A failure that counts as right has only the weight of its case. The severity of cases that were not asked is
    unknown here: they count with the weight of severity 3, in the app's favour.
    """
    weights = run.settings.weights
    ungraded = [get_weight(a.case_severity, weights) for a in run.assessments if a.case_id not in run.graded]
    unasked = get_weight(Severity.CRITICAL, weights) * max(0, run.coverage.asked - len(run.assessments))
    more = sum(ungraded, Decimal(0)) + unasked
    earned, total = run.scores.weighted.earned + more, run.scores.weighted.total + more
    if spare is not None:
        right = get_weight(spare.case_severity, weights)
        earned, total = earned + right, total + right - get_weight(spare.severity, weights)
    return float(earned / total)


def list_missed_target_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason for each missed target; it is decisive only if enough cases were graded."""
    return [
        VerdictReason(
            kind=ReasonKind.METRIC_TARGET,
            text=_format_missed_target(measured),
            case_ids=measured.missed,
            decisive=run.has_enough_graded and _is_missed_without_flaky(measured, run.flaky_ids),
        )
        for measured in run.measured
        if measured.metric.met is Finding.NO
    ]


def _format_missed_target(measured: MeasuredMetric) -> str:
    metric = measured.metric
    counted = f"{metric.passed / metric.total:.3f} ({metric.passed}/{metric.total})"
    return f"{format_metric_name(metric.name)} {counted} is below its target {metric.target:.3g}"


def _is_missed_without_flaky(measured: MeasuredMetric, flaky: frozenset[str]) -> bool:
    metric = measured.metric
    spare = any(case_id in flaky for case_id in measured.missed)
    return metric.target is not None and (metric.passed + spare) / metric.total < metric.target


_ROUNDING = 9
"""Decimals that averages are rounded to, so that a floating-point error does not fail a drop of exactly 0.3."""


def list_proven_rating_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return the rating failures that no missing rating could disprove: a low average, or too large a drop."""
    return [reason for reason, proven in _list_rating_failures(run) if proven]


def list_unproven_rating_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return the rating failures that cases without a rating could disprove: INCONCLUSIVE."""
    return [
        reason.add_remark("these ratings do not prove it")
        for reason, proven in _list_rating_failures(run)
        if not proven
    ]


def _list_rating_failures(run: GateInputs) -> Iterator[tuple[VerdictReason, bool]]:
    """Yield each rating failure with whether it is proven.

    The suite is fixed, so its average is a measurement, not a sample: only missing grades and ratings cause
    doubt.
    """
    average, floor, limit = run.rubric, run.settings.min_rubric, run.settings.max_rubric_drop
    if average is not None and round(average.mean, _ROUNDING) < floor:
        at_best = _round_mean([*run.ratings.values(), *[float(MAX_RATING)] * len(run.unrated)])
        yield _build_low_rating_reason(run, average), run.has_enough_graded and at_best < floor
    change = run.compared.comparison.rubric if run.compared else None
    if run.compared and change is not None and round(-change.change, _ROUNDING) > limit:
        drop = _build_rating_drop_reason(run, change, run.compared.ratings_before)
        yield drop, run.has_enough_graded and run.has_enough_rated


def _build_low_rating_reason(run: GateInputs, average: RubricAverage) -> VerdictReason:
    """Build the reason for a low average; decisive if it stays low without the lowest-rated flaky case."""
    floor = run.settings.min_rubric
    low = tuple(case_id for case_id in sort_cases_by_rating(run.ratings) if run.ratings[case_id] < floor)
    rated = plural(len(average.ratings), "report")
    text = f"average rating {average.mean:.2f} of {rated} is below {floor:g} of 5"
    remaining = remove_lowest_rated_flaky(run.ratings, run.flaky_ids)
    decisive = bool(remaining) and _round_mean(remaining.values()) < floor
    return VerdictReason(kind=ReasonKind.RUBRIC, text=text, case_ids=low, decisive=decisive)


def _build_rating_drop_reason(run: GateInputs, change: RubricChange, before: Ratings) -> VerdictReason:
    """Build the reason for a drop; decisive if it stays too large without the flaky case with the largest drop."""
    limit = run.settings.max_rubric_drop
    remaining = remove_most_dropped_flaky(before, run.ratings, run.flaky_ids)
    drops = [before[case_id] - rating for case_id, rating in remaining.items() if case_id in before]
    text = (
        f"average rating {change.before:.2f} before and {change.now:.2f} now, on the {change.shared} reports of "
        f"both runs: {change.change:+.2f}; a drop above {limit:g} fails; {_format_falls(change.fell)}"
    )
    return VerdictReason(
        kind=ReasonKind.RUBRIC,
        text=text,
        case_ids=tuple(fall.case_id for fall in change.fell),
        decisive=bool(drops) and _round_mean(drops) > limit,
    )


def _round_mean(values: Iterable[float]) -> float:
    return round(fmean(values), _ROUNDING)


_MAX_FALLS_NAMED = 3


def _format_falls(fell: Sequence[RatingFall]) -> str:
    named = (f"{fall.case_id} ({fall.before:g} to {fall.now:g})" for fall in fell[:_MAX_FALLS_NAMED])
    return f"{plural(len(fell), 'report')} fell, most of all {', '.join(named)}"


def list_regression_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if chance does not explain the newly broken cases, or why they were not compared."""
    if run.compared is None:
        return []
    comparison = run.compared.comparison
    if comparison.refused:
        text = f"not compared with run {comparison.baseline_run_id}: {'; '.join(comparison.refused)}"
        return [VerdictReason(kind=ReasonKind.REGRESSION, text=text, decisive=False)]
    severities = _find_significant(run.compared)
    if not severities:
        return []
    lasting = _find_significant_without_flaky(run.compared, run.flaky_ids)
    changes = "; ".join(_format_severity_change(comparison, severity) for severity in severities)
    text = f"{changes} (against run {comparison.baseline_run_id})"
    if not lasting:
        text += "; this does not hold without one flaky case"
    ids = comparison.newly_failing
    decisive = run.settings.fail_on_regression and bool(lasting)
    return [VerdictReason(kind=ReasonKind.REGRESSION, text=text, case_ids=ids, decisive=decisive)]


def _find_significant(compared: ComparisonWithPairs) -> list[Severity | None]:
    """List the severities with more broken cases than chance explains; ``None`` stands for all together."""
    return [severity for severity, pairs in _group_by_severity(compared.pairs) if _is_significantly_worse(pairs)]


def _find_significant_without_flaky(compared: ComparisonWithPairs, flaky: frozenset[str]) -> list[Severity | None]:
    """List the same severities if one flaky case counts as right."""
    return [
        severity
        for severity, pairs in _group_by_severity(compared.pairs)
        if _is_significantly_worse(_remove_one_flaky_case(pairs, flaky))
    ]


def _group_by_severity(pairs: Sequence[Pair]) -> Iterator[tuple[Severity | None, Sequence[Pair]]]:
    severities = sorted({pair.severity for pair in pairs}, reverse=True)
    if len(severities) > 1:
        yield None, pairs
    for severity in severities:
        yield severity, [pair for pair in pairs if pair.severity is severity]


def _remove_one_flaky_case(pairs: Sequence[Pair], flaky: frozenset[str]) -> Sequence[Pair]:
    """Remove one flaky case that broke, if any. Any one is right, because the cases are only counted."""
    left_out = next((pair for pair in pairs if pair.case_id in flaky and pair.difference > 0), None)
    return [pair for pair in pairs if pair is not left_out]


def _is_significantly_worse(pairs: Sequence[Pair]) -> bool:
    return find_change_direction(pairs) is Direction.WORSE and compute_p_value(pairs) < ALPHA


def _format_severity_change(comparison: Comparison, severity: Severity | None) -> str:
    if severity is None:
        broken, fixed = len(comparison.newly_failing), len(comparison.newly_fixed)
        return _format_changed_cases("", comparison.shared, broken, fixed, comparison.p_value)
    change = next(change for change in comparison.severities if change.severity is severity)
    kind = f"severity-{severity.value} "
    return _format_changed_cases(
        kind, change.shared, len(change.newly_failing), len(change.newly_fixed), change.p_value
    )


def _format_changed_cases(kind: str, shared: int, broken: int, fixed: int, p: float) -> str:
    p_text = "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"  # noqa: PLR2004 - smaller says no more
    fails, fixes = ("fails" if broken == 1 else "fail"), ("is" if fixed == 1 else "are")
    return f"of {shared:,} shared {kind}cases {broken:,} newly {fails} and {fixed:,} {fixes} fixed ({p_text})"


_DECIDING_LANGUAGES = frozenset({Language.HINDI})
"""Languages whose gap to English can fail a run; the gap of another language is only noted."""


def collect_paired_languages(gaps: Iterable[ParityGap]) -> frozenset[Language]:
    """List the languages that are compared with English over pairs: a limit is set and enough were graded."""
    return frozenset(gap.language for gap in gaps if gap.target is not None and gap.pairs >= MIN_PAIRS)


def list_language_gap_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason for each language that is too far behind English, with the cases that cause the gap."""
    return [_build_language_gap_reason(gap, run) for gap in run.parity if gap.met is Finding.NO]


def _build_language_gap_reason(gap: ParityGap, run: GateInputs) -> VerdictReason:
    behind = _select_behind_english(gap.language, run.assessments)
    spare = 1 if run.flaky_ids & {a.case_id for a in behind} else 0
    target = gap.target or 0.0
    holds = (gap.english_only - gap.other_only - spare) / gap.pairs > target
    text = (
        f"{gap.language} is {_format_points(gap.gap)} behind English over {plural(gap.pairs, 'pair')} (95 % CI "
        f"{100 * gap.low:.1f} to {100 * gap.high:.1f}); the limit is {_format_points(target)}"
    )
    return VerdictReason(
        kind=ReasonKind.METRIC_TARGET,
        text=text,
        case_ids=tuple(a.case_id for a in behind),
        decisive=run.has_enough_graded and holds and gap.language in _DECIDING_LANGUAGES,
    )


def _select_behind_english(language: Language, assessments: Sequence[Assessment]) -> list[Assessment]:
    """Select the cases in ``language`` that were wrong while the same question was right in English."""
    right = {a.pair for a in assessments if a.language is Language.ENGLISH and a.factual_match is Finding.YES}
    wrong = (a for a in assessments if a.language is language and a.factual_match is Finding.NO)
    return [a for a in wrong if a.pair is not None and a.pair in right]


def _format_points(share: float) -> str:
    return f"{100 * share:.1f} points"


MIN_LANGUAGE_CASES = 5
"""Minimal number of replies in a wrong language. Fewer may be odd questions: they are named, and decide nothing."""


def list_wrong_language_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason that names the replies in another language than the question's, with an example.

    The reason is decisive if most English questions got such a reply. Users mix Hindi and Hinglish with English,
    so a reply to them in English decides nothing.
    """
    replies = [(a, grade) for a in run.assessments if (grade := find_reply_language_grade(a)) is not None]
    wrong = [(a, grade) for a, grade in replies if not grade.passed]
    if not wrong:
        return []
    example, grade = wrong[0]
    text = (
        f"{len(wrong)} of {plural(len(replies), 'reply', 'replies')} whose language is known "
        f"{'is' if len(wrong) == 1 else 'are'} not in the expected language; {example.case_id}: {grade.reason}"
    )
    english = [a for a in run.assessments if a.language is Language.ENGLISH]
    not_english = {a.case_id for a, _ in wrong if a.language is Language.ENGLISH}
    lasting = len(not_english) - bool(not_english & run.flaky_ids)
    decisive = lasting >= MIN_LANGUAGE_CASES and 2 * lasting > len(english)
    ids = tuple(a.case_id for a, _ in wrong)
    return [VerdictReason(kind=ReasonKind.LANGUAGE, text=text, case_ids=ids, decisive=decisive)]


def list_outage_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the app was down."""
    if run.outage is None:
        return []
    return [VerdictReason(kind=ReasonKind.DEPLOY, text=run.outage)]


def list_judge_conflict_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the rules pass answers that the judge fails: a person must read them."""
    if not run.disputed:
        return []
    text = f"rules and judge disagree on {plural(len(run.disputed), 'answer')}: rules pass, the judge fails"
    return [VerdictReason(kind=ReasonKind.DISPUTED, text=text, case_ids=run.disputed)]


def list_low_coverage_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return reasons if the run was stopped, or graded too few of all cases or of the severe ones."""
    reasons: list[VerdictReason] = []
    if run.interrupted:
        text = f"the run was stopped after {len(run.assessments)} of {plural(run.coverage.asked, 'case')}"
        reasons.append(VerdictReason(kind=ReasonKind.COVERAGE, text=text))
    graded, asked, floor = run.coverage.graded, run.coverage.asked, run.coverage.floor
    ungraded = [a for a in run.assessments if a.case_id not in run.graded]
    if graded < floor * asked or graded == 0:
        reasons.append(_build_coverage_reason(graded, asked, "cases", ungraded, run.coverage))
    severe = [a for a in run.assessments if a.case_severity is Severity.CRITICAL]
    severe_graded = sum(a.case_id in run.graded for a in severe)
    if severe_graded < floor * len(severe):
        severe_ungraded = [a for a in ungraded if a.case_severity is Severity.CRITICAL]
        reasons.append(
            _build_coverage_reason(severe_graded, len(severe), "severity-3 cases", severe_ungraded, run.coverage)
        )
    return reasons


def list_ungraded_case_notes(run: GateInputs) -> list[VerdictReason]:
    """Note the gaps in a PASS: ungraded cases of severity 3 or right in the baseline, unrated reports."""
    ungraded = [a for a in run.assessments if a.case_id not in run.graded and a.case_id not in run.disputed]
    severe = tuple(a.case_id for a in ungraded if a.case_severity is Severity.CRITICAL)
    no_longer = run.compared.comparison.no_longer_graded if run.compared else ()
    no_longer = tuple(case_id for case_id in no_longer if case_id not in run.disputed)
    unrated = tuple(sorted(run.unrated)) if run.ratings and run.has_enough_rated else ()
    texts = {
        f"{plural(len(severe), 'severity-3 case')} not graded": severe,
        f"{plural(len(no_longer), 'case')} right in the baseline and not graded now": no_longer,
        f"{plural(len(unrated), 'report')} not rated": unrated,
    }
    return [
        VerdictReason(kind=ReasonKind.UNCOVERED, text=text, case_ids=ids, decisive=False)
        for text, ids in texts.items()
        if ids
    ]


def _build_coverage_reason(
    graded: int, asked: int, noun: str, ungraded: Sequence[Assessment], coverage: Coverage
) -> VerdictReason:
    text = f"only {graded} of {asked} {noun} could be graded; the minimum is {coverage.floor:.0%}"
    worst_first = sorted(ungraded, key=lambda a: -a.case_severity)
    return VerdictReason(kind=ReasonKind.COVERAGE, text=text, case_ids=tuple(a.case_id for a in worst_first))


def list_unrated_report_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if too few reports were rated for the average to be valid for all of them."""
    if not run.ratings:
        text = f"no report was rated, so it is open whether their average reaches {run.settings.min_rubric:g}"
        return [VerdictReason(kind=ReasonKind.RUBRIC, text=text)] if run.settings.rating_needed else []
    if run.has_enough_rated:
        return []
    rated, reports = len(run.ratings), len(run.ratings) + len(run.unrated)
    text = f"only {rated} of {plural(reports, 'report')} were rated; {run.coverage.floor:.0%} are needed"
    return [VerdictReason(kind=ReasonKind.COVERAGE, text=text, case_ids=tuple(sorted(run.unrated)))]


def list_rating_bound_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the gate asks for a bound on the agent's ratings in general, and the bound is too low."""
    average, floor = run.rubric, run.settings.min_rubric
    if not run.settings.rubric_bound_needed or average is None or average.bound is None or average.bound >= floor:
        return []
    shown = format_rating_bound(average)
    text = f"average rating {average.mean:.2f}: {shown}; `rubric_bound_needed` asks for {floor:g}"
    return [VerdictReason(kind=ReasonKind.RUBRIC, text=text)]


def list_suite_balance_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason for each group that the suite lacks; decisive with `strict`."""
    strict = run.settings.strict
    return [VerdictReason(kind=ReasonKind.BALANCE, text=text, decisive=strict) for text in run.balance.shortfalls]


def list_flaky_case_notes(run: GateInputs) -> list[VerdictReason]:
    """Note the cases that were right only in some askings."""
    if not run.flaky:
        return []
    cases = "case is" if len(run.flaky) == 1 else "cases are"
    first = f"the first {run.flaky[0].text}" if len(run.flaky) > 1 else run.flaky[0].text
    text = (
        f"{len(run.flaky)} {cases} flaky ({first}): they count as failed, but one of them alone does not decide "
        "the verdict"
    )
    ids = tuple(case.case_id for case in run.flaky)
    return [VerdictReason(kind=ReasonKind.FLAKY, text=text, case_ids=ids, decisive=False)]


def list_undetectable_drop_notes(run: GateInputs) -> list[VerdictReason]:
    """Note, for each severity, the relevant regressions that a comparison of this size cannot detect."""
    return [
        VerdictReason(
            kind=ReasonKind.BLIND_SPOT,
            text=(
                f"cases written as severity {severity.value}: {format_possible_failure_share(drop)}; "
                f"a drop of {100 * get_relevant_drop(severity, run.settings):g} % matters, "
                f"and a comparison of {plural(drop.pairs, 'case')} does not detect {format_undetectable_drop(drop)}"
            ),
            decisive=False,
        )
        for severity, drop in find_undetectable_drops(run.detectable_drops, run.settings).items()
    ]


def compute_coverage(graded: frozenset[str], planned: int, settings: GateSettings) -> Coverage:
    """Return how many of the ``planned`` cases were graded."""
    return Coverage(asked=planned, graded=len(graded), floor=settings.coverage_floor)


def decide_verdict(run: GateInputs) -> tuple[Verdict, tuple[VerdictReason, ...]]:
    """Return the verdict over one assessment for each case, with its reasons.

    FAIL needs proof: a severity-3 failure, or a score or metric that is below its floor even if all ungraded
    cases count as right. Proof that depends on one flaky case does not count. Without proof and with too little
    graded, the verdict is INCONCLUSIVE.
    """
    failing = [
        *list_veto_reasons(run),
        *list_low_score_reasons(run),
        *list_missed_target_reasons(run),
        *list_language_gap_reasons(run),
        *list_wrong_language_reasons(run),
        *list_proven_rating_reasons(run),
        *list_regression_reasons(run),
    ]
    open_questions = [
        *list_outage_reasons(run),
        *list_judge_conflict_reasons(run),
        *list_low_coverage_reasons(run),
        *list_unproven_rating_reasons(run),
        *list_unrated_report_reasons(run),
        *list_rating_bound_reasons(run),
        *list_suite_balance_reasons(run),
    ]
    notes = [*list_ungraded_case_notes(run), *list_flaky_case_notes(run), *list_undetectable_drop_notes(run)]
    reasons = (*failing, *open_questions, *notes)
    if any(reason.decisive for reason in failing):
        return Verdict.FAIL, reasons
    if any(reason.decisive for reason in open_questions):
        return Verdict.INCONCLUSIVE, reasons
    return Verdict.PASS, reasons
