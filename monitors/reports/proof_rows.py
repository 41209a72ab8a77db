"""Rows of proof in words, for every report: what a verdict rests on, and the graders' mutation score.

A verdict rests on the baseline, on what could have been seen, and on the suite's balance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from monitors.plural import plural
from monitors.records.base import Finding, Language, Severity
from monitors.records.comparisons import Balance, Comparison, DetectableDrop, Direction, ParityGap
from monitors.records.explanations import Recheck
from monitors.records.runs import Metric, MutantCount, MutationScores, RunReport
from monitors.reports.format import SEVERITY_WORDS, moment, percent

_PATH_METRIC: Final = "path_accuracy:"
_SURE: Final = 0.05
_LEAST_P: Final = 0.0001
_GROUP_WORDS: Final = {
    "severity": "severity",
    "theme": "severity 3 about",
    "type": "type",
    "language": "language",
}
FEWEST_SHARED: Final = 6
"""Five cases that all break have an exact two-sided McNemar of 2/2⁵ = 0.0625, six one of 0.031."""
_MET_WORDS: Final = {Finding.YES: "met", Finding.NO: "missed", Finding.UNGRADED: "too few pairs to tell"}
_LANGUAGE_NAMES: Final = {
    Language.ENGLISH: "English",
    Language.HINDI: "Hindi",
    Language.HINGLISH: "Hinglish",
    Language.OTHER: "Another language",
}
DIRECTION_WORDS: Final = {
    Direction.WORSE: "worse",
    Direction.BETTER: "better",
    Direction.SAME: "no better and no worse",
}


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score of both runs."""

    name: str
    before: str
    now: str
    change: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """The shared cases of one severity, or of all."""

    severity: Severity | None
    text: str
    shared: str
    failing: tuple[str, ...]
    fixed: tuple[str, ...]
    p_value: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class DetectableDropRow:
    """What the cases of one severity could have shown."""

    severity: Severity
    text: str
    graded: str
    not_correct: str
    may_fail: str
    pairs: str
    drop: str


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """How many cases each value of a group has: ``("3", "11")``."""

    group: str
    counts: tuple[tuple[str, str], ...]


def format_baseline(comparison: Comparison) -> str:
    """Which run it was: ``run X of demo (staging), deploy abc123, accepted 2026-11-21 03:12:09 UTC``."""
    return (
        f"run {comparison.baseline_run_id} of {comparison.baseline_target} ({comparison.baseline_environment}), "
        f"deploy {comparison.baseline_commit or 'unknown'}, {moment(comparison.baseline_finished_at)}"
    )


def format_outcome(comparison: Comparison, recheck: Recheck | None = None) -> str:
    """The comparison in a sentence; what ``recheck`` saw fail each time is not put down to chance."""
    failing, fixed = len(comparison.newly_failing), len(comparison.newly_fixed)
    if not comparison.shared:
        return "No case was asked in both runs."
    shared = f"Of {plural(comparison.shared, 'shared case')}"
    if not failing and not fixed:
        return f"{shared} none came out differently."
    found = "more than chance explains" if comparison.p_value < _SURE else "chance alone may explain it"
    changes = (
        f"{shared} {failing:,} newly {'fails' if failing == 1 else 'fail'} and {fixed:,} "
        f"{'is' if fixed == 1 else 'are'} fixed"
    )
    if comparison.p_value >= _SURE and (firm := _always_failing(comparison, recheck)):
        which = "that case fails" if firm == 1 else "those asked again fail"
        return f"{changes}: too few cases to prove a drop of the whole suite; {which} every time."
    by_policy = "" if comparison.cluster_p_value is None else f"; by policy {format_p(comparison.cluster_p_value)}"
    return (
        f"{changes}: {DIRECTION_WORDS[comparison.direction]}, {found} "
        f"({format_p(comparison.p_value)}, exact McNemar{by_policy})."
    )


def _always_failing(comparison: Comparison, recheck: Recheck | None) -> int:
    """How many newly failing cases were asked again and failed each time; 0 where any of them did not."""
    again = [one.here for one in recheck.cases if one.case_id in comparison.newly_failing] if recheck else []
    firm = [count for count in again if count.asked and count.failed == count.asked]
    return len(firm) if len(firm) == len(again) else 0


