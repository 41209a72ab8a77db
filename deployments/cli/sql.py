"""``lookout sql``: query the warehouse with SQL.

The CSV output is safe for spreadsheets: they show each cell as text and do not run formulas.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

import typer
from rich.table import Table as RichTable
from rich.text import Text

from deployments.cli.data_folder import load_new_results_into_warehouse, open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from flows.terminal import write_data, write_json, write_note, write_text
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting
from monitors.errors import WarehouseError
from monitors.plural import plural
from monitors.reports.invisible import replace_invisible_by_code_points
from warehouse.database.store import VIEWS_SQL, Store, Table

TEXT_MARK: Final = "'"
"""The character that is inserted before the start of a formula, so that the cell is shown as text."""
EMPTY_ROW: Final = '""'
"""The CSV line for a row with one empty cell. An empty line is not used, because CSV readers skip it."""
_FORMULA_START: Final = re.compile(
    r"(?:\A|(?<=[;；\u037e\ufe14\ufe54|｜\t\r\n]))(?=\s*[=+\-@⁺⁼₊₌⩵⩶﬩﹢﹣﹦﹫＋－＝＠])"
    r"|\A(?=[\t\r\n])"
)
"""A pattern that matches each position at which a formula could start (OWASP, CSV injection).

A formula can start at the beginning of a cell, and after a character that some spreadsheets use instead of a comma.
NFKC turns all listed signs into ``=``, ``+``, ``-`` or ``@``.
"""


def format_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a header and rows as CSV (RFC 4180). Texts are quoted, and formulas are turned into texts."""
    lines = (",".join(map(format_csv_cell, row)) for row in (columns, *rows))
    return "".join(f"{line or EMPTY_ROW}\r\n" for line in lines)


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
            return '"{}"'.format(escape_formula_cell(str(value)).replace('"', '""'))


def escape_formula_cell(text: str) -> str:
    """Insert `TEXT_MARK` at each position in ``text`` at which a spreadsheet would start a formula."""
    return _FORMULA_START.sub(TEXT_MARK, text)


WAIT_S = 10.0
MIN_WHOLE_NUMBER = 1000.0
"""Floats of at least this value are printed without decimal places."""

MAX_GRID_COLUMNS = 3
"""A result with at most this number of columns is always printed as a table, even if its text wraps."""


def sql_command(
    query: Annotated[str | None, typer.Argument(help="an SQL query; default: list the views")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print the rows as CSV, safe for spreadsheets")] = False,
) -> ExitCode:
    """Query the warehouse, the database of all results, with SQL. A query can only read."""
    store = load_new_results_into_warehouse(open_warehouse(config, data_folder))
    if as_csv:
        table = _run_query(store, query or VIEWS_SQL)
        write_data(format_csv(table.columns, table.rows))
        return ExitCode.PASS
    _print_query_result(_run_query(store, query or VIEWS_SQL), as_json=as_json)
    if query is None and sys.stdin.isatty():
        _run_query_prompt(store, as_json=as_json)
    return ExitCode.PASS


def _run_query(store: Store, query: str) -> Table:
    with show_waiting("Querying the warehouse"):
        return store.query_for_user(query, wait_s=WAIT_S)


def _print_query_result(table: Table, *, as_json: bool) -> None:
    if as_json:
        _print_rows_as_json(table)
    else:
        _print_table(table)


def _run_query_prompt(store: Store, *, as_json: bool) -> None:
    """Read and run one query per line until the input ends. For an invalid query, print the error."""
    while True:
        try:
            query = input("lookout> ").strip()
        except (EOFError, KeyboardInterrupt):
            write_text("\n")
            return
        if not query:
            continue
        try:
            _print_query_result(_run_query(store, query), as_json=as_json)
        except WarehouseError as error:
            write_note(f"{error}\n")


def _print_rows_as_json(table: Table) -> None:
    for row in table.rows:
        write_json(
            json.dumps(
                dict(zip(table.columns, row, strict=True)), default=_convert_to_json_value, ensure_ascii=False
            )
            + "\n"
        )


def _convert_to_json_value(value: object) -> object:
    match value:
        case Decimal():
            return format(value.normalize(), "f")
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


def _print_table(table: Table) -> None:
    """Print the rows as a table if it fits the terminal. Otherwise, print one block for each row."""
    rows = [tuple(map(replace_invisible_by_code_points, map(_format_terminal_cell, row))) for row in table.rows]
    width = sum(max(map(len, column), default=0) + 2 for column in zip(table.columns, *rows, strict=True))
    if width <= make_terminal_console().width or len(table.columns) <= MAX_GRID_COLUMNS:
        _print_rows_as_grid(table.columns, rows)
    else:
        _print_rows_as_blocks(table.columns, rows)
    make_terminal_console(stderr=True).print(f"[dim]{plural(len(rows), 'row')}[/]")


def _print_rows_as_blocks(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, columns))
    for row in rows:
        block = "\n".join(f"{name:<{width}}  {value}" for name, value in zip(columns, row, strict=True))
        write_text(f"{block}\n\n")


def _print_rows_as_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    grid = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    make_terminal_console().print(grid)


def _format_terminal_cell(value: object) -> str:
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
