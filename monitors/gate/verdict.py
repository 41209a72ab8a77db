"""Decide the verdict of a run, PASS, FAIL or INCONCLUSIVE, and list the reasons.

There are three groups of reasons:

- Reasons to FAIL: a severity-3 failure (the veto), a low weighted score, a missed target, an accuracy in Hindi far
  below English, replies in the wrong language, low ratings, and a regression against the baseline.
- Reasons for INCONCLUSIVE: an outage, answers on which the rules and the judge disagree, and too few graded cases.
- Notes, which have no effect on the verdict: ungraded cases, flaky cases, and drops that the run cannot detect.

A reason to FAIL is not decisive if it would disappear when one flaky case is counted as right.
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
    remove_most_dropped_flaky_rating,
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
    RubricAverage,
    RubricChange,
    format_rating_bound,
)
from monitors.records.grades import Assessment, CaseOutcome, format_policy_row
from monitors.records.runs import Coverage, ReasonKind, Scores, Verdict, VerdictReason, format_metric_name
from monitors.stats.paired import ALPHA


@dataclass(frozen=True, slots=True)
class GateInputs:
    """The figures of a run that decide its verdict.

    - ``assessments`` contains one assessment for each case.
    - ``graded`` contains the ids of the graded cases.
    - ``rubric`` is the average rating, or ``None`` if no report was rated.
    - ``unrated`` contains the ids of the cases whose reports should have a rating but have none.
    - ``compared`` is ``None`` if there is no baseline.
    - ``outage`` is the reason why the application was down, or ``None`` if it was not down.
    - ``disputed`` contains the ids of the cases that the rules pass and the judge fails.
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
        """Return the ids of the cases that were sometimes right and sometimes wrong."""
        return frozenset(case.case_id for case in self.flaky)

    @property
    def has_enough_graded(self) -> bool:
        """Return whether enough cases were graded to draw conclusions about the whole suite."""
        return self.coverage.graded >= self.coverage.floor * self.coverage.asked

    @property
    def has_enough_rated(self) -> bool:
        """Return whether enough reports were rated to draw conclusions about all reports."""
        return len(self.ratings) >= self.coverage.floor * (len(self.ratings) + len(self.unrated))


MIN_FLAKY_FOR_VETO = 2
"""Minimum number of flaky severity-3 failures that make a run fail.

A single flaky failure may be due to an unusual question.
"""


def list_severity_3_failure_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if a case failed with severity 3.

    The reason is not decisive if only one flaky case failed.
    """
    severe = [a for a in run.assessments if a.outcome is CaseOutcome.FAILED and a.severity is Severity.CRITICAL]
    if not severe:
        return []
    ids = tuple(a.case_id for a in severe)
    flaky = [case for case in run.flaky if case.case_id in ids]
    if len(severe) == len(flaky) < MIN_FLAKY_FOR_VETO:
        text = (
            f"the only severity-3 failure is a flaky case ({flaky[0].text}). This failure sends an alert, but "
            "alone it does not fail the run"
        )
        return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids, decisive=False)]
    some = f" ({len(flaky)} of them flaky)" if flaky else ""
    failures = "failure fails" if len(severe) == 1 else f"failures{some} fail"
    text = f"{len(severe)} severity-3 {failures} the run, regardless of the score{_format_severity_rise(severe)}"
    return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids)]


def _format_severity_rise(severe: Sequence[Assessment]) -> str:
    """Describe how many of the failed cases in ``severe`` have a lower severity in the suite.

    The result also contains the reason why these failures count as severity 3.
    """
    rows = [format_policy_row(a.policy_row) for a in severe if a.case_severity is not Severity.CRITICAL]
    if not rows:
        return ""
    subject = "it counts" if len(severe) == 1 else f"{len(rows)} of them {'counts' if len(rows) == 1 else 'count'}"
    return f"; {subject} as severity 3 because {' and '.join(sorted(set(rows)))}"


def list_low_score_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the weighted score is below its minimum.

    The reason is decisive if the score stays too low even when all ungraded cases and one flaky case count as
    right.
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
        text += f"; it would be {best:.3f} if every ungraded case were right"
    elif without_flaky >= floor:
        text += f"; without one flaky case it would be {without_flaky:.3f}"
    ids = tuple(a.case_id for a in not_correct)
    decisive = without_flaky < floor
    return [VerdictReason(kind=ReasonKind.WEIGHTED_SCORE, text=text, case_ids=ids, decisive=decisive)]


def _compute_best_possible_score(run: GateInputs, spare: Assessment | None) -> float:
    """Return the weighted score that the run would have if more cases were right.

    All ungraded cases, all unasked cases and the case ``spare`` count as right. Unasked cases, whose severity is
    unknown here, count as severity 3, which is best for the application.
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
    """Return a reason for each metric below its target.

    A reason is decisive if enough cases were graded, and if the metric stays below its target even when one flaky
    case counts as right.
    """
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
"""Number of decimals to which averages are rounded.

Without rounding, a drop of exactly 0.3 could count as more than 0.3.
"""


