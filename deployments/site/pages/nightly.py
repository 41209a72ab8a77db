"""Nightly: live traffic night by night, and one night with what was sampled, its rates, drift and examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRequest, Paging, missing
from deployments.site.pages.now import TrendValue
from flows.nightly.format import format_nightly, rate_text
from monitors.records.base import Record, UtcTime
from monitors.records.estimates import GradedStratum, RateEstimate
from monitors.records.grades import FAILURE_WORDS
from monitors.records.nightly import NightlyReport, Rate
from monitors.reports.format import moment
from warehouse.queries.site.nightly import (
    FailureExample,
    NightlyRow,
    failure_examples,
    nightly_report,
    nightly_runs_page,
)
from warehouse.queries.site.standing import known_targets

EXAMPLES_EACH: Final = 3
TREND_RUNS: Final = 60
DRIFTS: Final = ("worse", "better", "none")


class ShownRate(Record):
    """A rate of a night: ``text`` is the rate with its interval, ``method`` how that was made and corrected."""

    name: str
    text: str
    method: str


class ShownNightlyRun(Record):
    """A night. ``facts`` is what else it says, in sentences; ``shortfalls`` what it should have had and had not."""

    run_id: str
    target: str
    since: UtcTime
    until: UtcTime
    read: int
    known: int
    sampled: int
    rates: tuple[ShownRate, ...]
    strata: tuple[GradedStratum, ...]
    shortfalls: tuple[str, ...]
    facts: tuple[str, ...]
    examples: tuple[FailureExample, ...]


class NightlyData(Record):
    """A page of nights, newest first, a trend of the target's last ones, and the night that is shown."""

    target: str | None
    shown: ShownNightlyRun | None
    trend: tuple[TrendValue, ...]
    runs: tuple[NightlyRow, ...]
    paging: Paging


def nightly_page(request: PageRequest) -> Page:
    """The night that is asked for, else the newest, and below it all of them."""
    store, paging = request.site.store, request.paging()
    target = request.choice("target", "Target", known_targets(store, request.site.targets))
    drift = request.choice("drift", "Drift", DRIFTS)
    rows, total = nightly_runs_page(store, target, drift, rows=paging.rows, offset=paging.offset)
    run_id = request.query.get("night") or (rows[0].run_id if rows else None)
    shown = _shown(request, run_id) if run_id else None
    newest = nightly_runs_page(store, shown.target, None, rows=TREND_RUNS, offset=0)[0] if shown else ()
    shown_rows = tuple(mask_fields(row, request.mask(row.target), "graded_by") for row in rows)
    data = NightlyData(target=target, shown=shown, trend=trend_of(newest), runs=shown_rows, paging=paging.of(total))
    return Page("nightly.html.j2", "Nightly", data, view=FAILURE_WORDS)


def trend_of(newest: Sequence[NightlyRow]) -> tuple[TrendValue, ...]:
    """The severity-3 rate, oldest first, of the nights graded as the newest was: others do not compare."""
    alike = [row for row in reversed(newest) if row.graded_by == newest[0].graded_by]
    return tuple(map(_point, alike))


def _point(row: NightlyRow) -> TrendValue:
    shown = "unknown" if row.severe_rate is None else f"{100 * row.severe_rate:.2f} %"
    return TrendValue(
        at=row.due_at,
        label=f"{moment(row.due_at)}: {shown}{', drifted' if row.drift in {'worse', 'better'} else ''}",
        value=row.severe_rate,
        low=row.severe_low,
        high=row.severe_high,
        mark=row.drift == "worse",
    )


def _shown(request: PageRequest, run_id: str) -> ShownNightlyRun:
    report = nightly_report(request.site.store, run_id)
    if report is None:
        raise missing(f"No nightly run {run_id[:80]} is in the warehouse. The page Nightly lists those there are.")
    mask = request.mask(report.target)
    rates = (
        _rate("with a failure of severity 3", report.severe, report.reviews),
        _rate("with any failure", report.failed, report.reviews),
    )
    examples = failure_examples(request.site.store, run_id, each=EXAMPLES_EACH)
    return ShownNightlyRun(
        run_id=run_id,
        target=report.target,
        since=report.since,
        until=report.until,
        read=report.read,
        known=report.known,
        sampled=report.sampled,
        rates=tuple(mask_fields(one, mask, "text", "method") for one in rates),
        strata=report.strata,
        shortfalls=tuple(map(mask, report.shortfalls)),
        facts=tuple(mask(line.strip()) for line in _other_lines(report)),
        examples=tuple(mask_fields(one, mask, "asked", "answered", "reason") for one in examples),
    )


def _other_lines(report: NightlyReport) -> Sequence[str]:
    """What a terminal is shown of a night, without the counts and rates that the page shows in its own way."""
    lines = list(format_nightly(report))[4 + len(report.strata) :]
    return [line for line in lines if "NOT WHOLE" not in line]


def _rate(name: str, rate: Rate, reviews: int) -> ShownRate:
    method = rate.method if isinstance(rate, RateEstimate) else ""
    return ShownRate(name=name, text=rate_text(rate, reviews), method=method)
