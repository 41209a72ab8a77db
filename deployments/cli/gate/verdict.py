"""Prints a run's verdict: the answer first, then its arithmetic, then where to read on.

It also prints what the verdict rests on: the baseline, the smallest drop this suite can detect, what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from monitors.plural import plural
from monitors.records.base import Finding
from monitors.records.comparisons import RubricAverage
from monitors.records.runs import Metric, Ratio, RunReport, Verdict, VerdictReason, format_metric
from monitors.reports.figures import format_causes, format_changes, format_raised, tally_rows
from monitors.reports.format import format_experiment, format_questions
from monitors.reports.proof_rows import (
    change_rows,
    format_baseline,
    format_change,
    format_outcome,
    format_parity,
    format_path,
    score_rows,
    sight_rows,
)
from monitors.reports.rechecks import format_recheck

_MOST_IDS = 6


def print_proof(console: Console, report: RunReport) -> None:
    """Print the comparison in a few lines, then a table of what could have been seen, by severity."""
    console.print(_beside(list(_comparison(report))))
    if report.sights:
        console.print(_sights(report))
    for one in report.flaky[:_MOST_IDS]:
        console.print(f"Flaky     {escape(one.case_id)} [dim]{one.text}[/]", highlight=False)
    if len(report.flaky) > _MOST_IDS:
        console.print(f"          [dim]and {len(report.flaky) - _MOST_IDS:,} more[/]", highlight=False)


def _beside(lines: Sequence[str]) -> Table:
    """Lines beside their name; a long line wraps below itself."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=8)
    table.add_column(overflow="fold")
    for number, line in enumerate(lines):
        table.add_row("" if number else "Baseline", line)
    return table


def _comparison(report: RunReport) -> Iterator[str]:
    compared = report.comparison
    if compared is None:
        yield "[dim]no accepted run to compare with[/]"
        return
    yield escape(format_baseline(compared))
    if compared.refused:
        yield from (f"[yellow]not compared:[/] {escape(why)}" for why in compared.refused)
        yield from map(escape, format_change(compared, most_ids=_MOST_IDS))
        return
    scores = "  ·  ".join(f"{row.name} {row.before} → {row.now}" for row in score_rows(compared))
    yield scores
    yield escape(format_outcome(compared))
    for row in change_rows(compared):
        if row.failing:
            yield f"[red]newly failing[/], severity {row.severity}: {escape(_ids(row.failing))}"
        if row.fixed:
            yield f"[green]fixed[/], severity {row.severity}: {escape(_ids(row.fixed))}"


def _ids(case_ids: Sequence[str]) -> str:
    more = f" and {len(case_ids) - _MOST_IDS:,} more" if len(case_ids) > _MOST_IDS else ""
    return ", ".join(case_ids[:_MOST_IDS]) + more


def _sights(report: RunReport) -> Table:
    title = "Smallest drop this suite can detect, by the severity of its cases"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for name in ("severity", "graded", "not correct", "may still fail, 95 %", "shared", "smallest drop"):
        table.add_column(name, justify="right")
    for row in sight_rows(report.sights):
        shown = (str(row.severity.value), row.graded, row.not_correct, row.may_fail, row.pairs, row.drop)
        table.add_row(*map(escape, shown))
    return table


STYLES = {
    Verdict.PASS: "bold white on green",
    Verdict.FAIL: "bold white on red",
    Verdict.INCONCLUSIVE: "bold black on yellow",
}
MOST_IDS = 6


def print_verdict(console: Console, report: RunReport, *, report_page: Path | None = None) -> None:
    """Verdict, scores, reasons, missed targets, and the path of the report."""
    console.print()
    console.print(
        f"[{STYLES[report.verdict]}] {report.verdict} [/]  weighted {_ratio(report.scores.weighted)}  ·  "
        f"flat {_ratio(report.scores.flat)}",
        highlight=False,
    )
    if report.reasons:
        console.print(_reasons(report.reasons))
    console.print()
    console.print(_arithmetic(report))
    if format_raised(report):
        console.print(format_raised(report), highlight=False)
    console.print(_metrics(report))
    if report.rubric is not None:
        console.print(f"Ratings   {_rating(report.rubric)}", highlight=False)
    for gap in report.parity:
        console.print(f"Parity    {format_parity(gap)}", highlight=False)
    if format_path(report.metrics):
        console.print(f"Paths     {format_path(report.metrics)}", highlight=False)
    _print_explanation(console, report)
    if report.questions is not None:
        console.print(f"Questions {format_questions(report.questions)}", highlight=False)
    print_proof(console, report)
    if report.latency is not None:
        latency = report.latency
        console.print(
            f"Latency   p50 {latency.p50_ms / 1000:.1f} s, p95 {latency.p95_ms / 1000:.1f} s "
            f"(objective: p50 within {latency.objective_p50_ms / 1000:g} s; reported, not graded)",
            highlight=False,
        )
    _print_experiment(console, report)
    if report_page is not None:
        console.print(f"Report    {report_page}", soft_wrap=True, highlight=False)
        console.print(f"Results   {report_page.with_name('results.json')}", soft_wrap=True, highlight=False)


