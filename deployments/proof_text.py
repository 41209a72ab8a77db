"""What a verdict rests on, as it is printed: the baseline, what this suite could have seen, what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from monitors.records.runs import RunReport
from monitors.reports.proof_rows import (
    baseline_words,
    change_rows,
    outcome_words,
    score_rows,
    sight_rows,
)

_MOST_IDS = 6


def print_proof(console: Console, report: RunReport) -> None:
    """The comparison in a few lines, then a table of what could have been seen, by severity."""
    console.print(_beside(list(_comparison(report))))
    if report.sights:
        console.print(_sights(report))
    for one in report.flaky[:_MOST_IDS]:
        console.print(f"Flaky     {escape(one.case_id)} [dim]{one.words}[/]", highlight=False)
    if len(report.flaky) > _MOST_IDS:
        console.print(f"          [dim]and {len(report.flaky) - _MOST_IDS:,} more[/]", highlight=False)


def _beside(lines: Sequence[str]) -> Table:
    """Lines beside their name; a long one goes on below itself."""
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
    yield escape(baseline_words(compared))
    if compared.refused:
        yield from (f"[yellow]not compared:[/] {escape(why)}" for why in compared.refused)
        return
    scores = "  ·  ".join(f"{row.name} {row.before} → {row.now}" for row in score_rows(compared))
    yield scores
    yield escape(outcome_words(compared))
    for row in change_rows(compared):
        if row.failing:
            yield f"[red]newly failing[/], severity {row.severity}: {escape(_ids(row.failing))}"
        if row.fixed:
            yield f"[green]fixed[/], severity {row.severity}: {escape(_ids(row.fixed))}"


def _ids(case_ids: Sequence[str]) -> str:
    more = f" and {len(case_ids) - _MOST_IDS:,} more" if len(case_ids) > _MOST_IDS else ""
    return ", ".join(case_ids[:_MOST_IDS]) + more


def _sights(report: RunReport) -> Table:
    title = "What this suite could have seen"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for name in ("severity", "told", "lost", "may still fail, 95 %", "shared", "smallest visible drop"):
        table.add_column(name, justify="right")
    for row in sight_rows(report.sights):
        shown = (str(row.severity.value), row.told, row.lost, row.may_fail, row.pairs, row.drop)
        table.add_row(*map(escape, shown))
    return table
