"""The report's figures: as rows of tables in words, and as small inline SVG graphics.

A graphic has no script and no style attribute, classes for colour, and a title for every reader. Only numbers go
in, so nothing needs escaping; the words around a graphic are the template's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from monitors.plural import plural
from monitors.records.base import Finding
from monitors.records.explanations import Cause, FirstLook
from monitors.records.runs import Breakdown, Latency, Metric, RunReport, format_metric
from monitors.records.snapshots import OURS, RunChange, WhatChanged
from monitors.reports.format import SEVERITY_WORDS, moment, percent, quantity, seconds, shortened

_BINS: Final = 32
_WIDTH, _HEIGHT, _FOOT = 640, 120, 22
_BOX, _BOX_HEIGHT, _HOP_ABOVE, _ARCS = 30, 22, 5, 22
_MOST_ARCS = 12
"""More of them are a tangle; the colour of the boxes says it."""
_RANGE_WIDTH, _RANGE_HEIGHT, _EDGE = 220, 18, 4


def latency_histogram(total_ms: Sequence[float], latency: Latency) -> Markup:
    """How long answers took: bars of equal width, and lines at p50, p95 and the objective.

    The axis ends a little past the larger of the slowest answer and the objective.
    """
    top = max([*total_ms, latency.objective_p50_ms, latency.p95_ms, 1.0]) * 1.04
    counts = _counts(total_ms, top)
    tallest = max([*counts, 1])
    parts = [_bar(place, count, tallest) for place, count in enumerate(counts) if count]
    parts += [_axis(top)]
    parts += [
        _line(latency.objective_p50_ms, top, "objective"),
        _line(latency.p50_ms, top, "p50"),
        _line(latency.p95_ms, top, "p95"),
    ]
    title = (
        f"{len(total_ms)} answers: p50 {seconds(latency.p50_ms)}, p95 {seconds(latency.p95_ms)}, "
        f"objective for p50 {seconds(latency.objective_p50_ms)}"
    )
    return _svg(_WIDTH, _HEIGHT + _FOOT, "histogram", title, parts)


def _counts(values: Sequence[float], top: float) -> list[int]:
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int(value / top * _BINS))] += 1
    return counts


def _bar(place: int, count: int, tallest: int) -> str:
    step = _WIDTH / _BINS
    height = max(2.0, count / tallest * (_HEIGHT - 12))
    return (
        f'<rect class="bar" x="{place * step + 1:.1f}" y="{_HEIGHT - height:.1f}" '
        f'width="{step - 2:.1f}" height="{height:.1f}"/>'
    )


def _line(value: float, top: float, kind: str) -> str:
    x = value / top * _WIDTH
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}"/>'


def _axis(top_ms: float) -> str:
    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 60, 120, 600, 10**9) if top_ms / 1000 / step <= 8)  # noqa: PLR2004 - at most eight labels fit
    labels = [f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>']
    count = int(top_ms / 1000 / step)
    for place in range(count + 1):
        x = place * step * 1000 / top_ms * _WIDTH
        anchor = "start" if place == 0 else "end" if x > _WIDTH - 24 else "middle"
        labels.append(f'<text x="{x:.1f}" y="{_HEIGHT + 16}" text-anchor="{anchor}">{place * step:g} s</text>')
    return "".join(labels)


def metric_range(metric: Metric, floor: float = 0.0) -> Markup:
    """A metric on a line from ``floor`` to 1: its interval as a band, its value as a dot, its target as a tick."""
    value = metric.passed / metric.total if metric.total else None
    parts = [f'<line class="axis" x1="{_at(floor, floor)}" x2="{_at(1, floor)}" y1="9" y2="9"/>']
    if value is not None:
        low, high = _at(metric.low, floor), _at(metric.high, floor)
        parts.append(f'<rect class="band" x="{low}" y="6" width="{max(1.0, high - low):.1f}" height="6"/>')
    if metric.target is not None:
        x = _at(metric.target, floor)
        parts.append(f'<line class="target" x1="{x}" x2="{x}" y1="1" y2="17"/>')
    if value is not None:
        parts.append(f'<circle class="dot" cx="{_at(value, floor)}" cy="9" r="4"/>')
    title = (
        "nothing counted"
        if value is None
        else f"{percent(value)}, from {percent(metric.low)} to {percent(metric.high)}"
    )
    return _svg(_RANGE_WIDTH, _RANGE_HEIGHT, "range", title, parts)


def range_floor(metrics: Sequence[Metric]) -> float:
    """Where the metrics' common axis starts: the tenth below the lowest interval or target."""
    lows = [
        min(metric.low, metric.target if metric.target is not None else 1.0) for metric in metrics if metric.total
    ]
    return max(0.0, int(min(lows, default=0.0) * 10) / 10)


class StepLines(NamedTuple):
    """After which step a line is drawn: where the shortest path would have ended, and the last one allowed."""

    shortest: int | None
    limit: int | None


