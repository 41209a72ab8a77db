"""Journal → DuckDB: each segment in one transaction with its entry in ``segments``. Twice is once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import get_args

import duckdb

from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.records.base import Record
from warehouse.connection import transaction
from warehouse.journal import Journal
from warehouse.rows import TableName
from warehouse.segment import Segment
from warehouse.segment_store import segment_id_of

BATCH_ROWS = 20_000
"""Rows per transaction: a batch of small segments costs little more than one (about 3 ms each on its own)."""

TABLES: Sequence[str] = get_args(TableName)

_STAGED = """
create or replace temp table staged (
  segment_id varchar not null, position integer not null, table_name varchar not null, row_json json not null
)
"""

_ENTRY_COLUMNS = ["id", "name", "run_id", "rows", "sha256", "size_bytes", "loaded_at"]


class DamagedSegment(Record):
    """A segment that was not what its header says. ``kept_at`` is where it waits for a person."""

    kept_at: str
    error: str


class LoadReport(Record):
    """What a load did. ``restored`` counts segments that had been loaded before and were missing from the file.

    That happens when the file's log was torn by a crash of the machine: their rows are back, and somebody should
    know. ``swept`` counts temporary files of killed writers, ``too_new`` segments of a newer Lookout, which wait
    where they are.
    """

    segments: int = 0
    rows: Mapping[str, int] = {}
    restored: int = 0
    swept: int = 0
    too_new: int = 0
    damaged: tuple[DamagedSegment, ...] = ()

    def errors(self) -> Sequence[WarehouseDamaged]:
        """One error per damaged segment, to be raised or reported to the monitor's owners."""
        return [WarehouseDamaged(f"{each.error}; it was set aside as {each.kept_at}") for each in self.damaged]


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A segment with its name inside the journal."""

    name: str
    segment: Segment


@dataclass(slots=True)
class _LeftOut:
    damaged: list[DamagedSegment] = field(default_factory=list[DamagedSegment])
    too_new: int = 0


def pending(connection: duckdb.DuckDBPyConnection, journal: Journal, folder: str | None = None) -> Sequence[str]:
    """Names of the segments (of one folder) that are not loaded yet, oldest first."""
    names = journal.segments.names(folder)
    known = {str(row[0]) for row in connection.execute("select id from segments").fetchall()}
    return [name for name in names if segment_id_of(name) not in known]


def load(connection: duckdb.DuckDBPyConnection, journal: Journal, folder: str | None = None) -> LoadReport:
    """Load what is pending (of one folder). A damaged segment is set aside and reported; the rest goes on.

    The caller holds the lock and an open connection. Raises `duckdb.Error` when the file itself fails.
    """
    rows: Counter[str] = Counter()
    left = _LeftOut()
    count = 0
    for batch in _batches(journal, pending(connection, journal, folder), left):
        for each in _load_batch(connection, journal, batch, left):
            rows.update(each.segment.header.rows)
            count += 1
    return LoadReport(segments=count, rows=dict(rows), damaged=tuple(left.damaged), too_new=left.too_new)


def load_segments(connection: duckdb.DuckDBPyConnection, journal: Journal, batch: Sequence[NamedSegment]) -> None:
    """Put whole segments into the tables, inside the caller's transaction."""
    connection.execute(_STAGED)
    with connection.appender("staged") as appender:
        appender.append_rows(
            (each.segment.header.id, position, line.table, line.row_json.decode())
            for each in batch
            for position, line in enumerate(each.segment.lines)
        )
    extract_staged(connection, {table for each in batch for table in each.segment.header.rows})
    with connection.appender("segments", columns=_ENTRY_COLUMNS) as appender:
        appender.append_rows(_entry(each, journal) for each in batch)


def extract_staged(connection: duckdb.DuckDBPyConnection, tables: set[str]) -> None:
    """Staged lines → tables, for the tables that they speak of."""
    for table in TABLES:
        if table in tables:
            connection.execute(_extract(table))


def _entry(each: NamedSegment, journal: Journal) -> tuple[object, ...]:
    header = each.segment.header
    rows = json.dumps(dict(header.rows))
    return (header.id, each.name, header.run_id, rows, header.sha256, each.segment.size_bytes, journal.now())


def _batches(journal: Journal, names: Sequence[str], left: _LeftOut) -> Iterator[Sequence[NamedSegment]]:
    batch: list[NamedSegment] = []
    size = 0
    for name in names:
        try:
            segment = journal.read(name)
        except FileNotFoundError:
            continue  # compacted or set aside by another process since it was listed
        except SchemaTooNew:
            left.too_new += 1
            continue
        except WarehouseDamaged as error:
            left.damaged.append(_set_aside(journal, name, error))
            continue
        batch.append(NamedSegment(name, segment))
        size += len(segment.lines)
        if size >= BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _load_batch(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    batch: Sequence[NamedSegment],
    left: _LeftOut,
) -> Sequence[NamedSegment]:
    try:
        with transaction(connection):
            load_segments(connection, journal, batch)
    except _ROW_ERRORS as error:
        return _one_by_one(connection, journal, batch, left, error)
    return batch


_ROW_ERRORS = (duckdb.IntegrityError, duckdb.DataError)
"""What a row can be guilty of: a missing field, a value of the wrong type."""


def _one_by_one(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    batch: Sequence[NamedSegment],
    left: _LeftOut,
    error: duckdb.Error,
) -> Sequence[NamedSegment]:
    if len(batch) > 1:
        return [done for each in batch for done in _load_batch(connection, journal, [each], left)]
    name = batch[0].name
    why = WarehouseDamaged(f"the segment {journal.segments.place(name)} cannot be loaded: {error}")
    left.damaged.append(_set_aside(journal, name, why))
    return []


def _set_aside(journal: Journal, name: str, error: WarehouseDamaged) -> DamagedSegment:
    return DamagedSegment(kept_at=journal.segments.set_aside(name), error=str(error))


@cache
def _extract(table: str) -> str:
    return resources.files("warehouse").joinpath("extracts", f"{table}.sql").read_text("utf-8")
