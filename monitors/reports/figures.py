"""Builds the tables and small SVG graphics of a report.

A graphic contains no script and no style, only numbers and fixed words, so nothing needs escaping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from monitors.plural import plural
from monitors.records.base import Finding
from monitors.records.explanations import Cause, FirstLook
from monitors.records.runs import Breakdown, Latency, Metric, RunReport, format_metric_name
from monitors.records.snapshots import OURS, RunChange, WhatChanged
from monitors.reports.format import (
    SEVERITY_WORDS,
    format_moment,
    format_percent,
    format_quantity,
    format_seconds,
    shorten,
)

_BINS: Final = 32
_WIDTH, _HEIGHT, _FOOT = 640, 120, 22
_BOX, _BOX_HEIGHT, _HOP_ABOVE, _ARCS = 30, 22, 5, 22
_MAX_ARCS = 12
"""Maximum number of repeated steps for which arcs are shown. With more arcs, the graphic would be unreadable."""
_RANGE_WIDTH, _RANGE_HEIGHT, _EDGE = 220, 18, 4


def render_latency_histogram(total_ms: Sequence[float], latency: Latency) -> Markup:
    """Draw a histogram of answer times, with lines at p50, p95 and the objective.

    The axis ends 4 % above the largest value.
    """
    top = max([*total_ms, latency.objective_p50_ms, latency.p95_ms, 1.0]) * 1.04
    counts = [0] * _BINS
    for milliseconds in total_ms:
        counts[min(_BINS - 1, int(milliseconds / top * _BINS))] += 1
    max_count = max([*counts, 1])
    parts = [_render_bar(place, count, max_count) for place, count in enumerate(counts) if count]
    parts += [_render_axis(top)]
    parts += [
        _render_line(latency.objective_p50_ms, top, "objective"),
        _render_line(latency.p50_ms, top, "p50"),
        _render_line(latency.p95_ms, top, "p95"),
    ]
    title = (
        f"{plural(len(total_ms), 'answer')}: p50 {format_seconds(latency.p50_ms)}, "
        f"p95 {format_seconds(latency.p95_ms)}, objective for p50 {format_seconds(latency.objective_p50_ms)}"
    )
    return _build_svg(_WIDTH, _HEIGHT + _FOOT, "histogram", title, parts)


def _render_bar(place: int, count: int, max_count: int) -> str:
    step = _WIDTH / _BINS
    height = max(2.0, count / max_count * (_HEIGHT - 12))
    return (
        f'<rect class="bar" x="{place * step + 1:.1f}" y="{_HEIGHT - height:.1f}" '
        f'width="{step - 2:.1f}" height="{height:.1f}"/>'
    )


def _render_line(value: float, top: float, kind: str) -> str:
    x = value / top * _WIDTH
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}"/>'


def _render_axis(top_ms: float) -> str:
    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 60, 120, 600, 10**9) if top_ms / 1000 / step <= 8)  # noqa: PLR2004 - at most eight labels fit
    labels = [f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>']
    count = int(top_ms / 1000 / step)
    for place in range(count + 1):
        x = place * step * 1000 / top_ms * _WIDTH
        anchor = "start" if place == 0 else "end" if x > _WIDTH - 24 else "middle"
        labels.append(f'<text x="{x:.1f}" y="{_HEIGHT + 16}" text-anchor="{anchor}">{place * step:g} s</text>')
    return "".join(labels)


def render_metric_range(metric: Metric, floor: float = 0.0) -> Markup:
    """Draw a metric on a line from ``floor`` to 1.

    The interval is a band, the value is a dot, and the target is a line.
    """
    value = metric.passed / metric.total if metric.total else None
    parts = [f'<line class="axis" x1="{_compute_x(floor, floor)}" x2="{_compute_x(1, floor)}" y1="9" y2="9"/>']
    if value is not None:
        low, high = _compute_x(metric.low, floor), _compute_x(metric.high, floor)
        parts.append(f'<rect class="band" x="{low}" y="6" width="{max(1.0, high - low):.1f}" height="6"/>')
    if metric.target is not None:
        x = _compute_x(metric.target, floor)
        parts.append(f'<line class="target" x1="{x}" x2="{x}" y1="1" y2="17"/>')
    if value is not None:
        parts.append(f'<circle class="dot" cx="{_compute_x(value, floor)}" cy="9" r="4"/>')
    title = (
        "nothing counted"
        if value is None
        else f"{format_percent(value)}, from {format_percent(metric.low)} to {format_percent(metric.high)}"
    )
    return _build_svg(_RANGE_WIDTH, _RANGE_HEIGHT, "range", title, parts)


def compute_axis_start(metrics: Sequence[Metric]) -> float:
    """Return the start of the axis that all metrics share.

    The start is the lowest interval limit or the lowest target, rounded down to a tenth.
    """
    lows = [
        min(metric.low, metric.target if metric.target is not None else 1.0) for metric in metrics if metric.total
    ]
    return max(0.0, int(min(lows, default=0.0) * 10) / 10)


class StepLines(NamedTuple):
    """The step counts at which the chart shows a vertical line: the shortest path, and the limit.

    A line whose value is ``None`` is omitted.
    """

    shortest: int | None
    limit: int | None


class StepBox(NamedTuple):
    """A step in the graphic. ``hop`` is true if the agent gave the work to another agent.

    ``repeats`` is the index of the earlier step that this step repeats, counted from 0.
    """

    hop: bool = False
    repeats: int | None = None


def render_agent_step_strip(boxes: Sequence[StepBox], lines: StepLines) -> Markup:
    """Draw an agent's steps as a row of boxes. An arc leads from each repeated step to its first occurrence."""
    steps = max(len(boxes), lines.shortest or 0, lines.limit or 0)
    width = min(_BOX, (_WIDTH - 2 * _EDGE) / steps)
    repeats = [(box.repeats, at) for at, box in enumerate(boxes) if box.repeats is not None]
    parts = [_render_arc(first, at, width) for first, at in repeats] if len(repeats) <= _MAX_ARCS else []
    parts += [_render_box(at, width, box) for at, box in enumerate(boxes)]
    for kind, after in (("limit", lines.limit), ("shortest", lines.shortest)):
        if after is not None:
            x = _EDGE + after * width
            ends = f'y1="{_ARCS - 6}" y2="{_ARCS + _BOX_HEIGHT + 6}"'
            parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
    title = f"{plural(len(boxes), 'step')}, {len(repeats):,} repeated"
    return _build_svg(round(2 * _EDGE + steps * width), _ARCS + _BOX_HEIGHT + 8, "path", title, parts)


