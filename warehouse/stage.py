"""Lines of segments → rows of tables, inside the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import get_args

import duckdb

from warehouse.rows import TableName
from warehouse.segment import Segment, SegmentHeader

TABLES: Sequence[str] = get_args(TableName)

_STAGED = """
create or replace temp table staged (
  segment_id varchar not null, position integer not null, table_name varchar not null, row_json json not null
)
"""

_ENTRY_COLUMNS = ["id", "name", "run_id", "rows", "sha256", "size_bytes", "loaded_at"]


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A segment with its name inside the journal."""

    name: str
    segment: Segment


@dataclass(frozen=True, slots=True)
class Entry:
    """What the table of segments keeps of one."""

    header: SegmentHeader
    name: str
    size_bytes: int


def entry_of(each: NamedSegment) -> Entry:
    """The entry of a segment."""
    return Entry(each.segment.header, each.name, each.segment.size_bytes)


def clear_stage(connection: duckdb.DuckDBPyConnection) -> None:
    """An empty staging table."""
    connection.execute(_STAGED)


def stage(connection: duckdb.DuckDBPyConnection, batch: Sequence[NamedSegment]) -> None:
    """Lines of these segments alone → the staging table."""
    clear_stage(connection)
    with connection.appender("staged") as appender:
        appender.append_rows(
            (each.segment.header.id, position, line.table, line.row_json.decode())
            for each in batch
            for position, line in enumerate(each.segment.lines)
        )


def take_in(connection: duckdb.DuckDBPyConnection, entries: Sequence[Entry], now: datetime) -> None:
    """Staged lines → tables, with the segments' entries."""
    spoken_of = {table for each in entries for table in each.header.rows}
    for table in TABLES:
        if table in spoken_of:
            connection.execute(_extract(table))
    with connection.appender("segments", columns=_ENTRY_COLUMNS) as appender:
        appender.append_rows(_values(each, now) for each in entries)


def forget(connection: duckdb.DuckDBPyConnection, segment_ids: Sequence[str]) -> None:
    """Remove what these segments brought of results and assessments, and their entries: they come anew."""
    ids = list(segment_ids)
    connection.execute("create or replace temp table aged as select unnest(?::varchar[]) as id", [ids])
    connection.execute(
        "delete from grades g using assessments a where a.segment_id in (select id from aged)"
        " and g.run_id = a.run_id and g.case_id = a.case_id and g.repeat = a.repeat"
    )
    for table in ("assessments", "results"):
        connection.execute(f"delete from {table} where segment_id in (select id from aged)")  # noqa: S608 - two names
    connection.execute("delete from segments where id in (select id from aged)")


def _values(entry: Entry, now: datetime) -> tuple[object, ...]:
    header = entry.header
    rows = json.dumps(dict(header.rows))
    return (header.id, entry.name, header.run_id, rows, header.sha256, entry.size_bytes, now)


@cache
def _extract(table: str) -> str:
    return resources.files("warehouse").joinpath("extracts", f"{table}.sql").read_text("utf-8")