def list_proven_rating_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return the proven reasons about ratings: those that missing grades and ratings could not change."""
    return [reason for reason, proven in _list_rating_failures(run) if proven]


def list_unproven_rating_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return the unproven reasons about ratings: those that missing grades and ratings could change."""
    return [
        reason.add_remark("too few cases were graded or rated to be sure")
        for reason, proven in _list_rating_failures(run)
        if not proven
    ]


def _list_rating_failures(run: GateInputs) -> Iterator[tuple[VerdictReason, bool]]:
    """Yield the reasons for a low average rating and for a large drop, each with a flag: true for a proven reason.

    A reason is proven if missing grades and ratings could not change it. No test for chance is needed, because the
    average covers the whole suite and not a sample.
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
    """Build the reason for a low average.

    The reason is decisive if the average stays low without the worst flaky case.
    """
    floor = run.settings.min_rubric
    low = tuple(case_id for case_id in sort_cases_by_rating(run.ratings) if run.ratings[case_id] < floor)
    rated = plural(len(average.ratings), "report")
    text = f"the average rating of {rated} is {average.mean:.2f}, below the minimum of {floor:g} (scale 1 to 5)"
    remaining = remove_lowest_rated_flaky(run.ratings, run.flaky_ids)
    decisive = bool(remaining) and _round_mean(remaining.values()) < floor
    return VerdictReason(kind=ReasonKind.RUBRIC, text=text, case_ids=low, decisive=decisive)


def _build_rating_drop_reason(run: GateInputs, change: RubricChange, before: Ratings) -> VerdictReason:
    """Build the reason for a drop of the ratings.

    The reason is decisive if the drop stays too large without the worst flaky case.
    """
    limit = run.settings.max_rubric_drop
    remaining = remove_most_dropped_flaky_rating(before, run.ratings, run.flaky_ids)
    drops = [before[case_id] - rating for case_id, rating in remaining.items() if case_id in before]
    named = (f"{fall.case_id} ({fall.before:g} to {fall.now:g})" for fall in change.fell[:_MAX_FALLS_NAMED])
    text = (
        f"the average rating of the {plural(change.shared, 'report')} that both runs rated fell from "
        f"{change.before:.2f} to {change.now:.2f}. The maximum drop is {limit:g}. "
        f"{plural(len(change.fell), 'report')} got a lower rating: {', '.join(named)}"
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


def list_regression_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if more cases broke than chance explains, or if the runs were not compared."""
    if run.compared is None:
        return []
    comparison = run.compared.comparison
    if comparison.refused:
        text = f"not compared with run {comparison.baseline_run_id}: {'; '.join(comparison.refused)}"
        return [VerdictReason(kind=ReasonKind.REGRESSION, text=text, decisive=False)]
    groups = list(_group_all_and_by_severity(run.compared.pairs))
    severities = [severity for severity, pairs in groups if _is_significantly_worse(pairs)]
    if not severities:
        return []
    lasting = any(_is_significantly_worse(_remove_one_flaky_case(pairs, run.flaky_ids)) for _, pairs in groups)
    changes = "; ".join(_format_severity_change(comparison, severity) for severity in severities)
    text = f"compared with run {comparison.baseline_run_id}: {changes}"
    if not lasting:
        text += ". If one flaky case is left out, chance can explain the difference"
    ids = comparison.newly_failing
    decisive = run.settings.fail_on_regression and lasting
    return [VerdictReason(kind=ReasonKind.REGRESSION, text=text, case_ids=ids, decisive=decisive)]


def _group_all_and_by_severity(pairs: Sequence[Pair]) -> Iterator[tuple[Severity | None, Sequence[Pair]]]:
    """Yield each severity with its pairs. If there are several severities, first yield ``None`` with all pairs."""
    severities = sorted({pair.severity for pair in pairs}, reverse=True)
    if len(severities) > 1:
        yield None, pairs
    for severity in severities:
        yield severity, [pair for pair in pairs if pair.severity is severity]