class StepBox(NamedTuple):
    """A step as it is drawn: a hop is taller. ``repeats`` is the place (from 0) of the step that it repeats."""

    hop: bool = False
    repeats: int | None = None


def path_strip(boxes: Sequence[StepBox], lines: StepLines) -> Markup:
    """An agent's steps as a row of boxes, with an arc from each repeat to the step that it repeats."""
    longest = max(len(boxes), lines.shortest or 0, lines.limit or 0)
    width = min(_BOX, (_WIDTH - 2 * _EDGE) / longest)
    again = [(box.repeats, at) for at, box in enumerate(boxes) if box.repeats is not None]
    parts = [_arc(first, at, width) for first, at in again] if len(again) <= _MOST_ARCS else []
    parts += [_box(at, width, box) for at, box in enumerate(boxes)]
    for kind, after in (("limit", lines.limit), ("shortest", lines.shortest)):
        if after is not None:
            x = _EDGE + after * width
            ends = f'y1="{_ARCS - 6}" y2="{_ARCS + _BOX_HEIGHT + 6}"'
            parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
    title = f"{plural(len(boxes), 'step')}, {len(again):,} repeated"
    return _svg(round(2 * _EDGE + longest * width), _ARCS + _BOX_HEIGHT + 8, "path", title, parts)


def _box(at: int, width: float, box: StepBox) -> str:
    gap = 1.0 if width < _BOX / 2 else 2.0
    top = _ARCS if box.hop else _ARCS + _HOP_ABOVE
    kind = "again" if box.repeats is not None else "hop" if box.hop else "step"
    return (
        f'<rect class="{kind}" x="{_EDGE + at * width + gap / 2:.1f}" y="{top}" '
        f'width="{width - gap:.1f}" height="{_ARCS + _BOX_HEIGHT - top}"/>'
    )


def _arc(first: int, at: int, width: float) -> str:
    left, right = (_EDGE + (place + 0.5) * width for place in (first, at))
    top = _ARCS - 2 * min(_ARCS - 3, 6 + (right - left) / 8)  # a quadratic curve reaches half of its control point
    foot = _ARCS + _HOP_ABOVE
    curve = f"M{right:.1f} {foot} Q{(left + right) / 2:.1f} {top:.1f} {left:.1f} {foot}"
    return f'<path class="back" d="{curve}"/>'


def _at(share: float, floor: float) -> float:
    inside = max(0.0, min(1.0, (share - floor) / (1 - floor) if floor < 1 else 1.0))
    return round(_EDGE + inside * (_RANGE_WIDTH - 2 * _EDGE), 1)


def _svg(width: int, height: int, kind: str, title: str, parts: Sequence[str]) -> Markup:
    stretched = ' preserveAspectRatio="none"' if kind == "range" else ""
    head = f'<svg class="{kind}" width="{width}" viewBox="0 0 {width} {height}" role="img"{stretched}>'
    # Only numbers and the fixed words above are in here.
    return Markup(f"{head}<title>{title}</title>{''.join(parts)}</svg>")  # noqa: S704 - see the line above


@dataclass(frozen=True, slots=True)
class TallyRow:
    """One severity's row of the gate's arithmetic, in words."""

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
    """One metric with its interval and target, in words and as a graphic."""

    name: str
    value: str
    counted: str
    interval: str
    target: str
    met: Finding
    drawing: Markup


@dataclass(frozen=True, slots=True)
class BreakdownGroup:
    """One way of slicing the cases."""

    group: str
    rows: tuple[Breakdown, ...]


def tally_rows(report: RunReport) -> tuple[TallyRow, ...]:
    """Severest first."""
    rows = sorted(report.scores.tallies, key=lambda tally: -tally.severity)
    return tuple(
        TallyRow(
            severity=tally.severity,
            text=SEVERITY_WORDS[tally.severity],
            cases=f"{tally.cases:,}",
            weight=quantity(tally.weight),
            failed=f"{tally.failed:,}",
            no_answer=f"{tally.no_answer:,}",
            earned=quantity(tally.earned),
            total=quantity(tally.total),
            hurts=tally.not_correct > 0,
        )
        for tally in rows
    )


def format_raised(report: RunReport) -> str:
    """The failures that count as severer than their cases; empty where there is none."""
    raised = [tally for tally in sorted(report.scores.tallies, key=lambda tally: -tally.severity) if tally.raised]
    return " ".join(
        f"Severity {tally.severity} counts {plural(tally.raised, 'failure')} of "
        f"{'a less severe case' if tally.raised == 1 else 'less severe cases'}: what went wrong raises it."
        for tally in raised
    )


def metric_rows(metrics: Sequence[Metric]) -> tuple[MetricRow, ...]:
    """In the report's order, all on one axis."""
    floor = range_floor(metrics)
    return tuple(
        MetricRow(
            name=format_metric(metric.name),
            value=percent(metric.passed / metric.total) if metric.total else "nothing counted",
            counted=f"{metric.passed:,} of {metric.total:,}",
            interval=f"{percent(metric.low)} to {percent(metric.high)}" if metric.total else "",
            target=f"≥ {percent(metric.target)}" if metric.target is not None else "",
            met=metric.met,
            drawing=metric_range(metric, floor),
        )
        for metric in metrics
    )


