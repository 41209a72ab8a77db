"""How an agent's reports on issues came out, in words, for every report: the four dimensions and how they moved.

What is not known says so: no judge, no question, steps that nobody saw. A movement is said only where both runs
have the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from monitors.plural import plural
from monitors.records.comparisons import Comparison, DimensionChange
from monitors.records.runs import IssuePath, QuestionCounts, RunReport, TriageSummary
from monitors.reports.format import percent

ACCURACY: Final = "triage accuracy"
USEFULNESS: Final = "usefulness"
QUESTIONS: Final = "question quality"
EFFICIENCY: Final = "efficiency"
STEPS: Final = "steps per issue"


@dataclass(frozen=True, slots=True)
class Movement:
    """A figure in both runs, in words. ``what`` is the figure; ``hurts`` is true where it became worse."""

    what: str
    before: str
    now: str
    shared: int
    hurts: bool

    @property
    def changed(self) -> bool:
        """Whether a reader sees any difference."""
        return self.before != self.now

    @property
    def text(self) -> str:
        """``usefulness 4.3 → 3.8``, ``triage accuracy unchanged``."""
        return f"{self.what} {self.figures}"

    @property
    def figures(self) -> str:
        """``4.3 → 3.8``, ``unchanged``."""
        return f"{self.before} → {self.now}" if self.changed else "unchanged"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One of the four. ``known`` is false where there is no figure; then ``value`` says so and ``detail`` why.

    ``moved`` is ``None`` where one of the runs does not have the figure, and where there is no baseline.
    """

    name: str
    value: str
    detail: str
    moved: Movement | None = None
    known: bool = True

    @property
    def against(self) -> str:
        """``4.3 → 3.8 on 12 shared issues``; empty where no movement is known."""
        if self.moved is None:
            return ""
        figures = self.moved.figures if self.moved.what == self.name else self.moved.text
        return f"{figures} on {plural(self.moved.shared, 'shared issue')}"


def dimensions(report: RunReport) -> tuple[Dimension, ...]:
    """All four, in their order; none for a run without issues."""
    if report.triage is None:
        return ()
    return (
        _accuracy(report.triage, report.comparison),
        _usefulness(report),
        _questions(report.questions),
        _efficiency(report.triage.paths, report.comparison),
    )


def format_dimensions(report: RunReport) -> str:
    """``Usefulness 4.3 → 3.8, triage accuracy unchanged``: what moved comes first.

    Where no movement is known at all it is the values; of what is not known nothing is said.
    """
    known = [one for one in dimensions(report) if one.known]
    moved = [one.moved.text for one in known if one.moved and one.moved.changed]
    still = [one.moved.text for one in known if one.moved and not one.moved.changed]
    text = ", ".join([*moved, *still] or [f"{one.name} {one.value}" for one in known])
    return f"{text[:1].upper()}{text[1:]}"


def dimension_table(report: RunReport) -> Iterator[str]:
    """The four as a table in Markdown; nothing for a run without issues."""
    found = dimensions(report)
    compared = any(one.moved for one in found)
    if found:
        yield f"| dimension | now |{' against the baseline |' if compared else ''}"
        yield f"| --- | --- |{' --- |' if compared else ''}"
    for one in found:
        yield f"| {one.name} | **{one.value}**: {one.detail} |{f' {one.against} |' if compared else ''}"


def _accuracy(triage: TriageSummary, compared: Comparison | None) -> Dimension:
    found = triage.accuracy
    if not found.total:
        return Dimension(ACCURACY, "nothing graded", f"of {plural(triage.issues, 'issue')}", known=False)
    counted = f"{found.passed:,} of {plural(found.total, 'issue')} with a correct report"
    left = triage.issues - found.total
    ungraded = f"; {left:,} could not be graded" if left > 0 else ""
    detail = f"{counted}, 95 % CI {100 * found.low:.0f} to {100 * found.high:.0f} %{ungraded}"
    change = compared.triage.accuracy if compared and compared.triage else None
    moved = _movement(ACCURACY, change, percent, more_is_better=True)
    return Dimension(ACCURACY, percent(found.passed / found.total), detail, moved)


def _usefulness(report: RunReport) -> Dimension:
    found = report.rubric
    if found is None:
        return Dimension(USEFULNESS, "not rated", "no judge rated a report", known=False)
    detail = f"average of {plural(len(found.ratings), 'report')}, 95 % CI {found.low:.1f} to {found.high:.1f}"
    rated = report.comparison.rubric if report.comparison else None
    change = DimensionChange(shared=rated.shared, before=rated.before, now=rated.now) if rated else None
    moved = _movement(USEFULNESS, change, _one_decimal, more_is_better=True)
    return Dimension(USEFULNESS, f"{found.mean:.1f} of 5", detail, moved)


def _questions(counts: QuestionCounts | None) -> Dimension:
    if counts is None:
        return Dimension(QUESTIONS, "no question asked", "the agent stopped for none", known=False)
    known = counts.useful + counts.needless
    if counts.share is None or counts.low is None or counts.high is None:
        unknown = f"{counts.asked:,} asked; whether the issues answer them is not known"
        return Dimension(QUESTIONS, "not known", unknown, known=False)
    unsure = f"; of {counts.asked - known:,} it is not known" if counts.asked > known else ""
    detail = f"{counts.useful:,} of {plural(known, 'question')}, 95 % CI {100 * counts.low:.0f} to "
    return Dimension(QUESTIONS, f"{percent(counts.share)} useful", f"{detail}{100 * counts.high:.0f} %{unsure}")


def _efficiency(paths: Sequence[IssuePath], compared: Comparison | None) -> Dimension:
    if not paths:
        return Dimension(EFFICIENCY, "not measured", "no step of the agent was seen", known=False)
    measured = [(path.steps, path.shortest_path) for path in paths if path.shortest_path is not None]
    steps, shortest = sum(taken for taken, _ in measured), sum(needed for _, needed in measured)
    average = f"{sum(path.steps for path in paths) / len(paths):.1f} {STEPS}"
    on = "" if len(measured) == len(paths) else f" on {plural(len(measured), 'issue')}"
    against = f"{_count(steps)} steps where {shortest:,} would do{on}" if shortest else "no shortest path is known"
    value = f"{steps / shortest:.1f} × shortest path" if shortest else average
    change = compared.triage.steps if compared and compared.triage else None
    moved = _movement(STEPS, change, _one_decimal, more_is_better=False)
    return Dimension(EFFICIENCY, value, f"{against}; {_repeats(paths)}", moved)


def _repeats(paths: Sequence[IssuePath]) -> str:
    counted = [path.repeated for path in paths if path.repeated is not None]
    if not counted:
        return "calls cannot be distinguished"
    again = sum(counted)
    where = f" in {plural(sum(1 for one in counted if one), 'issue')}" if again else ""
    return f"{_count(again)} repeated {'call' if again == 1 else 'calls'}{where}"


def _count(value: float) -> str:
    """Averages over several asks of an issue need not be whole."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _one_decimal(value: float) -> str:
    return f"{value:.1f}"


def _movement(
    what: str, change: DimensionChange | None, written: Callable[[float], str], *, more_is_better: bool
) -> Movement | None:
    if change is None:
        return None
    hurts = change.now < change.before if more_is_better else change.now > change.before
    return Movement(what, written(change.before), written(change.now), change.shared, hurts=hurts)
