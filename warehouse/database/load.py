"""Load the journal into DuckDB. Loading the same segments twice changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.plural import plural
from monitors.records.base import Record
from warehouse.database.connection import transaction
from warehouse.database.stage import (
    MOSTLY_NEW_TABLES,
    ArchiveManifest,
    Entry,
    NamedSegment,
    build_entries,
    build_entry,
    create_empty_stage,
    delete_segment_results_and_entries,
    fetch_verified_parquet,
    insert_staged_segments,
    list_current_manifests,
    parse_archive_hash,
    read_manifest,
    replace_staged_segments,
    stage_archived_segments,
)
from warehouse.journal.journal import Journal
from warehouse.journal.segments import parse_segment_id

BATCH_ROWS = 1_000
"""Maximum number of rows in one transaction. Larger batches are faster, but need more memory."""


class DamagedSegment(Record):
    """A damaged segment or archive. ``stored_at`` is the path where a person can inspect the segment or archive.

    ``is_aside`` is true for a segment, because Lookout has moved the segment to ``stored_at``. Lookout does not
    move archives: ``is_aside`` is false, and each load reports the damaged archive again.
    """

    stored_at: str
    error: str
    is_aside: bool = True

    @property
    def text(self) -> str:
        """Return the error message. For a segment that was moved, the message contains the new path."""
        return f"{self.error}; the segment was moved to {self.stored_at}" if self.is_aside else self.error


class LoadReport(Record):
    """The result of a load.

    - ``rows`` counts the loaded rows by table.
    - ``restored`` counts segments that were loaded again. The warehouse file had lost these segments because a
      machine crash damaged its log.
    - ``missing`` counts segments that were loaded once and are now in neither the file nor the journal.
    - ``swept`` counts removed temporary files.
    - ``too_new`` counts segments and archives from a newer version of Lookout, which are not loaded.
    """

    segments: int = 0
    rows: Mapping[str, int] = {}
    restored: int = 0
    missing: int = 0
    swept: int = 0
    too_new: int = 0
    damaged: tuple[DamagedSegment, ...] = ()

    def with_missing_count(self, count: int) -> LoadReport:
        """Return a copy of the report with ``count`` as the number of missing segments."""
        return self.model_copy(update={"missing": count})

    def errors(self) -> Sequence[WarehouseDamaged]:
        """Return one error for each damaged segment, and one for all missing segments together."""
        errors = [WarehouseDamaged(each.text) for each in self.damaged]
        return [*errors, WarehouseDamaged(format_segment_loss(self.missing))] if self.missing else errors


def format_segment_loss(count: int) -> str:
    """Return a message about ``count`` segments that are in neither the file nor the journal.

    The message also says how to restore these segments.
    """
    return (
        f"both the warehouse and its journal lost {plural(count, 'loaded segment')}. Restore the journal from a "
        "backup, then run `lookout warehouse rebuild`. Without a backup, run only the rebuild: this message then "
        "no longer appears, but the data remains lost"
    )


@dataclass(slots=True)
class _SkippedSegments:
    damaged: list[DamagedSegment] = field(default_factory=list[DamagedSegment])
    too_new: int = 0


def list_segments_to_load(
    connection: duckdb.DuckDBPyConnection, journal: Journal, folder: str | None = None
) -> Sequence[str]:
    """List the names of the segments that are not loaded yet, oldest first.

    ``folder`` limits the list to one folder.
    """
    names = journal.segments.list_segments(folder)
    loaded_ids = {str(row[0]) for row in connection.execute("select id from segments").fetchall()}
    return [name for name in names if parse_segment_id(name) not in loaded_ids]


def load_journal(
    connection: duckdb.DuckDBPyConnection, journal: Journal, scratch: Path, folder: str | None = None
) -> LoadReport:
    """Load the archives and the segments that are not loaded yet.

    A damaged segment is moved to the folder for damaged segments and reported. The other segments are still loaded.
    ``scratch`` is a path for a temporary copy. The caller must hold the lock. Raises `duckdb.Error` if the
    warehouse file itself fails.
    """
    rows: Counter[str] = Counter()
    left = _SkippedSegments()
    count = _load_archives(connection, journal, scratch, rows, left)
    for batch in _read_batches_or_set_aside(journal, list_segments_to_load(connection, journal, folder), left):
        for each in _load_batch(connection, journal, batch, left):
            rows.update(each.segment.header.rows)
            count += 1
    return LoadReport(segments=count, rows=dict(rows), damaged=tuple(left.damaged), too_new=left.too_new)


def insert_segments(
    connection: duckdb.DuckDBPyConnection, journal: Journal, batch: Sequence[NamedSegment], *, all_new: bool = False
) -> None:
    """Insert segments in the caller's transaction. For ``all_new``, see `insert_staged_segments`."""
    replace_staged_segments(connection, batch)
    insert_staged_segments(connection, [build_entry(each) for each in batch], journal.now(), all_new=all_new)


