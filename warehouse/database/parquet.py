"""Export the tables as Parquet files, and read rows from Parquet files of other systems.

The export has one folder for each day. Spark, Trino and BigQuery can read this layout.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, Final

import duckdb

from monitors.errors import ConfigError, WarehouseUnwritable
from monitors.records.base import Record
from monitors.storage import build_unwritable_error, move
from warehouse.database.store import Store

ROWS_PER_BATCH: Final = 500
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,
    "memory_limit": "512MB",
    "temp_directory": "",
    "autoinstall_known_extensions": False,  # Parquet is built in, so nothing may be downloaded
    "autoload_known_extensions": False,
}
_QUERY: Final = "from read_parquet(?, utf8_validation = 'replace', hive_partitioning = false)"
"""The SQL query for the rows of a Parquet file. The query replaces invalid UTF-8 bytes with question marks."""


def iterate_parquet_batches(file: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a Parquet file as dictionaries, in lists of at most `ROWS_PER_BATCH` rows.

    Byte columns become text if they are valid UTF-8. Times are in UTC if the file states their time zone. Raises
    ``ValueError`` if the file is damaged or not a Parquet file.
    """
    if any(mark in str(file) for mark in "*?["):
        raise ValueError("DuckDB interprets a name that contains *, ? or [ as a pattern; rename the file")
    try:
        with closing(duckdb.connect(":memory:", config=_SETTINGS)) as connection:
            connection.execute("set timezone = 'UTC'")
            result = connection.execute(_QUERY, [str(file)])
            names = [str(column[0]) for column in result.description or ()]
            while rows := result.fetchmany(ROWS_PER_BATCH):
                yield [{name: _decode_bytes(value) for name, value in zip(names, row, strict=True)} for row in rows]
    except duckdb.Error as error:
        raise ValueError(f"not a Parquet file, or damaged ({type(error).__name__})") from None


def _decode_bytes(value: Any) -> Any:
    """Return bytes as a string, or ``None`` if they are not valid UTF-8. Return any other value unchanged."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


DAY_EXPRESSIONS = {
    "results": "cast(asked_at as date)",
    "rechecks": "cast(asked_at as date)",
    "runs": "cast(finished_at as date)",
    "alerts": "cast(created_at as date)",
    "receipts": "cast(tried_at as date)",
    "deploys": "cast(occurred_at as date)",
    "actions": "cast(done_at as date)",
    "action_outcomes": "cast(carried_out_at as date)",
    "labels": "cast(given_at as date)",
    "case_drafts": "cast(made_at as date)",
    "draft_outcomes": "cast(decided_at as date)",
    "silences": "cast(starts_at as date)",
    "hallucinations": "cast(read_at as date)",
    "conversations": "cast(completed_at as date)",
    "nightly_runs": "cast(finished_at as date)",
    "drills": "cast(finished_at as date)",
    "repeatability_runs": "cast(finished_at as date)",
    "incident_history": "cast(last_seen_at as date)",
    "metrics": "(select cast(r.finished_at as date) from runs r where r.run_id = t.run_id)",
    "tallies": "(select cast(r.finished_at as date) from runs r where r.run_id = t.run_id)",
    "cases": "(select min(cast(r.started_at as date)) from runs r where r.suite_sha256 = t.suite_sha256)",
    "assessments": "(select cast(r.asked_at as date) from results r where r.run_id = t.run_id"
    " and r.case_id = t.case_id and r.repeat = t.repeat)",
    "grades": "(select cast(r.asked_at as date) from results r where r.run_id = t.run_id"
    " and r.case_id = t.case_id and r.repeat = t.repeat)",
}
"""For each table, the SQL expression that computes the day (UTC) to which a row belongs.

A grade belongs to the day of its question. A case belongs to the day of its first run.
"""


class ExportReport(Record):
    """The numbers of exported files and rows."""

    files: int
    rows: int


def export_parquet(store: Store, goal: Path, *, since: date, until: date, wait_s: float) -> ExportReport:
    """Write the rows of the days ``since`` to ``until`` (both inclusive, UTC) below ``goal``.

    Each table has its own files, such as ``goal/grades/day=2026-03-01/part.parquet``. Each day folder is replaced
    as a whole. During the replacement, a reader may find no folder for that day. A second export of the same rows
    writes the same files. Raises `WarehouseBusy`, `WarehouseUnwritable`, and `ConfigError` if ``since`` is after
    ``until``.
    """
    if since > until:
        raise ConfigError(f"no day to export: since {since} is after until {until}")
    files = rows = 0
    beside = goal / ".writing"
    try:
        goal.mkdir(parents=True, exist_ok=True)
        with store.database.open_for_writing(
            wait_s
        ) as connection:  # a separate connection, because the connection for queries may not write files
            for table in DAY_EXPRESSIONS:
                shutil.rmtree(beside, ignore_errors=True)
                rows += _write_days(connection, table, beside, since, until)
                files += _replace_days(beside, goal / table, since, until)
        shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise build_unwritable_error(goal, error) from error
    return ExportReport(files=files, rows=rows)


def _write_days(connection: duckdb.DuckDBPyConnection, table: str, beside: Path, since: date, until: date) -> int:
    target = str(beside).replace("'", "''")
    selection = f"select t.*, {DAY_EXPRESSIONS[table]} as day from {table} t"  # noqa: S608 - names and expressions of ours
    connection.execute(f"create or replace temp view exported as {selection}")
    try:
        copied = connection.execute(
            f"copy (select * from exported where day between '{since}' and '{until}' order by all)"  # noqa: S608 - dates
            f" to '{target}'"
            " (format parquet, codec zstd, partition_by (day), overwrite_or_ignore, filename_pattern 'part_{i}')"
        ).fetchone()
    except duckdb.IOException as error:
        raise WarehouseUnwritable(f"cannot write the export next to {beside.parent}: {error}") from error
    return int(copied[0]) if copied else 0


def _replace_days(beside: Path, goal: Path, since: date, until: date) -> int:
    """Replace day folders in ``goal`` with the new day folders in ``beside``. Return the number of new files.

    Every old day folder from ``since`` to ``until`` is removed, even if no rows were exported for that day. The old
    folder is moved to ``beside`` immediately before the new folder takes its place.
    """
    goal.mkdir(exist_ok=True)
    beside.mkdir(exist_ok=True)
    new_days = {day.name for day in beside.glob("day=*")}
    old_days = {
        day.name
        for day in goal.glob("day=*")
        if since.isoformat() <= day.name.removeprefix("day=") <= until.isoformat()
    }
    for name in sorted(old_days | new_days):
        if name in old_days:
            move(goal / name, beside / f"old-{name}")
        if name in new_days:
            move(beside / name, goal / name)
    return sum(1 for name in new_days for _ in (goal / name).iterdir())