def format_change(comparison: Comparison, *, most_ids: int) -> tuple[str, ...]:
    """What changed since a run that is no baseline, because it was not accepted; empty where nothing is shared."""
    if not comparison.refused or not comparison.shared:
        return ()
    shared = plural(comparison.shared, "case")
    better = _changed("right now, not right then", comparison.newly_fixed, most_ids)
    worse = _changed("not right now, right then", comparison.newly_failing, most_ids)
    return (f"of {shared} that both runs graded, {better}", f"of {shared} that both runs graded, {worse}")


def _changed(text: str, case_ids: Sequence[str], most_ids: int) -> str:
    more = f" and {len(case_ids) - most_ids:,} more" if len(case_ids) > most_ids else ""
    named = f": {', '.join(case_ids[:most_ids])}{more}" if case_ids else ""
    return f"{len(case_ids):,} {text}{named}"


def format_no_regression(report: RunReport) -> str:
    """Why a regression cannot fail this run, though it was asked to; empty where it can."""
    compared = report.comparison
    if compared is None:
        return f"no accepted run of {report.target.name} was found or asked for (--baseline)"
    if compared.refused:
        return f"run {compared.baseline_run_id} is no baseline: {'; '.join(compared.refused)}"
    if compared.shared < FEWEST_SHARED:
        return (
            f"only {plural(compared.shared, 'case')} of this run and run {compared.baseline_run_id} were graded in "
            f"both; with fewer than {FEWEST_SHARED} no change is more than chance explains"
        )
    return ""


def format_p(p_value: float) -> str:
    """``p = 0.031``, and ``p < 0.0001`` below that."""
    return f"p < {_LEAST_P:.4f}" if p_value < _LEAST_P else f"p = {p_value:.2g}"


def score_rows(comparison: Comparison) -> tuple[ScoreRow, ...]:
    """Weighted, flat and, where reports were rated in both runs, the average rating."""
    rows = [
        _score_row("weighted", comparison.weighted_before, comparison.weighted_now),
        _score_row("flat", comparison.flat_before, comparison.flat_now),
    ]
    moved = comparison.rubric
    if moved is not None:
        change = f"{moved.change:+.2f} [{moved.low:+.2f}, {moved.high:+.2f}]"
        name = f"rating of {plural(moved.shared, 'report')}"
        rows.append(ScoreRow(name, f"{moved.before:.2f}", f"{moved.now:.2f}", change, hurts=moved.change < 0))
    return tuple(rows)


def _score_row(name: str, before: float | None, now: float | None) -> ScoreRow:
    if before is None or now is None:
        return ScoreRow(name, _three(before), _three(now), "", hurts=False)
    return ScoreRow(name, _three(before), _three(now), f"{now - before:+.3f}", hurts=now < before)