def _render_box(at: int, width: float, box: StepBox) -> str:
    gap = 1.0 if width < _BOX / 2 else 2.0
    top = _ARCS if box.hop else _ARCS + _HOP_ABOVE
    kind = "again" if box.repeats is not None else "hop" if box.hop else "step"
    return (
        f'<rect class="{kind}" x="{_EDGE + at * width + gap / 2:.1f}" y="{top}" '
        f'width="{width - gap:.1f}" height="{_ARCS + _BOX_HEIGHT - top}"/>'
    )


def _render_arc(first: int, at: int, width: float) -> str:
    left, right = (_EDGE + (place + 0.5) * width for place in (first, at))
    top = _ARCS - 2 * min(_ARCS - 3, 6 + (right - left) / 8)  # a quadratic curve reaches half of its control point
    foot = _ARCS + _HOP_ABOVE
    curve = f"M{right:.1f} {foot} Q{(left + right) / 2:.1f} {top:.1f} {left:.1f} {foot}"
    return f'<path class="back" d="{curve}"/>'


def _compute_x(share: float, floor: float) -> float:
    inside = max(0.0, min(1.0, (share - floor) / (1 - floor) if floor < 1 else 1.0))
    return round(_EDGE + inside * (_RANGE_WIDTH - 2 * _EDGE), 1)


def _build_svg(width: int, height: int, kind: str, title: str, parts: Sequence[str]) -> Markup:
    stretched = ' preserveAspectRatio="none"' if kind == "range" else ""
    head = f'<svg class="{kind}" width="{width}" viewBox="0 0 {width} {height}" role="img"{stretched}>'
    # The text contains only numbers and the fixed words above.
    return Markup(f"{head}<title>{title}</title>{''.join(parts)}</svg>")  # noqa: S704 - see the line above


