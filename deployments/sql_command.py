"""``lookout sql``: the warehouse answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from deployments.csv_cells import csv_text
from deployments.data_folder import data_folder_of
from deployments.exit_codes import ExitCode
from flows.wiring import store_in
from monitors.errors import ConfigError, WarehouseError
from warehouse.store import FILE_NAME, Store, Table

VIEWS = """
select view_name as "view", comment as "what it answers"
from duckdb_views() where not internal and schema_name = 'main' order by view_name
"""
WAIT_S = 10.0
MANY = 1000.0
"""From here on a fraction says nothing, and an exponent is harder to read than a digit more."""

FEW_COLUMNS = 3
"""So few are read as a table even when their text wraps."""


def sql_command(
    query: str | None, config: Path, *, data_folder: Path | None, as_json: bool, as_csv: bool = False
) -> ExitCode:
    """Run ``query`` and print its rows; without one, the views there are and, in a terminal, a prompt."""
    folder = data_folder_of(config, data_folder)
    if not (folder / FILE_NAME).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; a run makes one")
    store = store_in(folder)
    if as_csv:
        table = store.query(query or VIEWS, wait_s=WAIT_S)
        sys.stdout.write(csv_text(table.columns, table.rows))
        return ExitCode.PASS
    _show(store.query(query or VIEWS, wait_s=WAIT_S), as_json=as_json)
    if query is None and sys.stdin.isatty():
        _prompt(store, as_json=as_json)
    return ExitCode.PASS


def _show(table: Table, *, as_json: bool) -> None:
    if as_json:
        _print_json(table)
    else:
        _print_table(table)


def _prompt(store: Store, *, as_json: bool) -> None:
    """One query a line until the end of input; a wrong one is told and the next one asked."""
    while True:
        try:
            query = input("lookout> ").strip()
        except (EOFError, KeyboardInterrupt):
            sys.stdout.write("\n")
            return
        if not query:
            continue
        try:
            _show(store.query(query, wait_s=WAIT_S), as_json=as_json)
        except WarehouseError as error:
            sys.stderr.write(f"{error}\n")


def _print_json(table: Table) -> None:
    for row in table.rows:
        sys.stdout.write(
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
    rows = [tuple(map(_cell, row)) for row in table.rows]
    width = sum(max(map(len, column), default=0) + 2 for column in zip(table.columns, *rows, strict=True))
    if width <= Console().width or len(table.columns) <= FEW_COLUMNS:
        _print_grid(table.columns, rows)
    else:
        _print_blocks(table.columns, rows)
    Console(stderr=True).print(f"[dim]{len(rows)} {'row' if len(rows) == 1 else 'rows'}[/]")


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    longest = max(map(len, columns))
    for row in rows:
        block = "\n".join(f"{name:<{longest}}  {value}" for name, value in zip(columns, row, strict=True))
        sys.stdout.write(f"{block}\n\n")


def _print_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    shown = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    Console().print(shown)


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
