"""How well the graders bite, in words for every report."""

from __future__ import annotations

from dataclasses import dataclass

from monitors.records.bites import CatchCount, SuiteBite
from monitors.records.runs import RunReport
from monitors.reports.wording import percent


@dataclass(frozen=True, slots=True)
class BiteRow:
    """One sort of wrong reply."""

    name: str
    twins: str
    caught: str
    left: str
    passed: str
    graders: str


@dataclass(frozen=True, slots=True)
class BiteView:
    """The section: a sentence, the rows, and whether a wrong reply would have been called right."""

    sentence: str
    rows: tuple[BiteRow, ...]
    hurts: bool


def bite_view(report: RunReport) -> BiteView | None:
    """The section of a run; ``None`` where no twins were tried."""
    bite = report.bite
    if bite is None:
        return None
    return BiteView(_sentence(bite), tuple(map(_row, bite.by_operator)), hurts=bool(bite.whole.passed))


def _sentence(bite: SuiteBite) -> str:
    whole = bite.whole
    return (
        f"The same graders were given {whole.twins:,} known-bad replies to {bite.cases:,} severity-3 questions of "
        f"this suite. They failed {whole.caught:,} without a judge: {percent(whole.rate)} "
        f"[{percent(whole.low)}, {percent(whole.high)}]. Left to a judge: {whole.left:,}. "
        f"Passed as right: {whole.passed:,}."
    )


def _row(one: CatchCount) -> BiteRow:
    graders = sorted(one.by_grader.items(), key=lambda item: (-item[1], item[0]))
    return BiteRow(
        name=one.name.replace("_", " "),
        twins=f"{one.twins:,}",
        caught=f"{one.caught:,}",
        left=f"{one.left:,}" if one.left else "·",
        passed=f"{one.passed:,}" if one.passed else "·",
        graders=", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in graders) or "·",
    )
