"""Formats the comparison, detectable drops, the suite's balance and the mutation score as text, for all reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from monitors.plural import plural
from monitors.records.base import Finding, Language, Severity
from monitors.records.comparisons import Balance, Comparison, DetectableDrop, Direction, ParityGap
from monitors.records.explanations import Recheck
from monitors.records.runs import MAX_UNCOVERED_IDS, Metric, MutantCount, MutationScores, RunReport
from monitors.reports.format import SEVERITY_WORDS, format_moment, format_percent

_PATH_METRIC: Final = "path_accuracy:"
_SIGNIFICANCE_LEVEL: Final = 0.05
_MIN_P_SHOWN: Final = 0.0001
_GROUP_WORDS: Final = {
    "severity": "severity",
    "theme": "severity 3 about",
    "type": "type",
    "language": "language",
}
MIN_SHARED_CASES: Final = 6
"""A run can fail for a regression only if it shares at least this many cases with its baseline.

With fewer cases, chance can explain every change: if five cases all break, McNemar's exact p-value is 0.0625.
"""
_MET_WORDS: Final = {Finding.YES: "met", Finding.NO: "missed", Finding.UNGRADED: "too few pairs for a result"}
_LANGUAGE_NAMES: Final = {
    Language.ENGLISH: "English",
    Language.HINDI: "Hindi",
    Language.HINGLISH: "Hinglish",
    Language.GERMAN: "German",
    Language.FRENCH: "French",
    Language.SPANISH: "Spanish",
    Language.OTHER: "Another language",
}
DIRECTION_WORDS: Final = {
    Direction.WORSE: "worse",
    Direction.BETTER: "better",
    Direction.SAME: "neither better nor worse",
}


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score, with its values in the baseline and in this run."""

    name: str
    before: str
    now: str
    change: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """How the results changed between two runs, for the cases of one severity or of all severities.

    Only cases that both runs asked are included.
    """

    severity: Severity | None
    text: str
    shared: str
    failing: tuple[str, ...]
    fixed: tuple[str, ...]
    p_value: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class DetectableDropRow:
    """The smallest drop that the cases of one severity can detect."""

    severity: Severity
    text: str
    graded: str
    not_correct: str
    may_fail: str
    pairs: str
    drop: str


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """A grouping of the cases, such as severity.

    ``counts`` contains each value with its number of cases: ``("3", "11")``.
    """

    group: str
    counts: tuple[tuple[str, str], ...]


def format_baseline_run(comparison: Comparison) -> str:
    """Return a description of the baseline: ``run X of demo (staging), deploy abc123, 2026-11-21 03:12:09 UTC``."""
    return (
        f"run {comparison.baseline_run_id} of {comparison.baseline_target} ({comparison.baseline_environment}), "
        f"deploy {comparison.baseline_commit or 'unknown'}, {format_moment(comparison.baseline_finished_at)}"
    )


def format_comparison_outcome(comparison: Comparison, recheck: Recheck | None = None) -> str:
    """Return a sentence about what changed since the baseline.

    If the new failures occurred again in every recheck, the sentence does not say that they may be due to chance.
    """
    outcome, no_longer = _format_outcome_of_shared_cases(comparison, recheck), comparison.no_longer_graded
    if not no_longer:
        return outcome
    were = "case that was" if len(no_longer) == 1 else "cases that were"
    text = f"{were} right in the baseline could not be graded now"
    return f"{outcome} {_format_changed_cases(text, no_longer, MAX_UNCOVERED_IDS)}."


def _format_outcome_of_shared_cases(comparison: Comparison, recheck: Recheck | None) -> str:
    failing, fixed = len(comparison.newly_failing), len(comparison.newly_fixed)
    if not comparison.shared:
        return (
            "No case was graded in both runs." if comparison.no_longer_graded else "No case was asked in both runs."
        )
    shared = f"Of {plural(comparison.shared, 'shared case')}"
    if not failing and not fixed:
        return f"{shared} no result changed."
    significance = (
        "more than chance can explain"
        if comparison.p_value < _SIGNIFICANCE_LEVEL
        else "chance alone may explain it"
    )
    changes = (
        f"{shared} {failing:,} newly {'fails' if failing == 1 else 'fail'} and {fixed:,} "
        f"{'is' if fixed == 1 else 'are'} fixed"
    )
    if comparison.p_value >= _SIGNIFICANCE_LEVEL and (
        always_failing := _count_always_failing_or_zero(comparison, recheck)
    ):
        subject = "that case fails" if always_failing == 1 else "the cases asked again fail"
        return f"{changes}: too few cases to prove a drop of the whole suite, but {subject} every time."
    by_policy = (
        "" if comparison.cluster_p_value is None else f"; by policy {format_p_value(comparison.cluster_p_value)}"
    )
    return (
        f"{changes}: {DIRECTION_WORDS[comparison.direction]}, {significance} "
        f"({format_p_value(comparison.p_value)}, exact McNemar{by_policy})."
    )


