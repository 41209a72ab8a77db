"""``lookout sql``: the warehouse answers queries.

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

from deployments.cli.data_folder import loaded, store_of
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from flows.terminal import write_data, write_json, write_note, write_text
from flows.terminal_console import terminal_console
from flows.waiting import waiting
from monitors.errors import WarehouseError
from monitors.plural import plural
from monitors.reports.invisible import show_invisible
from warehouse.database.store import VIEWS, Store, Table

RUNS: Final = ("=", "+", "-", "@")
"""How a cell begins that a spreadsheet takes for a formula (OWASP, CSV injection); tab and line ends too."""
MARK: Final = "'"
"""Before such a cell: a spreadsheet then shows it as text."""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and the rows, as RFC 4180 has it. Numbers stay numbers; texts that would run are marked."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([cell(name) for name in columns])
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def cell(value: object) -> str:
    """One value as it is written."""
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
            return inert_cell(str(value))


def inert_cell(text: str) -> str:
    """``text``, marked when a spreadsheet would run it: wide forms and blanks before the sign count too."""
    seen = unicodedata.normalize("NFKC", text).lstrip()
    return MARK + text if seen.startswith(RUNS) or text.startswith(("\t", "\r", "\n")) else text


WAIT_S = 10.0
MANY = 1000.0
"""From here on a fraction means nothing, and an exponent is harder to read than a digit more."""

FEW_COLUMNS = 3
"""So few columns are read as a table even when their text wraps."""


def sql_command(
    query: Annotated[str | None, typer.Argument(help="a query; the views there are when left out")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print the rows as CSV, safe for spreadsheets")] = False,
) -> ExitCode:
    """Ask the warehouse. Reading only, also while runs are going on."""
    store = loaded(store_of(config, data_folder))
    if as_csv:
        table = _answered(store, query or VIEWS)
        write_data(csv_text(table.columns, table.rows))
        return ExitCode.PASS
    _show(_answered(store, query or VIEWS), as_json=as_json)
    if query is None and sys.stdin.isatty():
        _prompt(store, as_json=as_json)
    return ExitCode.PASS


def _answered(store: Store, query: str) -> Table:
    with waiting("Asking the warehouse"):
        return store.query(query, wait_s=WAIT_S)


def _show(table: Table, *, as_json: bool) -> None:
    if as_json:
        _print_json(table)
    else:
        _print_table(table)


def _prompt(store: Store, *, as_json: bool) -> None:
    """One query a line until the end of input; a wrong one prints its error, and the prompt goes on."""
    while True:
        try:
            query = input("lookout> ").strip()
        except (EOFError, KeyboardInterrupt):
            write_text("\n")
            return
        if not query:
            continue
        try:
            _show(_answered(store, query), as_json=as_json)
        except WarehouseError as error:
            write_note(f"{error}\n")


def _print_json(table: Table) -> None:
    for row in table.rows:
        write_json(
            json.dumps(dict(zip(table.columns, row, strict=True)), default=_plain, ensure_ascii=False) + "\n"
        )


def _plain(value: object) -> object:
    match value:
        case Decimal():
            return format(value.normalize(), "f")
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


def _print_table(table: Table) -> None:
    """As a table where it fits the terminal, else one block a row."""
    rows = [tuple(map(show_invisible, map(_cell, row))) for row in table.rows]
    width = sum(max(map(len, column), default=0) + 2 for column in zip(table.columns, *rows, strict=True))
    if width <= terminal_console().width or len(table.columns) <= FEW_COLUMNS:
        _print_grid(table.columns, rows)
    else:
        _print_blocks(table.columns, rows)
    terminal_console(stderr=True).print(f"[dim]{plural(len(rows), 'row')}[/]")


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    longest = max(map(len, columns))
    for row in rows:
        block = "\n".join(f"{name:<{longest}}  {value}" for name, value in zip(columns, row, strict=True))
        write_text(f"{block}\n\n")


def _print_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    shown = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    terminal_console().print(shown)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float() if abs(value) >= MANY:
            return f"{value:.0f}"
        case float():
            return f"{value:.4g}"
        case Decimal():
            return format(value.normalize(), "f")
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return str(value)
