"""Check the warehouse file: build its tables again from the journal, and compare the two versions row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import get_args

import duckdb

from monitors.errors import SchemaTooNew, WarehouseDamaged, WarehouseError
from monitors.plural import plural
from monitors.records.base import Record
from warehouse.database.connection import REBUILD_HINT, Deadline, open_connection, quote_path, transaction
from warehouse.database.database import build_database, remove_database
from warehouse.database.load import BATCH_ROWS, format_segment_loss, insert_segments, list_loaded_archive_hashes
from warehouse.database.stage import (
    Entry,
    NamedSegment,
    build_entries,
    build_entry,
    create_empty_stage,
    fetch_verified_parquet,
    insert_staged_segments,
    list_current_manifests,
    read_manifest,
    stage_archived_segments,
)
from warehouse.database.store import Store
from warehouse.journal.journal import Journal
from warehouse.journal.rows import TableName
from warehouse.journal.segments import parse_segment_id


class CheckProblemKind(StrEnum):
    """The kinds of problems that a check finds."""

    FILE_DAMAGED = "file_damaged"
    LOADED_ROWS_LOST = "loaded_rows_lost"
    TABLE_DIFFERS = "table_differs"
    SEGMENT_DAMAGED = "segment_damaged"
    SEGMENT_MISSING = "segment_missing"
    SEGMENT_CHANGED = "segment_changed"
    SET_ASIDE = "set_aside"


class CheckProblem(Record):
    """A problem that the check found, and how to fix it."""

    kind: CheckProblemKind
    text: str


@dataclass(slots=True)
class CopyReport:
    """The ids of all segments in the journal, and the problems that occurred while the segments were copied."""

    ids: set[str] = field(default_factory=set[str])
    problems: list[CheckProblem] = field(default_factory=list[CheckProblem])


def load_journal_for_comparison(
    fresh: duckdb.DuckDBPyConnection,
    journal: Journal,
    scratch: Path,
    loaded: Mapping[str, str],
    archives: AbstractSet[str],
) -> CopyReport:
    """Fill the empty tables of ``fresh`` from the journal, with the segments that the warehouse file has loaded.

    ``loaded`` maps the ids of these segments to their hashes. ``archives`` contains the hashes of the loaded
    archives. Return a report that lists all segments of the journal, and a problem for each segment that is damaged
    or has another hash than the loaded one.
    """
    copies = CopyReport()
    for name in list_current_manifests(journal, unless=lambda sha256: sha256 not in archives):
        _load_archive_for_comparison(fresh, journal, scratch, loaded, name=name, copies=copies)
    names = [name for name in journal.segments.list_segments() if parse_segment_id(name) not in copies.ids]
    for batch in _iterate_comparable_batches(journal, names, loaded, copies):
        with transaction(fresh):
            insert_segments(fresh, journal, batch)
    return copies


def _load_archive_for_comparison(
    fresh: duckdb.DuckDBPyConnection,
    journal: Journal,
    scratch: Path,
    loaded: Mapping[str, str],
    *,
    name: str,
    copies: CopyReport,
) -> None:
    try:
        manifest = read_manifest(journal, name)
        wanted = list(_select_loaded_and_report_changed(build_entries(manifest), loaded, copies))
        parquet = fetch_verified_parquet(journal, manifest, scratch)
    except WarehouseError as error:
        copies.problems.append(CheckProblem(kind=CheckProblemKind.SEGMENT_DAMAGED, text=str(error)))
        return
    with transaction(fresh):
        create_empty_stage(fresh)
        stage_archived_segments(fresh, parquet, [entry.header.id for entry in wanted])
        insert_staged_segments(fresh, wanted, journal.now())


def _iterate_comparable_batches(
    journal: Journal, names: Sequence[str], loaded: Mapping[str, str], copies: CopyReport
) -> Iterator[Sequence[NamedSegment]]:
    batch: list[NamedSegment] = []
    rows = 0
    for name in names:
        named = _read_segment_or_add_problem(journal, name, copies)
        if named is None or not list(_select_loaded_and_report_changed([build_entry(named)], loaded, copies)):
            continue
        batch.append(named)
        rows += len(named.segment.lines)
        if rows >= BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _read_segment_or_add_problem(journal: Journal, name: str, copies: CopyReport) -> NamedSegment | None:
    try:
        return NamedSegment(name, journal.read(name))
    except (WarehouseDamaged, SchemaTooNew) as error:
        copies.ids.add(parse_segment_id(name))
        copies.problems.append(CheckProblem(kind=CheckProblemKind.SEGMENT_DAMAGED, text=str(error)))
        return None


def _select_loaded_and_report_changed(
    entries: Sequence[Entry], loaded: Mapping[str, str], copies: CopyReport
) -> Iterator[Entry]:
    """Yield those ``entries`` whose segment is in ``loaded`` with the same hash.

    For a segment that was loaded with another hash, a problem is added to ``copies``.
    """
    for entry in entries:
        copies.ids.add(entry.header.id)
        if entry.header.id not in loaded:
            continue
        if loaded[entry.header.id] == entry.header.sha256:
            yield entry
        else:
            copies.problems.append(
                CheckProblem(
                    kind=CheckProblemKind.SEGMENT_CHANGED,
                    text=f"the segment {entry.name} in the journal differs from the loaded segment; "
                    f"{REBUILD_HINT}, or restore the segment from a backup",
                )
            )


DERIVED_TABLES = (
    *("grades", "metrics", "tallies"),  # the rows of assessments and runs
    *(table if table != "incidents" else "incident_history" for table in get_args(TableName)),
)
"""Tables that are derived from the segments."""


class CheckReport(Record):
    """The result of a check. ``pending`` counts segments that are not loaded yet, which is not a problem."""

    loaded: int
    pending: int
    problems: tuple[CheckProblem, ...]

    @property
    def is_sound(self) -> bool:
        """Return whether the check found no problem."""
        return not self.problems


def check_database(store: Store, *, wait_s: float) -> CheckReport:
    """Compare the journal with the tables, and report the differences. The check does not change anything.

    A check takes about as long as a rebuild, and locks the warehouse until it ends. Runs can still write to the
    journal. Raises `WarehouseBusy` after ``wait_s`` seconds, `WarehouseUnwritable` if there is no space for the
    copy, and `SchemaTooNew`.
    """
    try:
        with store.database.open_for_reading(wait_s):
            pass  # the file exists, is a warehouse, and has the present schema
        with store.database.hold_lock(wait_s) as deadline:
            return _compare_with_journal(store, deadline)
    except WarehouseDamaged as error:
        problem = CheckProblem(kind=CheckProblemKind.FILE_DAMAGED, text=str(error))
        return CheckReport(loaded=0, pending=len(store.journal.segments.list_segments()), problems=(problem,))


def _compare_with_journal(store: Store, deadline: Deadline) -> CheckReport:
    database = store.database
    with open_connection(database.file, deadline, read_only=True) as live:
        entries = {str(row[0]): str(row[1]) for row in live.execute("select id, sha256 from segments").fetchall()}
        archives = list_loaded_archive_hashes(live)
        missing = store.count_segments_missing_from_file(live)
    with build_database(database.file, deadline, database.schema, database.clock) as (fresh, beside):
        copies = load_journal_for_comparison(fresh, store.journal, database.scratch, entries, archives)
        problems = [
            *_report_lost_segments(missing, len(copies.ids - entries.keys()), store.count_lost_segments()),
            *_report_segments_missing_from_journal(entries, copies.ids),
            *_report_set_aside_segments(store),
            *copies.problems,
        ]
        fresh.execute(f"attach {quote_path(database.file)} as live (read_only)")
        problems += _iterate_table_differences(fresh, database.file)
        fresh.execute("detach live")
    remove_database(beside)
    return CheckReport(loaded=len(entries), pending=len(copies.ids - entries.keys()), problems=tuple(problems))


def _iterate_table_differences(fresh: duckdb.DuckDBPyConnection, file: Path) -> Iterator[CheckProblem]:
    for table in DERIVED_TABLES:
        if _fingerprint_table(fresh, table) == _fingerprint_table(fresh, f"live.{table}"):
            continue
        missing = _count_rows_only_in(fresh, table, f"live.{table}")
        extra = _count_rows_only_in(fresh, f"live.{table}", table)
        yield CheckProblem(
            kind=CheckProblemKind.TABLE_DIFFERS,
            text=f"{file}, table {table} differs from the journal: {plural(missing, 'row')} missing and "
            f"{plural(extra, 'row')} too many; {REBUILD_HINT}",
        )


def _fingerprint_table(fresh: duckdb.DuckDBPyConnection, table: str) -> object:
    """Return the row count of a table and two checksums of its rows. Equal tables have equal results."""
    return fresh.execute(f"select count(*), bit_xor(hash(t)), sum(hash(t)) from {table} t").fetchone()  # noqa: S608 - names from DERIVED


def _count_rows_only_in(fresh: duckdb.DuckDBPyConnection, table: str, other: str) -> int:
    sql = f"select count(*) from (select * from {table} except all select * from {other})"  # noqa: S608 - names from DERIVED
    row = fresh.execute(sql).fetchone()
    return int(row[0]) if row else 0


def _report_lost_segments(missing: int, pending: int, lost: int) -> Iterator[CheckProblem]:
    """Yield a problem if loaded segments are no longer in the warehouse file.

    ``missing`` is the number of these segments. ``pending`` is the number of segments in the journal that are not
    in the warehouse file. ``lost`` is the number of segments that earlier loads found in neither the warehouse file
    nor the journal.
    """
    lost += max(0, missing - pending)
    if lost:
        yield CheckProblem(kind=CheckProblemKind.LOADED_ROWS_LOST, text=format_segment_loss(lost))
    elif missing:
        yield CheckProblem(
            kind=CheckProblemKind.LOADED_ROWS_LOST,
            text=f"the warehouse file lost {plural(missing, 'loaded segment')}, because its log was damaged; "
            "the next load restores the lost data from the journal",
        )


def _report_segments_missing_from_journal(entries: dict[str, str], present: set[str]) -> Iterator[CheckProblem]:
    for segment_id in sorted(entries.keys() - present):
        yield CheckProblem(
            kind=CheckProblemKind.SEGMENT_MISSING,
            text=f"the segment {segment_id} is loaded but no longer in the journal; restore it from a backup. "
            "Until then, the warehouse file has the only copy of its rows",
        )


def _report_set_aside_segments(store: Store) -> Iterator[CheckProblem]:
    for place in store.journal.segments.list_set_aside():
        yield CheckProblem(
            kind=CheckProblemKind.SET_ASIDE,
            text=f"{place} was damaged and moved out of the journal, so its rows are not in the warehouse; restore "
            "the segment from a backup, or delete it",
        )
