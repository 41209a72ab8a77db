"""The report's figures as rows of tables, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from monitors.records.base import Finding
from monitors.records.runs import Breakdown, Metric, RunReport
from monitors.reports.plots import metric_range, range_floor
from monitors.reports.wording import SEVERITY_WORDS, metric_name, percent, quantity


@dataclass(frozen=True, slots=True)
class TallyRow:
    """One severity's row of the gate's arithmetic, in words."""

    severity: int
    words: str
    cases: str
    weight: str
    lost: str
    earned: str
    total: str
    hurts: bool


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric with its interval and target, in words and as a drawing."""

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
            words=SEVERITY_WORDS[tally.severity],
            cases=f"{tally.cases:,}",
            weight=quantity(tally.weight),
            lost=f"{tally.lost:,}",
            earned=quantity(tally.weight * (tally.cases - tally.lost)),
            total=quantity(tally.weight * tally.cases),
            hurts=tally.lost > 0,
        )
        for tally in rows
    )


def metric_rows(metrics: Sequence[Metric]) -> tuple[MetricRow, ...]:
    """In the report's order, all drawn on one axis."""
    floor = range_floor(metrics)
    return tuple(
        MetricRow(
            name=metric_name(metric.name),
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
