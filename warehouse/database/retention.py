"""Remove old personal data, and move old segments into Parquet archives.

Texts are deleted, and ids of real conversations are replaced with pseudonyms. Verdicts, scores and times are not
changed. A file is deleted only after its replacement has been verified and written to the disk.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Final

import duckdb

from monitors.errors import WarehouseDamaged
from monitors.records.base import Record
from warehouse.database.load import list_loaded_archive_hashes, load_journal, record_loaded_archive
from warehouse.database.snapshot import remove_snapshots
from warehouse.database.stage import (
    ARCHIVE_FOLDER,
    MANIFEST,
    PARQUET,
    PARTLY_AGED,
    ArchivedSegment,
    ArchiveManifest,
    NamedSegment,
    create_empty_stage,
    fetch_verified_parquet,
    hash_file,
    list_current_manifests,
    parse_archive_hash,
    read_manifest,
    replace_staged_segments,
    stage_archived_segments,
)
from warehouse.database.store import Store
from warehouse.journal.journal import SUITES, Journal
from warehouse.journal.segments import SegmentLine, build_lower_bound_id, format_line, parse_segment_id

MAX_ARCHIVE_ROWS = 200_000
"""Maximum number of rows in an archive. The size of such an archive is some tens of megabytes."""


class CompactReport(Record):
    """The result of a compaction: the number of moved segments, their size, and the size of the new archives."""

    segments: int = 0
    archives: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


def compact_segments(store: Store, *, before: datetime, wait_s: float, unfinished: bool = False) -> CompactReport:
    """Move segments that were written before the time ``before`` into Parquet archives.

    Segments of an unfinished run are not moved, because a resumed run reads them. If ``unfinished`` is true, these
    segments are also moved. If the process is killed, every segment is still in the journal or in an archive.
    Raises `WarehouseBusy` after ``wait_s`` seconds, `WarehouseUnwritable`, and `WarehouseDamaged`.
    """
    scratch = store.database.scratch
    report = CompactReport()
    with store.database.open_for_writing(wait_s) as connection:
        load_journal(connection, store.journal, scratch)
        store.save_ledger_if_complete(connection)
        scratch.unlink(missing_ok=True)
        _remove_superseded_files(store.journal, scratch, list_loaded_archive_hashes(connection))
        for batch in _iterate_archive_batches(
            store.journal, _list_old_segments(connection, store.journal, before, unfinished=unfinished)
        ):
            report = _sum_reports(report, _archive_batch(connection, store.journal, batch, scratch))
    return report


def _list_old_segments(
    connection: duckdb.DuckDBPyConnection, journal: Journal, before: datetime, *, unfinished: bool
) -> Sequence[str]:
    limit = build_lower_bound_id(before)
    rows = connection.execute(
        "select id from segments s where $unfinished or run_id is null"
        " or exists (select 1 from runs r where r.run_id = s.run_id and not r.interrupted)"
        " or exists (select 1 from nightly_runs n where n.run_id = s.run_id)"
        " or exists (select 1 from repeatability_runs p where p.run_id = s.run_id)",
        {"unfinished": unfinished},
    ).fetchall()
    free = {str(row[0]) for row in rows}
    names = [name for name in journal.segments.list_segments() if not name.startswith(f"{SUITES}/")]
    return [name for name in names if parse_segment_id(name) < limit and parse_segment_id(name) in free]


def _iterate_archive_batches(journal: Journal, names: Sequence[str]) -> Iterator[Sequence[NamedSegment]]:
    batch: list[NamedSegment] = []
    rows = 0
    for name in names:
        try:
            segment = journal.read(name)
        except WarehouseDamaged:
            continue  # the segment was intact when it was loaded, and `lookout warehouse check` reports the damage
        batch.append(NamedSegment(name, segment))
        rows += len(segment.lines)
        if rows >= MAX_ARCHIVE_ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _archive_batch(
    connection: duckdb.DuckDBPyConnection, journal: Journal, batch: Sequence[NamedSegment], scratch: Path
) -> CompactReport:
    replace_staged_segments(connection, batch)
    write_verified_parquet(connection, scratch)
    manifest = ArchiveManifest(
        sha256=hash_file(scratch),
        segments=tuple(
            ArchivedSegment(header=named.segment.header, name=named.name, size_bytes=named.segment.size_bytes)
            for named in batch
        ),
    )
    size = scratch.stat().st_size
    store_archive(journal, manifest, scratch)
    record_loaded_archive(connection, journal, manifest)
    for named in batch:
        journal.segments.delete(named.name)
    before = sum(named.segment.size_bytes for named in batch)
    return CompactReport(segments=len(batch), archives=1, bytes_before=before, bytes_after=size)


def write_verified_parquet(connection: duckdb.DuckDBPyConnection, file: Path, *, replaces: str = "") -> None:
    """Write the staged lines to a Parquet file, then read the file and compare it with the staged lines.

    Raises `WarehouseDamaged` if the lines in the file differ. ``replaces`` is the hash of the archive that the new
    archive replaces.
    """
    target = str(file).replace("'", "''")
    sql = (
        f"copy (select * from staged order by segment_id, position) to '{target}'"  # noqa: S608 - a file of ours, quoted
        f" (format parquet, codec zstd, kv_metadata {{replaces: '{replaces}'}})"
    )
    connection.execute(sql)
    same = connection.execute(
        "select (select (count(*), bit_xor(hash(s)), sum(hash(s))) from staged s)"
        " = (select (count(*), bit_xor(hash(p)), sum(hash(p))) from read_parquet(?) p)",
        [str(file)],
    ).fetchone()
    if same != (True,):
        raise WarehouseDamaged(
            f"{file} differs from the data that was written; check the disk. Lookout did not remove any data"
        )


def store_archive(journal: Journal, manifest: ArchiveManifest, file: Path, *, name: str | None = None) -> None:
    """Store an archive, then its manifest under ``name``. The archive is valid once the manifest exists."""
    journal.segments.move_file_in(manifest.parquet, file)
    journal.segments.write(name or manifest.name, manifest.model_dump_json().encode())


def _remove_superseded_files(journal: Journal, scratch: Path, loaded: AbstractSet[str]) -> None:
    """Remove segments that are also in an archive, and archives that have been replaced or have no manifest."""
    names = list_current_manifests(journal, unless=lambda sha256: sha256 not in loaded)
    current = [read_manifest(journal, name) for name in names]
    segments_by_id = {parse_segment_id(name): name for name in journal.segments.list_segments()}
    for manifest in current:
        doubled = [
            segments_by_id[archived.header.id]
            for archived in manifest.segments
            if archived.header.id in segments_by_id
        ]
        if doubled:
            fetch_verified_parquet(journal, manifest, scratch)
        for name in doubled:
            journal.segments.delete(name)
    current_hashes = {manifest.sha256 for manifest in current}
    for suffix in (MANIFEST, PARQUET):
        for name in journal.segments.list_files(ARCHIVE_FOLDER, suffix):
            if parse_archive_hash(name) not in current_hashes:
                journal.segments.delete(name)


def _sum_reports(first: CompactReport, second: CompactReport) -> CompactReport:
    return CompactReport(
        segments=first.segments + second.segments,
        archives=first.archives + second.archives,
        bytes_before=first.bytes_before + second.bytes_before,
        bytes_after=first.bytes_after + second.bytes_after,
    )


MIN_KEY_LENGTH = 16
"""Minimum length of the key in bytes. A shorter key could be guessed."""


class AgeReport(Record):
    """The number of archives and segments from which personal data was removed."""

    archives: int
    segments: int


def remove_personal_data(store: Store, *, before: datetime, key: bytes, wait_s: float) -> AgeReport:
    """Remove the personal data from all records that were written before the time ``before``.

    The function removes questions, answers, partial texts, details of attempts, paths of screenshots and traces,
    and texts of log entries. Counts, times, strata and sampling probabilities are not changed.

    Ids of live traffic are replaced by pseudonyms: ``p-`` and 24 hexadecimal digits of a SHA-256 over ``key`` and
    the id. The same id always gets the same pseudonym, and the id cannot be found without the key. Store ``key``
    (at least 16 random bytes) and use it every time.

    If the process is killed, the next load finishes the work. Free blocks of the warehouse file, and files that a
    rebuild saved, may still contain old text. To remove this text, rebuild the warehouse, and delete the saved
    files by hand. The copies of the warehouse for the site are removed. Raises the errors of `compact_segments`,
    and `ValueError` for a short key.
    """
    _require_key_length(key)
    compact_segments(store, before=before, wait_s=wait_s, unfinished=True)
    limit = build_lower_bound_id(before)
    segments = archives = 0
    with store.database.open_for_writing(wait_s) as connection:
        for name in list_current_manifests(store.journal):
            manifest = read_manifest(store.journal, name)
            if (
                _has_personal_data(name, manifest)
                and max(archived.header.id for archived in manifest.segments) < limit
            ):
                _remove_personal_data_from_archive(connection, store.journal, manifest, key, store.database.scratch)
                archives += 1
                segments += len(manifest.segments)
        load_journal(connection, store.journal, store.database.scratch)
        store.save_ledger_if_complete(connection)
    compact_segments(store, before=before, wait_s=wait_s, unfinished=True)  # remove the replaced archives
    remove_snapshots(store.database.file.parent)
    return AgeReport(archives=archives, segments=segments)


class ConversationReport(AgeReport):
    """The result for one conversation.

    ``run_ids`` lists the runs that graded the conversation. The reports of these runs may quote the conversation.
    """

    run_ids: tuple[str, ...] = ()


def remove_conversation_data(
    store: Store, conversation: str, *, case_ids: str, key: bytes, wait_s: float
) -> ConversationReport:
    """Remove the personal data of one conversation immediately.

    ``conversation`` is the stored id of the conversation. ``case_ids`` is the prefix of the case ids of its graded
    replies. Log entries that contain the id are also emptied. Raises the errors of `remove_personal_data`.
    """
    _require_key_length(key)
    ids = f"(?:{re.escape(conversation)}|{re.escape(case_ids)}[0-9]+)"
    mark = re.compile(f'"{ids}"'.encode())
    journal, scratch = store.journal, store.database.scratch
    segments = archives = 0
    with store.database.open_for_writing(wait_s) as connection:
        load_journal(connection, journal, scratch)
        runs = connection.execute(
            "select run_id from results where regexp_full_match(case_id, $ids)"
            " union select run_id from conversations where id = $id and record is not null order by 1",
            {"ids": ids, "id": conversation},
        ).fetchall()
        names = [name for name in journal.segments.list_segments() if mark.search(journal.segments.read(name))]
        for batch in _iterate_archive_batches(journal, names):
            _archive_batch(connection, journal, batch, scratch)
        for name in list_current_manifests(journal):
            manifest = read_manifest(journal, name)
            if _has_personal_data(name, manifest) and _remove_personal_data_from_archive(
                connection, journal, manifest, key, scratch, only=ids
            ):
                archives += 1
                segments += len(manifest.segments)
        load_journal(connection, journal, scratch)
        store.save_ledger_if_complete(connection)
        _remove_superseded_files(journal, scratch, list_loaded_archive_hashes(connection))
    remove_snapshots(store.database.file.parent)
    return ConversationReport(archives=archives, segments=segments, run_ids=tuple(str(row[0]) for row in runs))


_NAMES_ID: Final = """regexp_matches(row_json::varchar, '"' || getvariable('ids') || '"')"""
"""A SQL condition: a string in a staged line's JSON matches the regular expression in the variable ``ids``."""