def _three(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def change_rows(comparison: Comparison) -> tuple[ChangeRow, ...]:
    """The changes by severity, severest first."""
    return tuple(
        ChangeRow(
            severity=one.severity,
            text=SEVERITY_WORDS[one.severity],
            shared=f"{one.shared:,}",
            failing=one.newly_failing,
            fixed=one.newly_fixed,
            p_value=format_p(one.p_value),
            hurts=bool(one.newly_failing),
        )
        for one in sorted(comparison.severities, key=lambda one: -one.severity)
    )


def sight_rows(sights: Sequence[DetectableDrop]) -> tuple[DetectableDropRow, ...]:
    """Severest first."""
    return tuple(
        DetectableDropRow(
            severity=one.severity,
            text=SEVERITY_WORDS[one.severity],
            graded=f"{one.cases:,}",
            not_correct=f"{one.not_correct:,}",
            may_fail=_may_fail(one),
            pairs=f"{one.pairs:,}",
            drop="none" if one.smallest_drop is None else f"{percent(one.smallest_drop)} or more",
        )
        for one in sorted(sights, key=lambda one: -one.severity)
    )


def _may_fail(one: DetectableDrop) -> str:
    """With no failure seen, the rule of three beside the exact limit."""
    if not one.cases:
        return "anything"
    exact = f"up to {percent(one.failing_at_most)}"
    return exact if one.not_correct else f"{exact} (3/{one.cases:,})"


def balance_rows(balance: Balance) -> tuple[BalanceRow, ...]:
    """Rows of severity, theme, type and language; what there is none of is shown for severities and themes only."""
    rows: list[BalanceRow] = []
    for group, text in _GROUP_WORDS.items():
        counts = tuple(
            (row.key.replace("_", " "), f"{row.cases:,}") for row in balance.groups if row.group == group
        )
        rows.append(BalanceRow(text, counts))
    return tuple(rows)


def format_parity(gap: ParityGap) -> str:
    """``Hindi is 6.0 points behind English (95 % CI 1.2 to 11.5, 50 pairs; limit 5.0): missed``."""
    ahead = gap.gap < 0
    value, low, high = (-gap.gap, -gap.high, -gap.low) if ahead else (gap.gap, gap.low, gap.high)
    limit, met = (f"; limit {100 * gap.target:.1f}", f": {_MET_WORDS[gap.met]}") if gap.target else ("", "")
    return (
        f"{_LANGUAGE_NAMES[gap.language]} is {100 * value:.1f} points {'ahead of' if ahead else 'behind'} English "
        f"(95 % CI {_points(low)} to {_points(high)}, {plural(gap.pairs, 'pair')}{limit}){met}"
    )


def _points(share: float) -> str:
    return f"{100 * share + 0.0:.1f}".replace("-", "\N{MINUS SIGN}")


def format_path(metrics: Sequence[Metric]) -> str:
    """Which path answers best, and whether chance may explain it; empty with fewer than two paths."""
    paths = [one for one in metrics if one.name.startswith(_PATH_METRIC) and one.total]
    if len(paths) < 2:  # noqa: PLR2004 - a winner needs a loser
        return ""
    best, next_best = sorted(paths, key=lambda one: (-one.passed / one.total, -one.total))[:2]
    sure = "their intervals do not meet" if best.low > next_best.high else "chance may explain it"
    return f"best path: {_path(best)}, before {_path(next_best)}; {sure}"


def _path(metric: Metric) -> str:
    share = percent(metric.passed / metric.total)
    return f"{metric.name.removeprefix(_PATH_METRIC)} {share} of {plural(metric.total, 'answer')}"


def format_no_baseline(report: RunReport) -> str:
    """Why there is no comparison at all."""
    return f"There is no accepted run of {report.target.name} to compare with: nothing is said about regressions."


@dataclass(frozen=True, slots=True)
class MutationScoreRow:
    """One sort of wrong reply."""

    name: str
    mutants: str
    caught: str
    left: str
    passed: str
    graders: str


@dataclass(frozen=True, slots=True)
class MutationScoreView:
    """The section: a sentence, the rows, and whether a wrong reply would have been called right."""

    sentence: str
    rows: tuple[MutationScoreRow, ...]
    hurts: bool


def mutation_view(report: RunReport) -> MutationScoreView | None:
    """The section of a run; ``None`` where no mutants were tried."""
    mutation_score = report.mutation_score
    if mutation_score is None:
        return None
    return MutationScoreView(
        _sentence(mutation_score),
        tuple(map(_row, mutation_score.by_operator)),
        hurts=bool(mutation_score.whole.passed),
    )


def _sentence(mutation_score: MutationScores) -> str:
    whole = mutation_score.whole
    return (
        f"The same graders were given {whole.mutants:,} known-bad replies to {mutation_score.cases:,} severity-3 "
        f"questions of this suite. They failed {whole.caught:,} without a judge: {percent(whole.rate)} "
        f"[{percent(whole.low)}, {percent(whole.high)}]. Left to a judge: {whole.left:,}. "
        f"Passed as right: {whole.passed:,}."
    )


def _row(one: MutantCount) -> MutationScoreRow:
    graders = sorted(one.by_grader.items(), key=lambda item: (-item[1], item[0]))
    return MutationScoreRow(
        name=one.name.replace("_", " "),
        mutants=f"{one.mutants:,}",
        caught=f"{one.caught:,}",
        left=f"{one.left:,}" if one.left else "·",
        passed=f"{one.passed:,}" if one.passed else "·",
        graders=", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in graders) or "·",
    )
