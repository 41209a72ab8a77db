"""Does the file hold what the journal says? Exactly: the tables are made anew and compared row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import duckdb

from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.records.base import Record
from warehouse.connection import REBUILD, Deadline, opened, transaction
from warehouse.journal import Journal
from warehouse.load import BATCH_ROWS, NamedSegment, load_segments
from warehouse.migrate import building, discard
from warehouse.segment_store import segment_id_of
from warehouse.store import Store

DERIVED = (
    "results",
    "assessments",
    "grades",
    "runs",
    "metrics",
    "tallies",
    "cases",
    "deploys",
    "incident_history",
    "alerts",
    "receipts",
)
"""Tables that follow from the segments alone."""


class TroubleKind(StrEnum):
    """What can be wrong."""

    FILE_DAMAGED = "file_damaged"
    LOADED_ROWS_LOST = "loaded_rows_lost"
    TABLE_DIFFERS = "table_differs"
    SEGMENT_DAMAGED = "segment_damaged"
    SEGMENT_MISSING = "segment_missing"
    SEGMENT_CHANGED = "segment_changed"
    SET_ASIDE = "set_aside"


class Trouble(Record):
    """One thing that is wrong, and what to do."""

    kind: TroubleKind
    text: str


class CheckReport(Record):
    """What a check found. ``pending`` segments are not loaded yet, which is no trouble."""

    loaded: int
    pending: int
    troubles: tuple[Trouble, ...]

    @property
    def sound(self) -> bool:
        """Whether everything that was acknowledged is there, once, as it was written."""
        return not self.troubles


def check(store: Store, *, wait_s: float) -> CheckReport:
    """Compare the segments with the tables. No row is changed, repaired or set aside.

    Takes about as long as a rebuild and holds the lock for it; runs write their journal meanwhile. Raises
    `WarehouseBusy` after ``wait_s`` seconds, `WarehouseUnwritable` without room for the copy beside the file, and
    `SchemaTooNew`.
    """
    try:
        with store.database.reading(wait_s):
            pass  # the file is there, ours, and of the present schema
        with store.database.held(wait_s) as deadline:
            return _examine(store, deadline)
    except WarehouseDamaged as error:
        trouble = Trouble(kind=TroubleKind.FILE_DAMAGED, text=str(error))
        return CheckReport(loaded=0, pending=len(store.journal.segments.names()), troubles=(trouble,))


def _examine(store: Store, deadline: Deadline) -> CheckReport:
    database = store.database
    with opened(database.file, deadline, read_only=True) as live:
        entries = {str(row[0]): str(row[1]) for row in live.execute("select id, sha256 from segments").fetchall()}
        lost = store.lost(live)
    names = {segment_id_of(name): name for name in store.journal.segments.names()}
    troubles = [*_lost(lost), *_missing(entries, names), *_set_aside(store)]
    with building(database.file, deadline, database.schema, database.clock) as (fresh, beside):
        troubles += _load_copies(fresh, store.journal, names, entries)
        fresh.execute(f"attach '{_quoted(database.file)}' as live (read_only)")
        troubles += _differences(fresh, database.file)
        fresh.execute("detach live")
    discard(beside)
    return CheckReport(loaded=len(entries), pending=len(names.keys() - entries.keys()), troubles=tuple(troubles))


def _load_copies(
    fresh: duckdb.DuckDBPyConnection, journal: Journal, names: dict[str, str], entries: dict[str, str]
) -> Sequence[Trouble]:
    """Load what the file says it has loaded; what cannot be read or has another hash is a trouble."""
    troubles: list[Trouble] = []
    batch: list[NamedSegment] = []
    rows = 0
    for segment_id in sorted(names):
        found = _read(journal, names[segment_id])
        if isinstance(found, Trouble):
            troubles.append(found)
        elif segment_id in entries and found.segment.header.sha256 != entries[segment_id]:
            troubles.append(_changed(found))
        elif segment_id in entries:
            batch.append(found)
            rows += len(found.segment.lines)
        if rows >= BATCH_ROWS:
            _load(fresh, journal, batch)
            batch, rows = [], 0
    _load(fresh, journal, batch)
    return troubles


def _load(fresh: duckdb.DuckDBPyConnection, journal: Journal, batch: Sequence[NamedSegment]) -> None:
    if batch:
        with transaction(fresh):
            load_segments(fresh, journal, batch)


def _read(journal: Journal, name: str) -> NamedSegment | Trouble:
    try:
        return NamedSegment(name, journal.read(name))
    except (WarehouseDamaged, SchemaTooNew) as error:
        return Trouble(kind=TroubleKind.SEGMENT_DAMAGED, text=str(error))


def _differences(fresh: duckdb.DuckDBPyConnection, file: Path) -> Iterator[Trouble]:
    for table in DERIVED:
        if _print_of(fresh, table) == _print_of(fresh, f"live.{table}"):
            continue
        missing = _rows_only_in(fresh, table, f"live.{table}")
        extra = _rows_only_in(fresh, f"live.{table}", table)
        yield Trouble(
            kind=TroubleKind.TABLE_DIFFERS,
            text=f"{file}, table {table}: {missing} rows of the journal are missing, "
            f"{extra} are not in the journal; {REBUILD}",
        )


def _print_of(fresh: duckdb.DuckDBPyConnection, table: str) -> object:
    """Count and two order-free sums of row hashes: equal for equal rows, however they lie."""
    return fresh.execute(f"select count(*), bit_xor(hash(t)), sum(hash(t)) from {table} t").fetchone()  # noqa: S608 - names from DERIVED


def _rows_only_in(fresh: duckdb.DuckDBPyConnection, one: str, other: str) -> int:
    sql = f"select count(*) from (select * from {one} except all select * from {other})"  # noqa: S608 - names from DERIVED
    row = fresh.execute(sql).fetchone()
    return int(row[0]) if row else 0


def _lost(count: int) -> Iterator[Trouble]:
    if count:
        yield Trouble(
            kind=TroubleKind.LOADED_ROWS_LOST,
            text=f"{count} segments that had been loaded are missing from the file (its log was torn); "
            "the journal has them: the next load brings them back",
        )


def _missing(entries: dict[str, str], names: dict[str, str]) -> Iterator[Trouble]:
    for segment_id in sorted(entries.keys() - names.keys()):
        yield Trouble(
            kind=TroubleKind.SEGMENT_MISSING,
            text=f"the segment {segment_id} is loaded but no longer in the journal: restore it from a backup, "
            "a rebuild would lose its rows",
        )


def _changed(found: NamedSegment) -> Trouble:
    return Trouble(
        kind=TroubleKind.SEGMENT_CHANGED,
        text=f"the segment {found.name} is not the one that was loaded (another hash); {REBUILD} or restore it",
    )


def _set_aside(store: Store) -> Iterator[Trouble]:
    for place in store.journal.segments.set_aside_names():
        yield Trouble(
            kind=TroubleKind.SET_ASIDE,
            text=f"{place} was damaged and set aside: its rows are not in the warehouse; restore it from a backup "
            "or delete it",
        )


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")
