"""Does the file hold what the journal says? Exactly: the tables are made anew and compared row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from monitors.errors import WarehouseDamaged
from monitors.records.base import Record
from warehouse.connection import REBUILD, Deadline, opened
from warehouse.copies import Trouble, TroubleKind, load_copies
from warehouse.load import known_archives
from warehouse.migrate import building, discard
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
    "actions",
    "action_outcomes",
    "labels",
    "case_drafts",
    "draft_outcomes",
    "silences",
    "hallucinations",
    "quarantined_lines",
    "log_cursors",
    "conversations",
    "nights",
)
"""Tables that follow from the segments alone."""


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
        archives = known_archives(live)
        lost = store.lost(live)
    with building(database.file, deadline, database.schema, database.clock) as (fresh, beside):
        copies = load_copies(fresh, store.journal, database.scratch, entries, archives)
        troubles = [*_lost(lost), *_missing(entries, copies.seen), *_set_aside(store), *copies.troubles]
        fresh.execute(f"attach '{_quoted(database.file)}' as live (read_only)")
        troubles += _differences(fresh, database.file)
        fresh.execute("detach live")
    discard(beside)
    return CheckReport(loaded=len(entries), pending=len(copies.seen - entries.keys()), troubles=tuple(troubles))


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


def _missing(entries: dict[str, str], seen: set[str]) -> Iterator[Trouble]:
    for segment_id in sorted(entries.keys() - seen):
        yield Trouble(
            kind=TroubleKind.SEGMENT_MISSING,
            text=f"the segment {segment_id} is loaded but no longer in the journal: restore it from a backup, "
            "a rebuild would lose its rows",
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