def breakdown_groups(breakdowns: Sequence[Breakdown]) -> tuple[BreakdownGroup, ...]:
    """The rows by group, groups and rows in the report's order."""
    groups: dict[str, list[Breakdown]] = {}
    for row in breakdowns:
        groups.setdefault(row.group, []).append(row)
    return tuple(BreakdownGroup(group.replace("_", " "), tuple(rows)) for group, rows in groups.items())


NOTHING_IN_COMMON: Final = "Nothing beyond chance."
FEWEST_TO_COMPARE: Final = 3
"""Of fewer failed cases nothing is said: nothing could have been found."""
_VALUE_CHARACTERS: Final = 80


def format_causes(found: FirstLook | None) -> tuple[str, ...]:
    """What failed cases have in common, a line a cause; one line for nothing; none where too few failed to say."""
    if found is None or found.failed < FEWEST_TO_COMPARE:
        return ()
    return tuple(map(_cause, found.causes)) or (NOTHING_IN_COMMON,)


def _cause(cause: Cause) -> str:
    shared = " and ".join(
        f"{name} is {'missing' if value is None else shortened(str(value), _VALUE_CHARACTERS)}"
        for name, value in cause.conditions.items()
    )
    failures = plural(cause.failed + cause.elsewhere_failed, "failure")
    how_many = f"{cause.failed:,} of all {failures}" if cause.elsewhere_failed else f"all {failures}"
    inside = f"{cause.failed:,} of {plural(cause.cases, 'such case')} failed"
    outside = f"{cause.elsewhere_failed:,} of {plural(cause.elsewhere, 'other')}"
    return f"{shared} in {how_many}: {inside}, {outside}"


NOTHING_CHANGED: Final = "nothing that is recorded, so the cause is unknown"
BOTH_SIDES: Final = "Both sides changed, Lookout's and the application's: neither is shown to be the cause."
OUR_SIDE: Final = "Only Lookout's side changed: nothing that is recorded says that the application did."
_EVIDENCE_CHARACTERS: Final = 300


def format_changes(found: WhatChanged | None) -> tuple[str, ...]:
    """What changed since the last PASS, a line each, most telling first; none where it was not asked."""
    if found is None:
        return ()
    if found.missing:
        return (f"Not known: {found.missing}.",)
    if not found.changes:
        return (f"{NOTHING_CHANGED[0].upper()}{NOTHING_CHANGED[1:]}.",)
    sides = [BOTH_SIDES] if found.both_sides else [OUR_SIDE] if found.claimed and found.claimed <= OURS else []
    return (*sides, *(f"{_side(change)}: {_evidence(change)}" for change in found.changes))


def format_changes_briefly(found: WhatChanged | None, *, most: int) -> tuple[str, ...]:
    """The same in at most ``most`` lines (1 or more) that stand by themselves in a message."""
    if found is None:
        return ()
    if found.missing or not found.changes:
        return (f"Changed: {f'not known, {found.missing}' if found.missing else NOTHING_CHANGED}",)
    first = _first_of_both_sides(found)
    lines = [f"Changed, {_side(one).lower()}: {_evidence(one)}" for one in found.changes if one not in first]
    if first:
        both = "; ".join(f"{_side(one).lower()}, {_evidence(one)}" for one in first)
        lines.insert(0, f"Changed on both sides, so neither is shown to be the cause: {both}")
    if len(lines) <= most:
        return tuple(lines)
    rest = len(lines) - most
    return (*lines[: most - 1], f"{lines[most - 1]} (and {rest:,} more in the report)")


def _first_of_both_sides(found: WhatChanged) -> tuple[RunChange, ...]:
    """The most telling change of either side, where both changed."""
    if not found.both_sides:
        return ()
    named = [one for one in found.changes if not one.follows]
    ours, other = (next(one for one in named if (one.kind in OURS) is side) for side in (True, False))
    return ours, other


def format_last_pass(found: WhatChanged) -> str:
    """Which run that was, and what of either run is not known; empty where there was none."""
    if found.since_run_id is None or found.since is None:
        return ""
    of = f"deploy {found.since_commit}" if found.since_commit else f"run {found.since_run_id}"
    unknown = (
        f" Not recorded in both runs, so not compared: {', '.join(found.not_known)}." if found.not_known else ""
    )
    return f"The last PASS is {of}, {moment(found.since)}.{unknown}"


def _side(change: RunChange) -> str:
    if change.follows:
        return "Since then"
    return f"{change.kind.value.capitalize()}{' (our side)' if change.kind in OURS else ''}"


def _evidence(change: RunChange) -> str:
    return shortened(change.evidence, _EVIDENCE_CHARACTERS)
