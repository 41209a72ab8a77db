"""Rebuild the warehouse file from the journal.

The old file is saved beside the new file. Rows that the journal lacks are copied from the old file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

from monitors.errors import WarehouseDamaged, WarehouseError
from monitors.plural import plural
from monitors.records.base import Record
from monitors.storage import build_unwritable_error, move
from warehouse.database.connection import Deadline, open_connection, quote_path, transaction
from warehouse.database.database import (
    Database,
    Ledger,
    build_database,
    build_ledger_path,
    build_wal_path,
    is_duckdb_file,
    read_ledger,
    remove_database,
    write_ledger,
)
from warehouse.database.load import LoadReport, load_journal
from warehouse.database.store import Store

DEPENDENT_TABLES: Mapping[str, tuple[tuple[str, ...], Sequence[str]]] = {
    "assessments": (("run_id", "case_id", "repeat"), ("grades",)),
    "runs": (("run_id",), ("metrics", "tallies")),
}
"""Maps each table to the tables whose rows depend on it, and to the columns that identify the dependent rows.

The dependent rows have no segment id. For example, a row of ``grades`` belongs to the row of ``assessments`` with
the same run, case and repeat.
"""

_IN_MEMORY = Path(":memory:")


class MissingSegment(Record):
    """A segment that was loaded earlier and can no longer be read from the journal.

    ``rows`` is the number of rows in the segment, and ``restored_rows`` is the number of these rows that were
    copied from the old file.
    """

    name: str
    rows: int
    restored_rows: int = 0

    @property
    def text(self) -> str:
        """Return a message that describes the lost rows and the next step."""
        return (
            f"the segment {self.name} is no longer readable in the journal. {self.restored_rows} of "
            f"{plural(self.rows, 'row')} were restored from the old file. Restore the segment from a backup, then "
            "rebuild again"
        )


@dataclass(frozen=True, slots=True)
class OldFile:
    """The data that only the old warehouse file contains.

    - ``missing_by_id`` contains the segments that are missing from the journal.
    - ``loaded`` contains the ids of all segments that the old file had loaded.
    - ``copy`` is the file with the copied rows of the missing segments.
    - ``unread`` is the reason why the old file could not be read, or ``None``.
    """

    missing_by_id: Mapping[str, MissingSegment]
    loaded: frozenset[str] = frozenset()
    copy: Path | None = None
    unread: str | None = None

    @property
    def missing(self) -> tuple[MissingSegment, ...]:
        """Return the segments that are missing from the journal, oldest first."""
        return tuple(self.missing_by_id[segment_id] for segment_id in sorted(self.missing_by_id))


def copy_rows_missing_from_journal(database: Database, deadline: Deadline, have: AbstractSet[str]) -> OldFile:
    """Copy the rows that the journal lacks from the old file to the scratch file.

    Return an `OldFile` that describes both files.

    ``have`` contains the ids of the segments that the journal still has. The caller must hold the lock.
    """
    remove_database(database.scratch)
    if not database.file.exists():
        return OldFile({})
    if not is_duckdb_file(database.file):
        return OldFile({}, unread="the old file is not a DuckDB file")
    try:
        with open_connection(_IN_MEMORY, deadline, read_only=False) as reader:
            return _copy_from_old_file(reader, database, have)
    except (duckdb.Error, WarehouseError) as error:
        return OldFile({}, unread=str(error).replace(str(_IN_MEMORY), str(database.file)))


def _copy_from_old_file(reader: duckdb.DuckDBPyConnection, database: Database, have: AbstractSet[str]) -> OldFile:
    reader.execute(f"attach {quote_path(database.file)} as old (read_only)")
    rows = reader.execute("select id, name, rows from old.segments").fetchall()
    missing = {
        str(segment_id): MissingSegment(name=str(name), rows=sum(json.loads(counts).values()))
        for segment_id, name, counts in rows
        if segment_id not in have
    }
    if not missing:
        return OldFile(missing)
    reader.execute(f"attach {quote_path(database.scratch)} as salvaged")
    _copy_segments(reader, list(missing))
    return OldFile(missing, frozenset(str(row[0]) for row in rows), database.scratch)


def _copy_segments(reader: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> None:
    """Copy the segments ``ids`` from the old file: their entries, and their rows with all dependent rows.

    `DEPENDENT_TABLES` lists the tables whose rows depend on rows of another table.
    """
    reader.execute(
        "create table salvaged.segments as select * from old.segments where id in (select unnest(?))", [ids]
    )
    for table in _list_segment_tables(reader, "old"):
        reader.execute(
            f"create table salvaged.{table} as select * from old.{table} where segment_id in (select unnest(?))",  # noqa: S608 - names of the schema
            [ids],
        )
    for table, (columns, followers) in DEPENDENT_TABLES.items():
        for follower in followers:
            reader.execute(
                f"create table salvaged.{follower} as select f.* from old.{follower} f "  # noqa: S608 - names of the schema
                f"semi join salvaged.{table} using ({', '.join(columns)})"
            )


def restore_rows_of_old_file(connection: duckdb.DuckDBPyConnection, old: OldFile) -> tuple[MissingSegment, ...]:
    """Insert the copied rows into the new file.

    Returns the missing segments, with the number of rows restored for each.
    """
    if old.copy is None:
        return old.missing
    connection.execute(f"attach {quote_path(old.copy)} as salvaged (read_only)")
    try:
        with transaction(connection):
            restored = _restore_tables(connection, old)
    finally:
        connection.execute("detach salvaged")
    return tuple(
        segment.model_copy(update={"restored_rows": restored.get(key, 0)})
        for key, segment in sorted(old.missing_by_id.items())
    )


def _restore_tables(connection: duckdb.DuckDBPyConnection, old: OldFile) -> Mapping[str, int]:
    restored: dict[str, int] = {}
    connection.execute(
        "create or replace temp table was_loaded as select unnest(?::varchar[]) as id", [list(old.loaded)]
    )
    for table in _list_segment_tables(connection, "salvaged"):
        _restore_table_and_dependents(connection, table)
        counts = connection.execute("select segment_id, count(*) from taken group by all").fetchall()
        for segment_id, count in counts:
            restored[segment_id] = restored.get(segment_id, 0) + count
    connection.execute("insert into segments by name select * from salvaged.segments")
    return restored


def _restore_table_and_dependents(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Insert the copied rows of a table, and the rows that depend on them.

    Rows of segments that the old file had not loaded are newer, and are not replaced by copied rows.
    """
    keys = ", ".join(f'"{column}"' for column in _find_primary_key(connection, table))
    connection.execute(
        f"create or replace temp table taken as select c.* from salvaged.{table} c anti join "  # noqa: S608 - names of the schema
        f"(select * from {table} where segment_id not in (select id from was_loaded)) using ({keys})"
    )
    columns, followers = DEPENDENT_TABLES.get(table, ((), ()))
    for follower in followers:
        same = " and ".join(f"f.{column} = t.{column}" for column in columns)
        connection.execute(f"delete from {follower} f using taken t where {same}")  # noqa: S608 - names of the schema
    connection.execute(f"insert or replace into {table} by name select * from taken")  # noqa: S608 - names of the schema
    for follower in followers:
        connection.execute(
            f"insert into {follower} by name select f.* from salvaged.{follower} f "  # noqa: S608 - names of the schema
            f"semi join taken using ({', '.join(columns)})"
        )