def _has_personal_data(name: str, manifest: ArchiveManifest) -> bool:
    """Return whether the archive of this manifest still contains personal data."""
    return manifest.replaces is None or name.endswith(PARTLY_AGED)


def _require_key_length(key: bytes) -> None:
    if len(key) < MIN_KEY_LENGTH:
        raise ValueError(f"the key for pseudonyms must have at least {MIN_KEY_LENGTH} bytes, got {len(key)}")


def _remove_personal_data_from_archive(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    manifest: ArchiveManifest,
    key: bytes,
    scratch: Path,
    *,
    only: str | None = None,
) -> bool:
    """Replace an archive with a version without personal data. Return ``False`` if there was nothing to remove.

    If ``only`` is given, only lines with an id that matches this regular expression are changed.
    """
    create_empty_stage(connection)
    parquet = fetch_verified_parquet(journal, manifest, scratch)
    stage_archived_segments(connection, parquet, [archived.header.id for archived in manifest.segments])
    connection.execute(
        "create or replace temp macro pseudonym(id) as"
        " if(starts_with(id, 'p-') and length(id) = 26 or not regexp_full_match(id, getvariable('ids')), id,"
        " 'p-' || left(sha256(getvariable('key') || id), 24))"
    )
    connection.execute("set variable key = ?", [key.hex()])
    connection.execute("set variable ids = ?", [only or ".*"])
    if only is not None:
        connection.execute("create or replace temp table whole as from staged")
        connection.execute(f"delete from staged where not ({_NAMES_ID})")  # noqa: S608 - a constant
    connection.execute(
        "create or replace temp table real_traffic as select distinct run_id from results where origin <> 'probe'"
    )
    connection.execute(resources.files("warehouse").joinpath("aging.sql").read_text("utf-8"))
    connection.execute("reset variable key")
    if only is not None:
        if not connection.execute("from staged except from whole limit 1").fetchall():
            return False
        connection.execute(f"insert into staged from whole where not ({_NAMES_ID})")
    hashes = dict(_hash_segments(connection))
    scratch.unlink(missing_ok=True)
    write_verified_parquet(connection, scratch, replaces=manifest.sha256)
    aged = ArchiveManifest(
        sha256=hash_file(scratch),
        replaces=manifest.sha256,
        segments=tuple(_replace_hash(archived, hashes[archived.header.id]) for archived in manifest.segments),
    )
    partly = f"{ARCHIVE_FOLDER}/{aged.sha256}{PARTLY_AGED}" if only is not None else None
    store_archive(journal, aged, scratch, name=partly)
    return True


def _hash_segments(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """Yield the id of each staged segment, and the hash of its current lines."""
    rows = connection.execute("select segment_id, table_name, row_json from staged order by segment_id, position")
    for segment_id, lines in groupby(_iterate_rows(rows), key=lambda row: str(row[0])):
        body = hashlib.sha256()
        for _, table, row in lines:
            body.update(format_line(SegmentLine(str(table), str(row).encode())) + b"\n")
        yield segment_id, body.hexdigest()


def _iterate_rows(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[object, ...]]:
    while batch := result.fetchmany(10_000):
        yield from batch


def _replace_hash(archived: ArchivedSegment, sha256: str) -> ArchivedSegment:
    return archived.model_copy(update={"header": archived.header.model_copy(update={"sha256": sha256})})
