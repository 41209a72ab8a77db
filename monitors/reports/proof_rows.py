"""What a verdict rests on, in words for every report: baseline, what could have been seen, the suite's balance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from monitors.records.base import Finding, Severity
from monitors.records.comparisons import Balance, Comparison, Direction, Sight
from monitors.records.parity import ParityGap
from monitors.records.runs import Metric, RunReport
from monitors.reports.wording import SEVERITY_WORDS, moment, percent, plural

_PATH_METRIC: Final = "path_accuracy:"
_SURE: Final = 0.05
_LEAST_P: Final = 0.0001
_GROUP_WORDS: Final = {
    "severity": "severity",
    "theme": "severity 3 about",
    "type": "type",
    "language": "language",
}
_MET_WORDS: Final = {Finding.YES: "met", Finding.NO: "missed", Finding.UNTOLD: "too few pairs to ask"}
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
    words: str
    shared: str
    failing: tuple[str, ...]
    fixed: tuple[str, ...]
    p_value: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class SightRow:
    """What the cases of one severity could have shown."""

    severity: Severity
    words: str
    told: str
    lost: str
    may_fail: str
    pairs: str
    drop: str


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """How many cases each value of a group has: ``("3", "11")``."""

    group: str
    counts: tuple[tuple[str, str], ...]


def baseline_words(comparison: Comparison) -> str:
    """Which run it was: ``run X of demo (staging), deploy abc123, accepted 2026-11-21 03:12:09 UTC``."""
    return (
        f"run {comparison.baseline_run_id} of {comparison.baseline_target} ({comparison.baseline_environment}), "
        f"deploy {comparison.baseline_commit or 'unknown'}, {moment(comparison.baseline_finished_at)}"
    )


def outcome_words(comparison: Comparison) -> str:
    """The comparison in a sentence."""
    failing, fixed = len(comparison.newly_failing), len(comparison.newly_fixed)
    shared = f"Of {plural(comparison.shared, 'shared case')}"
    if not failing and not fixed:
        return f"{shared} none came out differently."
    found = "more than chance explains" if comparison.p_value < _SURE else "chance alone may explain it"
    by_policy = "" if comparison.cluster_p_value is None else f"; by policy {p_words(comparison.cluster_p_value)}"
    return (
        f"{shared} {failing:,} newly {'fails' if failing == 1 else 'fail'} and {fixed:,} "
        f"{'is' if fixed == 1 else 'are'} fixed: {DIRECTION_WORDS[comparison.direction]}, {found} "
        f"({p_words(comparison.p_value)}, exact McNemar{by_policy})."
    )


def p_words(p_value: float) -> str:
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
    """By severity, severest first."""
    return tuple(
        ChangeRow(
            severity=one.severity,
            words=SEVERITY_WORDS[one.severity],
            shared=f"{one.shared:,}",
            failing=one.newly_failing,
            fixed=one.newly_fixed,
            p_value=p_words(one.p_value),
            hurts=bool(one.newly_failing),
        )
        for one in sorted(comparison.severities, key=lambda one: -one.severity)
    )


def sight_rows(sights: Sequence[Sight]) -> tuple[SightRow, ...]:
    """Severest first."""
    return tuple(
        SightRow(
            severity=one.severity,
            words=SEVERITY_WORDS[one.severity],
            told=f"{one.cases:,}",
            lost=f"{one.lost:,}",
            may_fail=_may_fail(one),
            pairs=f"{one.pairs:,}",
            drop="none" if one.smallest_drop is None else f"{percent(one.smallest_drop)} or more",
        )
        for one in sorted(sights, key=lambda one: -one.severity)
    )


def _may_fail(one: Sight) -> str:
    """With no failure seen, the rule of three beside the exact limit."""
    if not one.cases:
        return "anything"
    exact = f"up to {percent(one.failing_at_most)}"
    return exact if one.lost else f"{exact} (3/{one.cases:,})"


def balance_rows(balance: Balance) -> tuple[BalanceRow, ...]:
    """Severity, theme, type, language; what there is none of is shown for severities and themes alone."""
    rows: list[BalanceRow] = []
    for group, words in _GROUP_WORDS.items():
        counts = tuple(
            (row.key.replace("_", " "), f"{row.cases:,}") for row in balance.groups if row.group == group
        )
        rows.append(BalanceRow(words, counts))
    return tuple(rows)


def parity_words(gap: ParityGap) -> str:
    """``hi: 6.0 points behind English [1.2, 11.5] over 50 pairs, at most 5.0 are allowed: missed``."""
    ahead = gap.gap < 0
    value, low, high = (-gap.gap, -gap.high, -gap.low) if ahead else (gap.gap, gap.low, gap.high)
    allowed = f", at most {100 * gap.target:.1f} are allowed: {_MET_WORDS[gap.met]}" if gap.target else ""
    return (
        f"{gap.language}: {100 * value:.1f} points {'ahead of' if ahead else 'behind'} English "
        f"[{100 * low:.1f}, {100 * high:.1f}] over {plural(gap.pairs, 'pair')}{allowed}"
    )


def path_words(metrics: Sequence[Metric]) -> str:
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


def no_baseline_words(report: RunReport) -> str:
    """Why there is no comparison at all."""
    return f"There is no accepted run of {report.target.name} to compare with: nothing is said about regressions."
