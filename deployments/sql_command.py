"""``lookout sql``: the warehouse answers."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from deployments.data_folder import data_folder_of
from deployments.exit_codes import ExitCode
from flows.wiring import store_in
from monitors.errors import ConfigError
from warehouse.store import FILE_NAME, Table

VIEWS = """
select view_name as "view", comment as "what it answers"
from duckdb_views() where not internal and schema_name = 'main' order by view_name
"""
WAIT_S = 10.0


def sql_command(query: str | None, config: Path, *, data_folder: Path | None, as_json: bool) -> ExitCode:
    """Run ``query`` and print its rows; without one, the views there are."""
    folder = data_folder_of(config, data_folder)
    if not (folder / FILE_NAME).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; a run makes one")
    table = store_in(folder).query(query or VIEWS, wait_s=WAIT_S)
    if as_json:
        _print_json(table)
    else:
        _print_table(table)
    return ExitCode.PASS


def _print_json(table: Table) -> None:
    for row in table.rows:
        sys.stdout.write(
            json.dumps(dict(zip(table.columns, row, strict=True)), default=_plain, ensure_ascii=False) + "\n"
        )


def _plain(value: object) -> object:
    match value:
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


def _print_table(table: Table) -> None:
    shown = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        shown.add_column(column, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(_cell(value)) for value in row))
    Console().print(shown)
    Console(stderr=True).print(f"[dim]{len(table.rows)} rows[/]")


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.4g}"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return str(value)
