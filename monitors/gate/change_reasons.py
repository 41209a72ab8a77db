"""Reasons from the comparison with the baseline: a drop of the ratings, a significant regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from monitors.gate.compare import Compared, Pair, direction_of, p_value
from monitors.gate.ratings import Ratings, without_most_dropped
from monitors.gate.weighing import Weighing
from monitors.paired import ALPHA
from monitors.records.base import Severity
from monitors.records.comparisons import Comparison, Direction, RubricChange
from monitors.records.runs import ReasonKind, VerdictReason

_ROUNDING = 9
"""Averages of whole ratings: a drop of exactly 0.3 must not fail for the want of a binary digit."""


def rating_drop(run: Weighing) -> list[VerdictReason]:
    """The average rating fell by more than is allowed, on the cases that both runs rated."""
    if run.compared is None or run.compared.comparison.rubric is None:
        return []
    moved, limit = run.compared.comparison.rubric, run.settings.max_rubric_drop
    if round(-moved.change, _ROUNDING) <= limit:
        return []
    before = run.compared.ratings_before
    others = without_most_dropped(before, run.ratings, run.flaky_ids)
    fell = tuple(sorted(i for i in run.ratings if i in before and run.ratings[i] < before[i]))
    decisive = run.enough_told and round(_drop(before, others), _ROUNDING) > limit
    text = f"{_moved_words(moved)}; a drop above {limit:g} fails"
    return [VerdictReason(kind=ReasonKind.RUBRIC, text=text, case_ids=fell, decisive=decisive)]


def _drop(before: Ratings, now: Ratings) -> float:
    shared = before.keys() & now.keys()
    return fmean(before[i] - now[i] for i in shared) if shared else 0.0


def _moved_words(moved: RubricChange) -> str:
    return (
        f"average rating {moved.before:.2f} to {moved.now:.2f} on {moved.shared} shared reports: "
        f"{moved.change:+.2f} [{moved.low:+.2f}, {moved.high:+.2f}]"
    )


def regression(run: Weighing) -> list[VerdictReason]:
    """What broke against the baseline, when chance alone does not explain it; or why it was not compared."""
    if run.compared is None:
        return []
    comparison = run.compared.comparison
    if comparison.refused:
        return [_refused(comparison)]
    found = _significant(run.compared)
    if not found:
        return []
    kept = _significant_without_flaky(run.compared, run.flaky_ids)
    text = (
        f"{'; '.join(_change_words(comparison, one) for one in found)} (against run {comparison.baseline_run_id})"
    )
    if not kept:
        text += "; not so without one flaky case"
    ids = comparison.newly_failing
    decisive = run.settings.fail_on_regression and bool(kept)
    return [VerdictReason(kind=ReasonKind.REGRESSION, text=text, case_ids=ids, decisive=decisive)]


def _refused(comparison: Comparison) -> VerdictReason:
    text = f"not compared with run {comparison.baseline_run_id}: {'; '.join(comparison.refused)}"
    return VerdictReason(kind=ReasonKind.REGRESSION, text=text, decisive=False)


def _significant(compared: Compared) -> list[Severity | None]:
    """The severities of which more broke than chance explains; ``None`` stands for all together."""
    return [one for one, pairs in _groups(compared.pairs) if _is_worse(pairs)]


def _significant_without_flaky(compared: Compared, flaky: frozenset[str]) -> list[Severity | None]:
    """The same with one flaky case taken to have been right."""
    return [one for one, pairs in _groups(compared.pairs) if _is_worse(_without_flaky(pairs, flaky))]


def _groups(pairs: Sequence[Pair]) -> Iterator[tuple[Severity | None, Sequence[Pair]]]:
    severities = sorted({pair.severity for pair in pairs}, reverse=True)
    if len(severities) > 1:
        yield None, pairs
    for severity in severities:
        yield severity, [pair for pair in pairs if pair.severity is severity]


def _without_flaky(pairs: Sequence[Pair], flaky: frozenset[str]) -> Sequence[Pair]:
    """Without one flaky case that broke, if there is any: which one makes no difference to a count."""
    left_out = next((pair for pair in pairs if pair.case_id in flaky and pair.difference > 0), None)
    return [pair for pair in pairs if pair is not left_out]


def _is_worse(pairs: Sequence[Pair]) -> bool:
    return direction_of(pairs) is Direction.WORSE and p_value(pairs) < ALPHA


def _change_words(comparison: Comparison, severity: Severity | None) -> str:
    if severity is None:
        broken, fixed = len(comparison.newly_failing), len(comparison.newly_fixed)
        return _words("", comparison.shared, broken, fixed, comparison.p_value)
    one = next(change for change in comparison.severities if change.severity is severity)
    what = f"severity-{severity.value} "
    return _words(what, one.shared, len(one.newly_failing), len(one.newly_fixed), one.p_value)


def _words(what: str, shared: int, broken: int, fixed: int, p: float) -> str:
    told = "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"  # noqa: PLR2004 - smaller says no more
    failing, mended = ("fails" if broken == 1 else "fail"), ("is" if fixed == 1 else "are")
    return f"of {shared:,} shared {what}cases {broken:,} newly {failing} and {fixed:,} {mended} fixed ({told})"
