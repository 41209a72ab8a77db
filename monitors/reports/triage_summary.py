"""Formats the four figures about an agent's reports: accuracy, usefulness, questions and efficiency.

For an unknown figure, the reason is shown. A change is shown only if both runs have the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from monitors.plural import plural
from monitors.records.comparisons import Comparison, DimensionChange, format_rating_bound
from monitors.records.grades import CRITERION_LABELS, Criterion
from monitors.records.runs import IssuePath, QuestionCounts, RunReport, TriageSummary
from monitors.reports.format import format_percent

ACCURACY: Final = "triage accuracy"
USEFULNESS: Final = "usefulness"
QUESTIONS: Final = "question quality"
EFFICIENCY: Final = "efficiency"
STEPS: Final = "steps per issue"


@dataclass(frozen=True, slots=True)
class Movement:
    """The values of one figure about an agent's reports in the baseline and in this run, as text.

    ``hurts`` is true if the figure became worse.
    """

    what: str
    before: str
    now: str
    shared: int
    hurts: bool

    @property
    def changed(self) -> bool:
        """Return whether the value of the figure, as shown, differs between the two runs."""
        return self.before != self.now

    @property
    def text(self) -> str:
        """Return the complete text, such as ``usefulness 4.3 → 3.8`` or ``triage accuracy unchanged``."""
        return f"{self.what} {self.figures}"

    @property
    def figures(self) -> str:
        """Return the values without the name of the figure, such as ``4.3 → 3.8`` or ``unchanged``."""
        return f"{self.before} → {self.now}" if self.changed else "unchanged"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One of the four figures about an agent's reports.

    If ``known`` is false, ``detail`` is the reason why the figure is unknown. ``moved`` is ``None`` if the figure
    cannot be compared with a baseline.
    """

    name: str
    value: str
    detail: str
    moved: Movement | None = None
    known: bool = True

    @property
    def against(self) -> str:
        """Return the change on issues in both runs, such as ``4.3 → 3.8 on 12 shared issues``.

        The result is empty if the change is unknown.
        """
        if self.moved is None:
            return ""
        figures = self.moved.figures if self.moved.what == self.name else self.moved.text
        return f"{figures} on {plural(self.moved.shared, 'shared issue')}"


def build_triage_dimensions(report: RunReport) -> tuple[Dimension, ...]:
    """Build the four figures about an agent's reports. The result is empty for a run without issues."""
    if report.triage is None:
        return ()
    return (
        _build_accuracy_dimension(report.triage, report.comparison),
        _build_usefulness_dimension(report),
        _build_agent_questions_dimension(report.questions),
        _build_efficiency_dimension(report.triage.paths, report.comparison),
    )


def format_triage_changes_or_figures(report: RunReport) -> str:
    """Format how the four figures changed since the baseline.

    For example: ``Usefulness 4.3 → 3.8, triage accuracy unchanged``. If no figure can be compared with the
    baseline, the figures of this run are formatted instead.
    """
    available = [dimension for dimension in build_triage_dimensions(report) if dimension.known]
    changed = [dimension.moved.text for dimension in available if dimension.moved and dimension.moved.changed]
    unchanged = [dimension.moved.text for dimension in available if dimension.moved and not dimension.moved.changed]
    text = ", ".join([*changed, *unchanged] or [f"{dimension.name} {dimension.value}" for dimension in available])
    return f"{text[:1].upper()}{text[1:]}"


def format_triage_dimension_table(report: RunReport) -> Iterator[str]:
    """Format the four figures as a Markdown table. The result is empty for a run without issues."""
    rows = build_triage_dimensions(report)
    compared = any(row.moved for row in rows)
    if rows:
        yield f"| dimension | now |{' against the baseline |' if compared else ''}"
        yield f"| --- | --- |{' --- |' if compared else ''}"
    for row in rows:
        yield f"| {row.name} | **{row.value}**: {row.detail} |{f' {row.against} |' if compared else ''}"
    if criteria := format_criteria(report):
        yield ""
        yield f"Usefulness: {criteria}"


def list_criteria_shares(report: RunReport) -> Mapping[Criterion, tuple[str, str]]:
    """Return the label and the share of each criterion, such as ``helpful`` and ``18/20``."""
    counts = report.rubric.criteria if report.rubric else None
    return {name: (CRITERION_LABELS[name], share) for name, share in counts.shares.items()} if counts else {}


def format_criteria(report: RunReport) -> str:
    """Format the criteria: ``helpful 18/20, complete 15/20, accurate 19/20``.

    The result is empty if no judge graded the criteria.
    """
    return report.rubric.criteria.text if report.rubric and report.rubric.criteria else ""