def _count_always_failing_or_zero(comparison: Comparison, recheck: Recheck | None) -> int:
    """Return how many of the newly failing cases were rechecked, if all of these failed in every recheck.

    Otherwise, return 0.
    """
    counts = [case.here for case in recheck.cases if case.case_id in comparison.newly_failing] if recheck else []
    always_failing = [count for count in counts if count.asked and count.failed == count.asked]
    return len(always_failing) if len(always_failing) == len(counts) else 0


def format_changes_since_unaccepted_run(comparison: Comparison, *, max_ids: int) -> tuple[str, ...]:
    """Return two lines about the changes since a run that was not accepted as the baseline.

    The result is empty if a baseline was accepted, or if the runs share no cases.
    """
    if not comparison.refused or not comparison.shared:
        return ()
    shared = plural(comparison.shared, "case")
    better = _format_changed_cases("right only in this run", comparison.newly_fixed, max_ids)
    worse = _format_changed_cases("right only in the other run", comparison.newly_failing, max_ids)
    return (f"of {shared} that both runs graded, {better}", f"of {shared} that both runs graded, {worse}")


def _format_changed_cases(text: str, case_ids: Sequence[str], max_ids: int) -> str:
    more = f" and {len(case_ids) - max_ids:,} more" if len(case_ids) > max_ids else ""
    named = f": {', '.join(case_ids[:max_ids])}{more}" if case_ids else ""
    return f"{len(case_ids):,} {text}{named}"


def explain_missing_regression_check(report: RunReport) -> str:
    """Return the reason why a regression cannot make this run fail.

    The result is empty if a regression can make the run fail.
    """
    compared = report.comparison
    if compared is None:
        branch = f" on {report.change.target_branch}" if report.change and report.change.target_branch else ""
        return f"there is no accepted run of {report.target.name}{branch}, or --baseline none was given"
    if compared.refused:
        return f"run {compared.baseline_run_id} cannot be the baseline: {'; '.join(compared.refused)}"
    if compared.shared < MIN_SHARED_CASES:
        return (
            f"this run and run {compared.baseline_run_id} have only {plural(compared.shared, 'graded case')} in "
            f"common; with fewer than {MIN_SHARED_CASES}, chance can explain every change"
        )
    return ""


def format_p_value(p_value: float) -> str:
    """Format a p-value, such as ``p = 0.031``. A value below 0.0001 becomes ``p < 0.0001``."""
    return f"p < {_MIN_P_SHOWN:.4f}" if p_value < _MIN_P_SHOWN else f"p = {p_value:.2g}"


def build_score_rows(comparison: Comparison) -> tuple[ScoreRow, ...]:
    """Build one row for each score, and a row for the average rating if both runs have one."""
    rows = [
        _build_score_row("weighted", comparison.weighted_before, comparison.weighted_now),
        _build_score_row("flat", comparison.flat_before, comparison.flat_now),
    ]
    rating_change = comparison.rubric
    if rating_change is not None:
        change = f"{rating_change.change:+.2f}"
        name = f"rating of {plural(rating_change.shared, 'report')}"
        rows.append(
            ScoreRow(
                name,
                f"{rating_change.before:.2f}",
                f"{rating_change.now:.2f}",
                change,
                hurts=rating_change.change < 0,
            )
        )
    return tuple(rows)


def _build_score_row(name: str, before: float | None, now: float | None) -> ScoreRow:
    if before is None or now is None:
        return ScoreRow(name, _format_three_decimals(before), _format_three_decimals(now), "", hurts=False)
    return ScoreRow(
        name,
        _format_three_decimals(before),
        _format_three_decimals(now),
        f"{now - before:+.3f}",
        hurts=now < before,
    )