def _remove_one_flaky_case(pairs: Sequence[Pair], flaky: frozenset[str]) -> Sequence[Pair]:
    """Return the pairs without one flaky case that broke, if there is any.

    It does not matter which flaky case is removed, because the test only counts cases.
    """
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
    return (
        f"of {shared:,} {kind}cases in both runs, {broken:,} newly {fails} and {fixed:,} {fixes} fixed ({p_text})"
    )


_DECIDING_LANGUAGES = frozenset({Language.HINDI})
"""Languages whose gap to English can fail a run. For other languages, the gap is only a note."""


def collect_languages_with_enough_pairs(gaps: Iterable[ParityGap]) -> frozenset[Language]:
    """Return the languages whose gap to English has a limit, and that have enough graded pairs of questions."""
    return frozenset(gap.language for gap in gaps if gap.target is not None and gap.pairs >= MIN_PAIRS)


def list_language_gap_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason for each language whose gap in accuracy to English is larger than the limit."""
    return [_build_language_gap_reason(gap, run) for gap in run.parity if gap.met is Finding.NO]


def _build_language_gap_reason(gap: ParityGap, run: GateInputs) -> VerdictReason:
    right = {a.pair for a in run.assessments if a.language is Language.ENGLISH and a.factual_match is Finding.YES}
    wrong = (a for a in run.assessments if a.language is gap.language and a.factual_match is Finding.NO)
    behind = [a for a in wrong if a.pair is not None and a.pair in right]
    spare = 1 if run.flaky_ids & {a.case_id for a in behind} else 0
    target = gap.target or 0.0
    holds = (gap.english_only - gap.other_only - spare) / gap.pairs > target
    text = (
        f"accuracy in {gap.language} is {_format_points(gap.gap)} below English in {plural(gap.pairs, 'pair')} of "
        f"questions (95 % CI {100 * gap.low:.1f} to {100 * gap.high:.1f}); the limit is {_format_points(target)}"
    )
    return VerdictReason(
        kind=ReasonKind.METRIC_TARGET,
        text=text,
        case_ids=tuple(a.case_id for a in behind),
        decisive=run.has_enough_graded and holds and gap.language in _DECIDING_LANGUAGES,
    )


def _format_points(share: float) -> str:
    return f"{100 * share:.1f} points"


MIN_LANGUAGE_CASES = 5
"""Minimum number of replies in a wrong language that make a run fail. Fewer may be due to unusual questions."""


def list_wrong_language_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if replies are in another language than their questions.

    The reason is decisive if most English questions got a reply in another language. English replies to questions
    in Hindi or Hinglish are never decisive, because users mix these languages with English.
    """
    replies = [(a, grade) for a in run.assessments if (grade := find_reply_language_grade(a)) is not None]
    wrong = [(a, grade) for a, grade in replies if not grade.passed]
    if not wrong:
        return []
    example, grade = wrong[0]
    text = (
        f"{len(wrong)} of {plural(len(replies), 'reply', 'replies')} with a known language "
        f"{'is' if len(wrong) == 1 else 'are'} not in the expected language. For example, {example.case_id}: "
        f"{grade.reason}"
    )
    english = [a for a in run.assessments if a.language is Language.ENGLISH]
    not_english = {a.case_id for a, _ in wrong if a.language is Language.ENGLISH}
    lasting = len(not_english) - bool(not_english & run.flaky_ids)
    decisive = lasting >= MIN_LANGUAGE_CASES and 2 * lasting > len(english)
    ids = tuple(a.case_id for a, _ in wrong)
    return [VerdictReason(kind=ReasonKind.LANGUAGE, text=text, case_ids=ids, decisive=decisive)]


def list_outage_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the application was down."""
    if run.outage is None:
        return []
    return [VerdictReason(kind=ReasonKind.DEPLOY, text=run.outage)]


def list_judge_conflict_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the judge fails answers that the rules pass. A person must read these answers."""
    if not run.disputed:
        return []
    text = f"the judge fails {plural(len(run.disputed), 'answer')} that the rules pass; a person must decide"
    return [VerdictReason(kind=ReasonKind.DISPUTED, text=text, case_ids=run.disputed)]


