"""A run's verdict as it is printed: the answer first, then its arithmetic, then where to read on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deployments.proof_text import print_proof
from monitors.records.base import Finding
from monitors.records.runs import Metric, Ratio, RunReport, Verdict, VerdictReason
from monitors.reports.proof_rows import parity_words, path_words

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
    console.print(_metrics(report))
    for gap in report.parity:
        console.print(f"Parity    {parity_words(gap)}", highlight=False)
    if path_words(report.metrics):
        console.print(f"Paths     {path_words(report.metrics)}", highlight=False)
    print_proof(console, report)
    if report.latency is not None:
        latency = report.latency
        console.print(
            f"Latency   p50 {latency.p50_ms / 1000:.1f} s, p95 {latency.p95_ms / 1000:.1f} s "
            f"(objective: p50 within {latency.objective_p50_ms / 1000:g} s; reported, not graded)",
            highlight=False,
        )
    if report_page is not None:
        console.print(f"Report    {report_page}", soft_wrap=True, highlight=False)
        console.print(f"Results   {report_page.with_name('results.json')}", soft_wrap=True, highlight=False)


def _ratio(ratio: Ratio) -> str:
    return "nothing told" if ratio.value is None else f"{ratio.value:.3f} ({ratio.earned}/{ratio.total})"


def _reasons(reasons: Sequence[VerdictReason]) -> Table:
    """Decisive ones first, as they come; a long one goes on below itself."""
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
    for name in ("severity", "weight", "cases", "lost", "earned", "of"):
        table.add_column(name, justify="right")
    for row in report.scores.tallies:
        earned, total = row.weight * (row.cases - row.lost), row.weight * row.cases
        table.add_row(*map(str, (row.severity.value, row.weight, row.cases, row.lost, earned, total)))
    return table


def _metrics(report: RunReport) -> Table:
    table = Table(box=None, pad_edge=False, title="Metrics", title_justify="left", title_style="bold")
    table.add_column("metric")
    for name in ("share", "of", "95 % interval", "target", ""):
        table.add_column(name, justify="right")
    for metric in report.metrics:
        table.add_row(*_metric(metric))
    return table


def _metric(metric: Metric) -> tuple[str, ...]:
    share = f"{metric.passed / metric.total:.3f}" if metric.total else "-"
    target = "" if metric.target is None else f"≥ {metric.target:.2f}"
    met = {Finding.YES: "[green]met[/]", Finding.NO: "[red]missed[/]", Finding.UNTOLD: ""}[metric.met]
    return metric.name, share, str(metric.total), f"{metric.low:.3f} to {metric.high:.3f}", target, met