def _format_three_decimals(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def build_severity_change_rows(comparison: Comparison) -> tuple[ChangeRow, ...]:
    """Build one row of changes for each severity, the highest severity first."""
    return tuple(
        ChangeRow(
            severity=change.severity,
            text=SEVERITY_WORDS[change.severity],
            shared=f"{change.shared:,}",
            failing=change.newly_failing,
            fixed=change.newly_fixed,
            p_value=format_p_value(change.p_value),
            hurts=bool(change.newly_failing),
        )
        for change in sorted(comparison.severities, key=lambda change: -change.severity)
    )


def build_detectable_drop_rows(drops: Sequence[DetectableDrop]) -> tuple[DetectableDropRow, ...]:
    """Build the rows of detectable drops, the highest severity first."""
    return tuple(
        DetectableDropRow(
            severity=drop.severity,
            text=SEVERITY_WORDS[drop.severity],
            graded=f"{drop.cases:,}",
            not_correct=f"{drop.not_correct:,}",
            may_fail=_format_failing_share_limit(drop),
            pairs=f"{drop.pairs:,}",
            drop="none" if drop.smallest_drop is None else f"{format_percent(drop.smallest_drop)} or more",
        )
        for drop in sorted(drops, key=lambda drop: -drop.severity)
    )


def _format_failing_share_limit(drop: DetectableDrop) -> str:
    """Format the upper limit for the share of failing cases, with 95 % confidence.

    If no case failed, this limit is about 3 divided by the number of cases.
    """
    if not drop.cases:
        return "anything"
    exact = f"up to {format_percent(drop.failing_at_most)}"
    return exact if drop.not_correct else f"{exact} (3/{drop.cases:,})"


def build_suite_balance_rows(balance: Balance) -> tuple[BalanceRow, ...]:
    """Build rows by severity, theme, type and language. Zero counts are shown only for severities and themes."""
    rows: list[BalanceRow] = []
    for group, text in _GROUP_WORDS.items():
        counts = tuple(
            (row.key.replace("_", " "), f"{row.cases:,}") for row in balance.groups if row.group == group
        )
        rows.append(BalanceRow(text, counts))
    return tuple(rows)


def format_language_gap(gap: ParityGap) -> str:
    """Format the score difference between two languages.

    For example: ``Hindi is 6.0 points behind English (95 % CI 1.2 to 11.5, 50 pairs; limit 5.0): missed``.
    """
    ahead = gap.gap < 0
    value, low, high = (-gap.gap, -gap.high, -gap.low) if ahead else (gap.gap, gap.low, gap.high)
    limit, met = (f"; limit {100 * gap.target:.1f}", f": {_MET_WORDS[gap.met]}") if gap.target else ("", "")
    return (
        f"{_LANGUAGE_NAMES[gap.language]} is {100 * value:.1f} points {'ahead of' if ahead else 'behind'} English "
        f"(95 % CI {_format_points(low)} to {_format_points(high)}, {plural(gap.pairs, 'pair')}{limit}){met}"
    )


def _format_points(share: float) -> str:
    return f"{100 * share + 0.0:.1f}".replace("-", "\N{MINUS SIGN}")


def format_best_app_path(metrics: Sequence[Metric]) -> str:
    """Compare the most accurate path with the second one, and state whether the difference may be due to chance.

    A path is the part of the application that answered, for example a model. The result is empty if there are fewer
    than two paths.
    """
    paths = [metric for metric in metrics if metric.name.startswith(_PATH_METRIC) and metric.total]
    if len(paths) < 2:  # noqa: PLR2004 - a winner needs a loser
        return ""
    best, next_best = sorted(paths, key=lambda metric: (-metric.passed / metric.total, -metric.total))[:2]
    sure = "their intervals do not overlap" if best.low > next_best.high else "chance may explain it"
    return f"best path: {_format_path_share(best)}; second: {_format_path_share(next_best)}; {sure}"


def _format_path_share(metric: Metric) -> str:
    share = format_percent(metric.passed / metric.total)
    return f"{metric.name.removeprefix(_PATH_METRIC)} {share} of {plural(metric.total, 'answer')}"


def format_no_baseline(report: RunReport) -> str:
    """Return the sentence for a run that has no earlier run to compare with."""
    return (
        f"There is no accepted run of {report.target.name} to compare with, so Lookout cannot report regressions."
    )


@dataclass(frozen=True, slots=True)
class MutationScoreRow:
    """The number of wrong replies of one kind that the graders detected."""

    name: str
    mutants: str
    caught: str
    left: str
    passed: str
    graders: str


@dataclass(frozen=True, slots=True)
class MutationScoreView:
    """The section of the report about mutants, which are correct replies with a planted fault.

    ``hurts`` is true if the graders passed a mutant as correct.
    """

    sentence: str
    rows: tuple[MutationScoreRow, ...]
    hurts: bool


def build_mutation_view(report: RunReport) -> MutationScoreView | None:
    """Build the section of a run's report about mutants, or return ``None`` if no mutants were graded."""
    mutation_score = report.mutation_score
    if mutation_score is None:
        return None
    return MutationScoreView(
        _format_mutation_score(mutation_score),
        tuple(map(_build_mutation_row, mutation_score.by_operator)),
        hurts=bool(mutation_score.whole.passed),
    )


def _format_mutation_score(mutation_score: MutationScores) -> str:
    whole = mutation_score.whole
    return (
        f"The same graders graded {whole.mutants:,} known-bad replies to {mutation_score.cases:,} severity-3 "
        f"questions of this suite. Without a judge, they rejected {whole.caught:,} replies: "
        f"{format_percent(whole.rate)} [{format_percent(whole.low)}, {format_percent(whole.high)}]. Left to a "
        f"judge: {whole.left:,}. Wrongly passed: {whole.passed:,}."
    )


def _build_mutation_row(count: MutantCount) -> MutationScoreRow:
    graders = sorted(count.by_grader.items(), key=lambda item: (-item[1], item[0]))
    return MutationScoreRow(
        name=count.name.replace("_", " "),
        mutants=f"{count.mutants:,}",
        caught=f"{count.caught:,}",
        left=f"{count.left:,}" if count.left else "·",
        passed=f"{count.passed:,}" if count.passed else "·",
        graders=", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in graders) or "·",
    )
