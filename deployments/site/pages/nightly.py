"""The page of nightly runs on live traffic. It also shows one run with its rates and examples of failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.site.masking import mask_fields
from deployments.site.page import Page, PageRequest, Paging, build_not_found_error
from deployments.site.pages.now import TrendValue
from flows.data_folder import RUNS_FOLDER
from flows.nightly.format import format_rate_text, list_nightly_finding_lines
from monitors.records.base import Record, UtcTime
from monitors.records.estimates import GradedStratum, RateEstimate
from monitors.records.grades import FAILURE_WORDS
from monitors.records.nightly import Rate
from monitors.reports.format import format_moment
from monitors.reports.write import build_report_paths
from warehouse.queries.site.nightly import (
    FailureExample,
    NightlyRow,
    list_failure_examples,
    load_nightly_report,
    load_nightly_runs_page,
)
from warehouse.queries.site.overview import list_known_targets

EXAMPLES_EACH: Final = 3
TREND_RUNS: Final = 60
DRIFTS: Final = ("worse", "better", "none")


class ShownRate(Record):
    """A rate in a nightly report.

    ``text`` contains the interval, and ``method`` states how the interval was computed.
    """

    name: str
    text: str
    method: str


class ShownNightlyRun(Record):
    """A nightly run.

    ``facts`` contains sentences with further results. ``shortfalls`` contains sentences about what was missing.
    """

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
    has_report: bool
    """True if the report file of the nightly run is on this machine."""


class NightlyData(Record):
    """One page of nightly runs, newest first, the trend of the last runs, and the run that is shown in detail."""

    target: str | None
    shown: ShownNightlyRun | None
    trend: tuple[TrendValue, ...]
    runs: tuple[NightlyRow, ...]
    paging: Paging


def build_nightly_page(request: PageRequest) -> Page:
    """Build the page of the requested or newest nightly run, with the list of all nightly runs."""
    store, paging = request.site.store, request.read_paging()
    target = request.read_and_show_choice_filter(
        "target", "Target", list_known_targets(store, request.site.targets)
    )
    drift = request.read_and_show_choice_filter("drift", "Drift", DRIFTS)
    rows, total = load_nightly_runs_page(store, target, drift, rows=paging.rows, offset=paging.offset)
    run_id = request.query.get("night") or (rows[0].run_id if rows else None)
    shown = _build_shown_night(request, run_id) if run_id else None
    newest = load_nightly_runs_page(store, shown.target, None, rows=TREND_RUNS, offset=0)[0] if shown else ()
    shown_rows = tuple(mask_fields(row, request.build_redactor(row.target), "graded_by") for row in rows)
    data = NightlyData(
        target=target,
        shown=shown,
        trend=build_severe_rate_trend(newest),
        runs=shown_rows,
        paging=paging.with_total(total),
    )
    return Page("nightly.html.j2", "Nightly", data, view=FAILURE_WORDS)


def build_severe_rate_trend(newest: Sequence[NightlyRow]) -> tuple[TrendValue, ...]:
    """Build the trend of the rates of severity-3 failures, oldest first.

    Only nightly runs that used the same graders as the newest nightly run are included.
    """
    alike = [row for row in reversed(newest) if row.graded_by == newest[0].graded_by]
    return tuple(map(_build_severe_rate_point, alike))


def _build_severe_rate_point(row: NightlyRow) -> TrendValue:
    shown = "unknown" if row.severe_rate is None else f"{100 * row.severe_rate:.2f} %"
    return TrendValue(
        at=row.due_at,
        label=f"{format_moment(row.due_at)}: {shown}{', drifted' if row.drift in {'worse', 'better'} else ''}",
        value=row.severe_rate,
        low=row.severe_low,
        high=row.severe_high,
        mark=row.drift == "worse",
    )


def _build_shown_night(request: PageRequest, run_id: str) -> ShownNightlyRun:
    report = load_nightly_report(request.site.store, run_id)
    if report is None:
        raise build_not_found_error(
            f"Nightly run {run_id[:80]} is not in the warehouse. The page Nightly lists all nightly runs."
        )
    mask = request.build_redactor(report.target)
    rates = (
        _build_shown_rate("conversations with a severity-3 failure", report.severe, report.reviews),
        _build_shown_rate("conversations with any failure", report.failed, report.reviews),
    )
    examples = list_failure_examples(request.site.store, run_id, each=EXAMPLES_EACH)
    folder = request.site.config.data_folder / RUNS_FOLDER / run_id
    return ShownNightlyRun(
        has_report=build_report_paths(folder).html.is_file(),
        run_id=run_id,
        target=report.target,
        since=report.since,
        until=report.until,
        read=report.read,
        known=report.known,
        sampled=report.sampled,
        rates=tuple(mask_fields(row, mask, "text", "method") for row in rates),
        strata=report.strata,
        shortfalls=tuple(map(mask, report.shortfalls)),
        facts=tuple(map(mask, list_nightly_finding_lines(report))),
        examples=tuple(mask_fields(row, mask, "asked", "answered", "reason") for row in examples),
    )


def _build_shown_rate(name: str, rate: Rate, reviews: int) -> ShownRate:
    method = rate.method if isinstance(rate, RateEstimate) else ""
    return ShownRate(name=name, text=format_rate_text(rate, reviews), method=method)