def list_loaded_archive_hashes(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the hashes of the archives whose rows are all in the tables."""
    return frozenset(str(row[0]) for row in connection.execute("select sha256 from archives").fetchall())


def record_loaded_archive(
    connection: duckdb.DuckDBPyConnection, journal: Journal, manifest: ArchiveManifest
) -> None:
    """Record that all rows of an archive are in the tables."""
    connection.execute(
        "insert or ignore into archives values (?, ?, ?)", [manifest.sha256, len(manifest.segments), journal.now()]
    )


def _load_archives(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    scratch: Path,
    rows: Counter[str],
    left: _SkippedSegments,
) -> int:
    done = list_loaded_archive_hashes(connection)
    count = 0
    for name in list_current_manifests(journal):
        if parse_archive_hash(name) in done:
            continue
        try:
            count += _load_archive(connection, journal, read_manifest(journal, name), scratch, rows)
        except SchemaTooNew:
            left.too_new += 1
        except WarehouseDamaged as error:
            place = journal.segments.format_location(name)
            left.damaged.append(DamagedSegment(stored_at=place, error=str(error), is_aside=False))
    return count


def _load_archive(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    manifest: ArchiveManifest,
    scratch: Path,
    rows: Counter[str],
) -> int:
    """Load the segments of an archive that are not loaded yet, and return their number.

    If the archive replaces an older archive, its changed segments are loaded again and also counted.
    """
    loaded = dict(connection.execute("select id, sha256 from segments").fetchall())
    wanted = [each for each in build_entries(manifest) if _is_absent_or_old(each, loaded, manifest)]
    ids = [each.header.id for each in wanted]
    with transaction(connection):
        if wanted:
            delete_segment_results_and_entries(
                connection, [segment_id for segment_id in ids if segment_id in loaded]
            )
            create_empty_stage(connection)
            stage_archived_segments(connection, fetch_verified_parquet(journal, manifest, scratch), ids)
            insert_staged_segments(connection, wanted, journal.now())
        record_loaded_archive(connection, journal, manifest)
    for each in wanted:
        rows.update(each.header.rows)
    return len(wanted)


def _is_absent_or_old(entry: Entry, loaded: Mapping[str, str], manifest: ArchiveManifest) -> bool:
    if entry.header.id not in loaded:
        return True
    return manifest.replaces is not None and loaded[entry.header.id] != entry.header.sha256


def _read_batches_or_set_aside(
    journal: Journal, names: Sequence[str], left: _SkippedSegments
) -> Iterator[Sequence[NamedSegment]]:
    batch: list[NamedSegment] = []
    size = 0
    for name in names:
        try:
            segment = journal.read(name)
        except FileNotFoundError:
            continue  # another process compacted or moved it since it was listed
        except SchemaTooNew:
            left.too_new += 1
            continue
        except WarehouseDamaged as error:
            left.damaged.append(_move_damaged_segment_aside(journal, name, error))
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
    left: _SkippedSegments,
) -> Sequence[NamedSegment]:
    if any(table in MOSTLY_NEW_TABLES for each in batch for table in each.segment.header.rows):
        # Some rows may be in the tables already. The segments are then inserted with a search for earlier rows.
        with suppress(duckdb.ConstraintException), transaction(connection):
            insert_segments(connection, journal, batch, all_new=True)
            return batch
    try:
        with transaction(connection):
            insert_segments(connection, journal, batch)
    except _ROW_ERRORS as error:
        return _load_one_by_one_or_set_aside(connection, journal, batch, left, error)
    return batch


_ROW_ERRORS = (duckdb.IntegrityError, duckdb.DataError)
"""Errors that one row can cause, for example a missing field or a value of the wrong type."""


def _load_one_by_one_or_set_aside(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    batch: Sequence[NamedSegment],
    left: _SkippedSegments,
    error: duckdb.Error,
) -> Sequence[NamedSegment]:
    """After a batch has failed, load its segments one by one, and return the loaded segments.

    If the batch contains only one segment, the segment is set aside as damaged and added to ``left``. ``error`` is
    the reason for the failure.
    """
    if len(batch) > 1:
        return [done for named in batch for done in _load_batch(connection, journal, [named], left)]
    name = batch[0].name
    damage = WarehouseDamaged(f"the segment {journal.segments.format_location(name)} cannot be loaded: {error}")
    left.damaged.append(_move_damaged_segment_aside(journal, name, damage))
    return []


def _move_damaged_segment_aside(journal: Journal, name: str, error: WarehouseDamaged) -> DamagedSegment:
    return DamagedSegment(stored_at=journal.segments.set_aside(name), error=str(error))