def _list_segment_tables(connection: duckdb.DuckDBPyConnection, database: str) -> Sequence[str]:
    """Return the names of the tables in ``database`` that have a column ``segment_id``."""
    result = connection.execute(
        "select c.table_name from duckdb_columns() c join duckdb_tables() t using (table_oid, database_name)"
        " where c.database_name = ? and c.column_name = 'segment_id' and not t.temporary order by all",
        [database],
    )
    return [str(row[0]) for row in result.fetchall()]


def _find_primary_key(connection: duckdb.DuckDBPyConnection, table: str) -> Sequence[str]:
    row = connection.execute(
        "select constraint_column_names from duckdb_constraints() where database_name = current_database()"
        " and table_name = ? and constraint_type = 'PRIMARY KEY'",
        [table],
    ).fetchone()
    return list(row[0]) if row else []


class RebuildReport(Record):
    """The result of a rebuild.

    - ``stored_at`` is the path at which the old file was saved.
    - ``missing`` lists segments that are no longer in the journal.
    - ``unknown`` counts missing segments that could not be identified.
    - ``unread`` is the reason why the old file could not be read, or ``None``.
    - ``set_aside`` lists the paths of damaged segments.
    """

    loaded: LoadReport
    stored_at: str | None
    missing: tuple[MissingSegment, ...] = ()
    unknown: int = 0
    unread: str | None = None
    set_aside: tuple[str, ...] = ()

    @property
    def has_all_data(self) -> bool:
        """Return whether the new file contains all data that Lookout ever stored."""
        return not (self.missing or self.unknown or self.set_aside or self.loaded.damaged or self.loaded.too_new)

    def errors(self) -> Sequence[WarehouseDamaged]:
        """Return one error for each damaged or missing segment."""
        errors = [*self.loaded.errors(), *(WarehouseDamaged(segment.text) for segment in self.missing)]
        if self.unknown:
            summary = f"the old file had {plural(self.unknown, 'more segment')} than the journal"
            reason = self.unread or "the old file does not list these segments"
            errors.append(
                WarehouseDamaged(
                    f"{summary}, and their names are unknown ({reason}); restore the journal from a backup"
                )
            )
        return errors