def _print_explanation(console: Console, report: RunReport) -> None:
    """What failed cases came to when asked again, what they have in common, what changed since the last PASS."""
    for line in format_recheck(report.recheck):
        console.print(f"Again     {escape(line)}", highlight=False)
    for cause in format_causes(report.first_look):
        console.print(f"In common {escape(cause)}", highlight=False)
    for change in format_changes(report.what_changed):
        console.print(f"Changed   {escape(change)}", highlight=False)


def _print_experiment(console: Console, report: RunReport) -> None:
    """Where the run appears as an experiment, and what is missing there."""
    found = report.experiment
    if found is not None and found.url is not None:
        console.print(f"Experiment {found.url}", soft_wrap=True, highlight=False, markup=False)
    for line in format_experiment(found):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _rating(found: RubricAverage) -> str:
    """The average with what it rests on, and the smallest drop that it shows."""
    rated = plural(len(found.ratings), "report")
    if found.clusters is not None and found.clusters < len(found.ratings):
        rated += f" of {plural(found.clusters, 'cluster')}"
    shows = "" if found.detectable is None else f"; a drop of {found.detectable:.2f} would show"
    return escape(f"average {found.mean:.2f} [{found.low:.2f}, {found.high:.2f}] of 5, {rated}{shows}")


def _ratio(ratio: Ratio) -> str:
    return "nothing graded" if ratio.value is None else f"{ratio.value:.3f} ({ratio.earned}/{ratio.total})"


def _reasons(reasons: Sequence[VerdictReason]) -> Table:
    """Decisive reasons first, in their order; a long one wraps below itself."""
    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for reason in reasons:
        ids = ", ".join(reason.case_ids[:MOST_IDS])
        more = f" and {len(reason.case_ids) - MOST_IDS:,} more" if len(reason.case_ids) > MOST_IDS else ""
        cases = f": {ids}{more}" if ids else ""
        weight = "" if reason.decisive else "[dim](not decisive)[/] "
        table.add_row(reason.kind, f"{weight}{escape(reason.text)}[dim]{escape(cases)}[/]")
    return table


def _arithmetic(report: RunReport) -> Table:
    table = Table(box=None, pad_edge=False, title="Arithmetic", title_justify="left", title_style="bold")
    for name in ("severity", "weight", "cases", "failed", "no answer", "earned", "of"):
        table.add_column(name, justify="right")
    for row in reversed(tally_rows(report)):
        shown = (row.weight, row.cases, row.failed, row.no_answer, row.earned, row.total)
        table.add_row(str(row.severity), *shown)
    return table


def _metrics(report: RunReport) -> Table:
    table = Table(box=None, pad_edge=False, title="Metrics", title_justify="left", title_style="bold")
    table.add_column("metric")
    for name in ("share", "of", "95 % interval", "target", ""):
        table.add_column(name, justify="right")
    for metric in report.metrics:
        if metric.total or report.triage is None:  # reports on issues cite nothing and refuse nothing
            table.add_row(*_metric(metric))
    return table


_MET: Final = {
    Finding.YES: "[green]met[/]",
    Finding.NO: "[red]missed[/]",
    Finding.UNGRADED: "",
    Finding.NOT_NEEDED: "not checked",
}


def _metric(metric: Metric) -> tuple[str, ...]:
    share = f"{metric.passed / metric.total:.3f}" if metric.total else "-"
    target = "" if metric.target is None else f"≥ {metric.target:.2f}"
    interval = f"{metric.low:.3f} to {metric.high:.3f}"
    return format_metric(metric.name), share, str(metric.total), interval, target, _MET[metric.met]