def list_low_coverage_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return reasons for a stopped run, for too few graded cases, and for too few graded severity-3 cases."""
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
    """Return notes on the cases that the verdict does not cover.

    The notes are about ungraded severity-3 cases, ungraded cases that were right in the baseline, and reports
    without a rating.
    """
    ungraded = [a for a in run.assessments if a.case_id not in run.graded and a.case_id not in run.disputed]
    severe = tuple(a.case_id for a in ungraded if a.case_severity is Severity.CRITICAL)
    no_longer = run.compared.comparison.no_longer_graded if run.compared else ()
    no_longer = tuple(case_id for case_id in no_longer if case_id not in run.disputed)
    unrated = tuple(sorted(run.unrated)) if run.ratings and run.has_enough_rated else ()
    texts = {
        f"{plural(len(severe), 'severity-3 case')} not graded": severe,
        f"{plural(len(no_longer), 'case')} right in the baseline but not graded now": no_longer,
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
    """Return a reason if too few reports were rated to know their average."""
    if not run.ratings:
        text = f"no report was rated, so it is unknown whether the average is at least {run.settings.min_rubric:g}"
        return [VerdictReason(kind=ReasonKind.RUBRIC, text=text)] if run.settings.rating_needed else []
    if run.has_enough_rated:
        return []
    rated, reports = len(run.ratings), len(run.ratings) + len(run.unrated)
    text = f"only {rated} of {plural(reports, 'report')} were rated; the minimum is {run.coverage.floor:.0%}"
    return [VerdictReason(kind=ReasonKind.COVERAGE, text=text, case_ids=tuple(sorted(run.unrated)))]


def list_rating_bound_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason if the lower bound of the average rating is too low, and the settings require the bound."""
    average, floor = run.rubric, run.settings.min_rubric
    if not run.settings.rubric_bound_needed or average is None or average.bound is None or average.bound >= floor:
        return []
    shown = format_rating_bound(average)
    text = f"average rating {average.mean:.2f}: {shown}; `rubric_bound_needed` requires {floor:g}"
    return [VerdictReason(kind=ReasonKind.RUBRIC, text=text)]


def list_suite_balance_reasons(run: GateInputs) -> list[VerdictReason]:
    """Return a reason for each kind of case that the suite lacks.

    These reasons are decisive if the setting `strict` is true.
    """
    strict = run.settings.strict
    return [VerdictReason(kind=ReasonKind.BALANCE, text=text, decisive=strict) for text in run.balance.shortfalls]


def list_flaky_case_notes(run: GateInputs) -> list[VerdictReason]:
    """Return a note on the cases that were sometimes right and sometimes wrong."""
    if not run.flaky:
        return []
    cases = "case is" if len(run.flaky) == 1 else "cases are"
    first = f"the first {run.flaky[0].text}" if len(run.flaky) > 1 else run.flaky[0].text
    text = (
        f"{len(run.flaky)} {cases} flaky ({first}). A flaky case counts as failed, but a single flaky case does "
        "not decide the verdict"
    )
    ids = tuple(case.case_id for case in run.flaky)
    return [VerdictReason(kind=ReasonKind.FLAKY, text=text, case_ids=ids, decisive=False)]


def list_undetectable_drop_notes(run: GateInputs) -> list[VerdictReason]:
    """Return for each severity a note on the drops that matter but are too small for this run to detect."""
    return [
        VerdictReason(
            kind=ReasonKind.BLIND_SPOT,
            text=(
                f"severity-{severity.value} cases: {format_possible_failure_share(drop)}. "
                f"A comparison of {plural(drop.pairs, 'case')} cannot detect {format_undetectable_drop(drop)}, "
                f"but a drop of {100 * get_relevant_drop(severity, run.settings):g} % matters"
            ),
            decisive=False,
        )
        for severity, drop in find_undetectable_drops(run.detectable_drops, run.settings).items()
    ]


def compute_coverage(graded: frozenset[str], planned: int, settings: GateSettings) -> Coverage:
    """Return how many of the ``planned`` cases were graded, with the required share."""
    return Coverage(asked=planned, graded=len(graded), floor=settings.coverage_floor)


def decide_verdict(run: GateInputs) -> tuple[Verdict, tuple[VerdictReason, ...]]:
    """Return the verdict with its reasons.

    - FAIL: a reason to fail is decisive.
    - INCONCLUSIVE: no reason to fail is decisive, but an open question is.
    - PASS: no reason to fail and no open question is decisive.
    """
    failing = [
        *list_severity_3_failure_reasons(run),
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