def rebuild_database(store: Store, *, wait_s: float, journal_only: bool = False) -> RebuildReport:
    """Rebuild the warehouse file from the journal, even if the old file is damaged or missing.

    Readers see the old file until the new file is complete. The old file is then saved under a name that contains
    the time. Rows that only the old file has are copied to the new file, unless ``journal_only`` is true. Raises
    `WarehouseBusy` after ``wait_s`` seconds, and `WarehouseUnwritable`. After such an error, the old file is
    unchanged.
    """
    database = store.database
    with database.hold_lock(wait_s) as deadline:
        try:
            with build_database(database.file, deadline, database.schema, database.clock) as (connection, beside):
                report = _load_journal_and_old_file(store, connection, deadline, journal_only=journal_only)
                ledger = store.build_ledger(connection)
            backup = _replace_file_keeping_backup(database.file, beside, store.clock())
        except OSError as error:
            raise build_unwritable_error(database.file, error) from error
        finally:
            remove_database(database.scratch)
        write_ledger(database.file, ledger)
    return report.model_copy(update={"stored_at": str(backup) if backup else None})


def _load_journal_and_old_file(
    store: Store, connection: duckdb.DuckDBPyConnection, deadline: Deadline, *, journal_only: bool
) -> RebuildReport:
    database = store.database
    ledger = read_ledger(database.file)
    loaded = load_journal(connection, store.journal, database.scratch)
    have = {str(row[0]) for row in connection.execute("select id from segments").fetchall()}
    old = copy_rows_missing_from_journal(database, deadline, have)
    missing = () if journal_only else restore_rows_of_old_file(connection, old)
    return RebuildReport(
        loaded=loaded,
        stored_at=None,
        missing=missing or old.missing,
        unknown=_count_segments_found_nowhere(ledger, old, len(have)),
        unread=old.unread,
        set_aside=tuple(store.journal.segments.list_set_aside()),
    )


def _count_segments_found_nowhere(ledger: Ledger | None, old: OldFile, have: int) -> int:
    """Return how many of the segments that the ledger counts are in neither the journal nor the old file."""
    if ledger is None:
        return 0
    return max(0, ledger.segments + ledger.lost - have - len(old.missing))


def _replace_file_keeping_backup(file: Path, beside: Path, now: datetime) -> Path | None:
    """Save the old file, and move the new file to its final path. Return the path of the saved old file.

    The log of the old file is moved first, because DuckDB would otherwise apply this log to the new file. Old files
    that earlier rebuilds saved are deleted.
    """
    earlier = [path for path in file.parent.glob(f"{file.name}.before-*") if path.is_file()]
    backup = file.with_name(f"{file.name}.before-{now:%Y%m%dT%H%M%S.%fZ}") if file.exists() else None
    log = build_wal_path(file)
    if backup is not None and file.is_dir():
        move(file, backup)
    elif backup is not None:
        os.link(file, backup)
        if log.exists():
            move(log, build_wal_path(backup))
    log.unlink(missing_ok=True)
    build_ledger_path(file).unlink(missing_ok=True)
    move(beside, file)
    if backup is not None and backup.is_file():
        for path in earlier:
            path.unlink(missing_ok=True)
    return backup