@dataclass(frozen=True, slots=True)
class TallyRow:
    """The row of one severity in the score calculation, as text."""

    severity: int
    text: str
    cases: str
    weight: str
    failed: str
    no_answer: str
    earned: str
    total: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric with its interval and its target, as text and as a graphic."""

    name: str
    value: str
    counted: str
    interval: str
    target: str
    met: Finding
    drawing: Markup


@dataclass(frozen=True, slots=True)
class BreakdownGroup:
    """The rows for one grouping of the cases, for example by language."""

    group: str
    rows: tuple[Breakdown, ...]


def build_score_calculation_rows(report: RunReport) -> tuple[TallyRow, ...]:
    """Build the rows of the score calculation, the highest severity first."""
    rows = sorted(report.scores.tallies, key=lambda tally: -tally.severity)
    return tuple(
        TallyRow(
            severity=tally.severity,
            text=SEVERITY_WORDS[tally.severity],
            cases=f"{tally.cases:,}",
            weight=format_quantity(tally.weight),
            failed=f"{tally.failed:,}",
            no_answer=f"{tally.no_answer:,}",
            earned=format_quantity(tally.earned),
            total=format_quantity(tally.total),
            hurts=tally.not_correct > 0,
        )
        for tally in rows
    )


def format_severity_rises(report: RunReport) -> str:
    """Return a text that states how many failures are more severe than their cases.

    The result is empty if there are no such failures.
    """
    raised = [tally for tally in sorted(report.scores.tallies, key=lambda tally: -tally.severity) if tally.raised]
    return " ".join(
        f"{plural(tally.raised, 'failure')} of "
        f"{'a less severe case counts' if tally.raised == 1 else 'less severe cases count'} as severity "
        f"{tally.severity}, because the failure kind is that severe."
        for tally in raised
    )


def build_metric_rows(metrics: Sequence[Metric]) -> tuple[MetricRow, ...]:
    """Build the rows of the metrics in the order of the report. All rows have the same axis."""
    floor = compute_axis_start(metrics)
    return tuple(
        MetricRow(
            name=format_metric_name(metric.name),
            value=format_percent(metric.passed / metric.total) if metric.total else "nothing counted",
            counted=f"{metric.passed:,} of {metric.total:,}",
            interval=f"{format_percent(metric.low)} to {format_percent(metric.high)}" if metric.total else "",
            target=f"≥ {format_percent(metric.target)}" if metric.target is not None else "",
            met=metric.met,
            drawing=render_metric_range(metric, floor),
        )
        for metric in metrics
    )


def group_breakdowns(breakdowns: Sequence[Breakdown]) -> tuple[BreakdownGroup, ...]:
    """Group the breakdowns. Groups and rows are in the order of the report."""
    groups: dict[str, list[Breakdown]] = {}
    for row in breakdowns:
        groups.setdefault(row.group, []).append(row)
    return tuple(BreakdownGroup(group.replace("_", " "), tuple(rows)) for group, rows in groups.items())


NOTHING_IN_COMMON: Final = "Lookout found no common cause of the failed cases."
MIN_FAILED_TO_COMPARE: Final = 3
"""Minimum number of failed cases that is required to find a common cause."""
_MAX_VALUE_CHARACTERS: Final = 80


def format_common_causes(first_look: FirstLook | None) -> tuple[str, ...]:
    """Return one line for each common cause of the failures. If no cause was found, return one line that says so.

    The result is empty if too few cases failed.
    """
    if first_look is None or first_look.failed < MIN_FAILED_TO_COMPARE:
        return ()
    return tuple(map(_format_cause, first_look.causes)) or (NOTHING_IN_COMMON,)


def _format_cause(cause: Cause) -> str:
    shared = " and ".join(
        f"{name} is {'missing' if value is None else shorten(str(value), _MAX_VALUE_CHARACTERS)}"
        for name, value in cause.conditions.items()
    )
    failures = plural(cause.failed + cause.elsewhere_failed, "failure")
    how_many = f"{cause.failed:,} of all {failures}" if cause.elsewhere_failed else f"all {failures}"
    inside = f"{cause.failed:,} of {plural(cause.cases, 'such case')} failed"
    outside = f"{cause.elsewhere_failed:,} of {plural(cause.elsewhere, 'other case')}"
    return f"{shared} in {how_many}: {inside}, {outside}"


NOTHING_CHANGED: Final = "no recorded change, so the cause is unknown"
BOTH_SIDES: Final = "Both Lookout and the application changed, so the cause is unknown."
OUR_SIDE: Final = "Only Lookout changed. No change of the application is recorded."
_MAX_EVIDENCE_CHARACTERS: Final = 300


def format_changes_since_last_pass(what_changed: WhatChanged | None) -> tuple[str, ...]:
    """Return one line for each change since the last PASS. If nothing was compared, the result is empty."""
    if what_changed is None:
        return ()
    if what_changed.missing:
        return (f"Not known: {what_changed.missing}.",)
    if not what_changed.changes:
        return (f"{NOTHING_CHANGED[0].upper()}{NOTHING_CHANGED[1:]}.",)
    sides = (
        [BOTH_SIDES]
        if what_changed.has_changes_on_both_sides
        else [OUR_SIDE]
        if what_changed.primary_change_kinds and what_changed.primary_change_kinds <= OURS
        else []
    )
    return (
        *sides,
        *(f"{_format_kind_and_side(change)}: {_shorten_evidence(change)}" for change in what_changed.changes),
    )


def format_changes_since_pass_briefly(what_changed: WhatChanged | None, *, limit: int) -> tuple[str, ...]:
    """Return the changes since the last PASS in at most ``limit`` lines.

    Each line can be understood without a heading.
    """
    if what_changed is None:
        return ()
    if what_changed.missing or not what_changed.changes:
        return (f"Changed: {f'unknown ({what_changed.missing})' if what_changed.missing else NOTHING_CHANGED}",)
    first = _select_first_change_per_side(what_changed)
    lines = [
        f"Changed, {_format_kind_and_side(change).lower()}: {_shorten_evidence(change)}"
        for change in what_changed.changes
        if change not in first
    ]
    if first:
        both = "; ".join(
            f"{_format_kind_and_side(change).lower()}, {_shorten_evidence(change)}" for change in first
        )
        lines.insert(0, f"Changed in both Lookout and the application, so the cause is unknown: {both}")
    if len(lines) <= limit:
        return tuple(lines)
    more = len(lines) - limit
    return (*lines[: limit - 1], f"{lines[limit - 1]} (and {more:,} more in the report)")


def _select_first_change_per_side(what_changed: WhatChanged) -> tuple[RunChange, ...]:
    """Return the first change of Lookout and the first change of the application.

    The result is empty unless both of them changed.
    """
    if not what_changed.has_changes_on_both_sides:
        return ()
    named = [change for change in what_changed.changes if not change.follows]
    ours, theirs = (next(change for change in named if (change.kind in OURS) is side) for side in (True, False))
    return ours, theirs


def format_last_pass_run(what_changed: WhatChanged) -> str:
    """Format the build and time of the last PASS, and list what could not be compared with it.

    The result is empty if there was no PASS.
    """
    if what_changed.since_run_id is None or what_changed.since is None:
        return ""
    build = (
        f"deploy {what_changed.since_commit}" if what_changed.since_commit else f"run {what_changed.since_run_id}"
    )
    unknown = (
        f" Not compared, because a run did not record this: {', '.join(what_changed.not_known)}."
        if what_changed.not_known
        else ""
    )
    return f"The last PASS is {build}, {format_moment(what_changed.since)}.{unknown}"


def _format_kind_and_side(change: RunChange) -> str:
    if change.follows:
        return "Since then"
    return f"{change.kind.value.capitalize()}{' (our side)' if change.kind in OURS else ''}"


def _shorten_evidence(change: RunChange) -> str:
    return shorten(change.evidence, _MAX_EVIDENCE_CHARACTERS)