def _build_accuracy_dimension(triage: TriageSummary, compared: Comparison | None) -> Dimension:
    accuracy = triage.accuracy
    if not accuracy.total:
        return Dimension(ACCURACY, "nothing graded", f"of {plural(triage.issues, 'issue')}", known=False)
    counted = f"{accuracy.passed:,} of {plural(accuracy.total, 'issue')} with a correct report"
    left = triage.issues - accuracy.total
    ungraded = f"; {left:,} could not be graded" if left > 0 else ""
    detail = f"{counted}, 95 % CI {100 * accuracy.low:.0f} to {100 * accuracy.high:.0f} %{ungraded}"
    change = compared.triage.accuracy if compared and compared.triage else None
    moved = _build_figure_change(ACCURACY, change, format_percent, more_is_better=True)
    return Dimension(ACCURACY, format_percent(accuracy.passed / accuracy.total), detail, moved)


def _build_usefulness_dimension(report: RunReport) -> Dimension:
    rubric = report.rubric
    if rubric is None:
        return Dimension(USEFULNESS, "not rated", "no judge rated a report", known=False)
    counted, bound = f"average of {plural(len(rubric.ratings), 'report')}", format_rating_bound(rubric)
    detail = f"{counted}; {bound}" if bound else counted
    rated = report.comparison.rubric if report.comparison else None
    change = DimensionChange(shared=rated.shared, before=rated.before, now=rated.now) if rated else None
    moved = _build_figure_change(USEFULNESS, change, _format_one_decimal, more_is_better=True)
    return Dimension(USEFULNESS, f"{rubric.mean:.1f} of 5", detail, moved)


def _build_agent_questions_dimension(counts: QuestionCounts | None) -> Dimension:
    if counts is None:
        return Dimension(QUESTIONS, "no question asked", "the agent asked no questions", known=False)
    classified = counts.useful + counts.needless
    if counts.share is None or counts.low is None or counts.high is None:
        unknown = f"{counts.asked:,} asked; Lookout does not know whether the issues answer them"
        return Dimension(QUESTIONS, "not known", unknown, known=False)
    unsure = f"; unknown for {counts.asked - classified:,}" if counts.asked > classified else ""
    detail = f"{counts.useful:,} of {plural(classified, 'question')}, 95 % CI {100 * counts.low:.0f} to "
    return Dimension(
        QUESTIONS, f"{format_percent(counts.share)} useful", f"{detail}{100 * counts.high:.0f} %{unsure}"
    )


def _build_efficiency_dimension(paths: Sequence[IssuePath], compared: Comparison | None) -> Dimension:
    if not paths:
        return Dimension(EFFICIENCY, "not measured", "Lookout did not see any step of the agent", known=False)
    measured = [(path.steps, path.shortest_path) for path in paths if path.shortest_path is not None]
    steps, shortest = sum(taken for taken, _ in measured), sum(needed for _, needed in measured)
    average = f"{sum(path.steps for path in paths) / len(paths):.1f} {STEPS}"
    on = "" if len(measured) == len(paths) else f" on {plural(len(measured), 'issue')}"
    against = (
        f"{_format_count(steps)} steps; {shortest:,} are enough{on}"
        if shortest
        else ("the shortest path is unknown")
    )
    value = f"{steps / shortest:.1f} × shortest path" if shortest else average
    change = compared.triage.steps if compared and compared.triage else None
    moved = _build_figure_change(STEPS, change, _format_one_decimal, more_is_better=False)
    return Dimension(EFFICIENCY, value, f"{against}; {_format_repeated_calls(paths)}", moved)


def _format_repeated_calls(paths: Sequence[IssuePath]) -> str:
    counted = [path.repeated for path in paths if path.repeated is not None]
    if not counted:
        return "the number of repeated calls is unknown"
    repeated = sum(counted)
    where = f" in {plural(sum(1 for count in counted if count), 'issue')}" if repeated else ""
    return f"{_format_count(repeated)} repeated {'call' if repeated == 1 else 'calls'}{where}"


def _format_count(value: float) -> str:
    """Format a count, with one decimal if it is an average over several repeats."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _format_one_decimal(value: float) -> str:
    return f"{value:.1f}"


def _build_figure_change(
    name: str, change: DimensionChange | None, format_value: Callable[[float], str], *, more_is_better: bool
) -> Movement | None:
    if change is None:
        return None
    hurts = change.now < change.before if more_is_better else change.now > change.before
    return Movement(name, format_value(change.before), format_value(change.now), change.shared, hurts=hurts)
