"""``lookout sql``: query the warehouse.

Its CSV is safe: a spreadsheet shows the rows and never runs them.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

import typer
from rich.table import Table as RichTable
from rich.text import Text

from deployments.cli.data_folder import load_pending, open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from flows.terminal import write_data, write_json, write_note, write_text
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting
from monitors.errors import WarehouseError
from monitors.plural import plural
from monitors.reports.invisible import show_invisible
from warehouse.database.store import VIEWS_SQL, Store, Table

FORMULA_SIGNS: Final = ("=", "+", "-", "@")
"""First characters that make a spreadsheet read a cell as a formula (OWASP, CSV injection)."""
TEXT_MARK: Final = "'"
"""Put before such a cell, so that a spreadsheet shows it as text."""


def format_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a header and rows as CSV (RFC 4180). Numbers stay numbers; formula-like texts are marked."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([format_csv_cell(name) for name in columns])
    writer.writerows([format_csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def format_csv_cell(value: object) -> str:
    """Format one value for CSV."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat()
        case _:
            return escape_formula_cell(str(value))


def escape_formula_cell(text: str) -> str:
    """Mark ``text`` when a spreadsheet would run it; also with wide signs or blanks before the sign."""
    visible_text = unicodedata.normalize("NFKC", text).lstrip()
    return (
        TEXT_MARK + text if visible_text.startswith(FORMULA_SIGNS) or text.startswith(("\t", "\r", "\n")) else text
    )


WAIT_S = 10.0
MIN_WHOLE_NUMBER = 1000.0
"""Floats from here on are printed without a fraction."""

MAX_GRID_COLUMNS = 3
"""Up to this many columns are printed as a table even when their text wraps."""


def sql_command(
    query: Annotated[str | None, typer.Argument(help="a query; the views there are when left out")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print the rows as CSV, safe for spreadsheets")] = False,
) -> ExitCode:
    """Ask the warehouse. Reading only, also while runs are going on."""
    store = load_pending(open_warehouse(config, data_folder))
    if as_csv:
        table = _run_query(store, query or VIEWS_SQL)
        write_data(format_csv(table.columns, table.rows))
        return ExitCode.PASS
    _print_result(_run_query(store, query or VIEWS_SQL), as_json=as_json)
    if query is None and sys.stdin.isatty():
        _run_prompt(store, as_json=as_json)
    return ExitCode.PASS


def _run_query(store: Store, query: str) -> Table:
    with show_waiting("Asking the warehouse"):
        return store.query(query, wait_s=WAIT_S)


def _print_result(table: Table, *, as_json: bool) -> None:
    if as_json:
        _print_json(table)
    else:
        _print_table(table)


def _run_prompt(store: Store, *, as_json: bool) -> None:
    """Read one query a line until the end of input; an invalid one prints its error."""
    while True:
        try:
            query = input("lookout> ").strip()
        except (EOFError, KeyboardInterrupt):
            write_text("\n")
            return
        if not query:
            continue
        try:
            _print_result(_run_query(store, query), as_json=as_json)
        except WarehouseError as error:
            write_note(f"{error}\n")


def _print_json(table: Table) -> None:
    for row in table.rows:
        write_json(
            json.dumps(dict(zip(table.columns, row, strict=True)), default=_to_json_value, ensure_ascii=False)
            + "\n"
        )


def _to_json_value(value: object) -> object:
    match value:
        case Decimal():
            return format(value.normalize(), "f")
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


def _print_table(table: Table) -> None:
    """Print a table where it fits the terminal, else one block for each row."""
    rows = [tuple(map(show_invisible, map(_format_cell, row))) for row in table.rows]
    width = sum(max(map(len, column), default=0) + 2 for column in zip(table.columns, *rows, strict=True))
    if width <= make_terminal_console().width or len(table.columns) <= MAX_GRID_COLUMNS:
        _print_grid(table.columns, rows)
    else:
        _print_blocks(table.columns, rows)
    make_terminal_console(stderr=True).print(f"[dim]{plural(len(rows), 'row')}[/]")


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, columns))
    for row in rows:
        block = "\n".join(f"{name:<{width}}  {value}" for name, value in zip(columns, row, strict=True))
        write_text(f"{block}\n\n")


def _print_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    grid = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    make_terminal_console().print(grid)


def _format_cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float() if abs(value) >= MIN_WHOLE_NUMBER:
            return f"{value:.0f}"
        case float():
            return f"{value:.4g}"
        case Decimal():
            return format(value.normalize(), "f")
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return str(value)
