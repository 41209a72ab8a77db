"""Insert the lines of segments into tables, in the caller's transaction.

Old segments are in Parquet archives. An archive consists of a Parquet file of lines, and of a manifest that lists
the segments. The manifest is written last. A Parquet file without a manifest is ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Self, get_args

import duckdb
from pydantic import Field, ValidationError, model_validator

from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.records.base import Record, Sha256
from warehouse.journal.journal import Journal
from warehouse.journal.rows import TableName
from warehouse.journal.segments import Segment, SegmentHeader

TABLES: Sequence[str] = get_args(TableName)

MOSTLY_NEW_TABLES = frozenset({"conversations", "hallucinations"})
"""Tables with millions of rows that need not be searched for earlier versions of new rows.

Except after a killed run, each row of these tables is inserted only once. In all other tables, DuckDB searches for
earlier versions before it inserts a batch. In these large tables, the search would make every nightly load slower.
"""

_STAGED = """
create or replace temp table staged (
  segment_id varchar not null, position integer not null, table_name varchar not null, row_json json not null
)
"""

_ENTRY_COLUMNS = ["id", "name", "run_id", "rows", "sha256", "size_bytes", "loaded_at"]


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A segment with its name in the journal."""

    name: str
    segment: Segment


@dataclass(frozen=True, slots=True)
class Entry:
    """A row in the table of segments."""

    header: SegmentHeader
    name: str
    size_bytes: int


def build_entry(named: NamedSegment) -> Entry:
    """Build a segment's row for the table of segments."""
    return Entry(named.segment.header, named.name, named.segment.size_bytes)


def create_empty_stage(connection: duckdb.DuckDBPyConnection) -> None:
    """Create an empty staging table."""
    connection.execute(_STAGED)


def replace_staged_segments(connection: duckdb.DuckDBPyConnection, batch: Sequence[NamedSegment]) -> None:
    """Replace the content of the staging table with the lines of the segments in ``batch``."""
    create_empty_stage(connection)
    with connection.appender("staged") as appender:
        appender.append_rows(
            (named.segment.header.id, position, line.table, line.row_json.decode())
            for named in batch
            for position, line in enumerate(named.segment.lines)
        )


def insert_staged_segments(
    connection: duckdb.DuckDBPyConnection, entries: Sequence[Entry], now: datetime, *, all_new: bool = False
) -> None:
    """Insert the staged lines into the tables, and add the segments to the table of segments.

    If ``all_new`` is true, the function does not search for earlier rows in `MOSTLY_NEW_TABLES`. If an earlier row
    exists, the insert raises `duckdb.ConstraintException`, and the caller must roll back the transaction.
    """
    filled_tables = {table for entry in entries for table in entry.header.rows}
    for table in TABLES:
        if table in filled_tables:
            connection.execute(
                _build_plain_insert_sql(table)
                if all_new and table in MOSTLY_NEW_TABLES
                else _read_extract_sql(table)
            )
    with connection.appender("segments", columns=_ENTRY_COLUMNS) as appender:
        appender.append_rows(
            (
                entry.header.id,
                entry.name,
                entry.header.run_id,
                json.dumps(dict(entry.header.rows)),
                entry.header.sha256,
                entry.size_bytes,
                now,
            )
            for entry in entries
        )


def delete_segment_results_and_entries(connection: duckdb.DuckDBPyConnection, segment_ids: Sequence[str]) -> None:
    """Delete the assessments, grades, results and entries of these segments, so that they can be loaded again."""
    ids = list(segment_ids)
    connection.execute("create or replace temp table aged as select unnest(?::varchar[]) as id", [ids])
    connection.execute(
        "delete from grades g using assessments a where a.segment_id in (select id from aged)"
        " and g.run_id = a.run_id and g.case_id = a.case_id and g.repeat = a.repeat"
    )
    for table in ("assessments", "results"):
        connection.execute(f"delete from {table} where segment_id in (select id from aged)")  # noqa: S608 - two names
    connection.execute("delete from segments where id in (select id from aged)")


@cache
def _read_extract_sql(table: str) -> str:
    extracts = resources.files("warehouse") / "extracts"
    of_table = (extracts.joinpath(*folder, f"{table}.sql") for folder in ((), ("alerting",), ("live",)))
    return next(file for file in of_table if file.is_file()).read_text("utf-8")


_EARLIER = "-- rows of earlier loads:"
"""The line in an SQL file after which the statement also reads the rows of earlier loads."""


@cache
def _build_plain_insert_sql(table: str) -> str:
    incoming = _read_extract_sql(table).partition(_EARLIER)[0]
    return f"{incoming}\ninsert into {table} by name select * exclude (position) from incoming"  # noqa: S608 - ours


ARCHIVE_FOLDER = "_archive"
MANIFEST = ".manifest.json"
AGED = ".aged.json"
"""File ending of a manifest that replaces the manifest of another archive."""
PARTLY_AGED = f".partly{AGED}"
"""File ending of a replacing manifest, if the personal data of only some of the conversations was removed."""

PARQUET = ".parquet"
FORMAT_VERSION = 1


class ArchivedSegment(Record):
    """A segment in an archive: its header, its name in the journal, and its original size."""

    header: SegmentHeader
    name: str
    size_bytes: int


class ArchiveManifest(Record):
    """The contents of an archive. ``sha256`` is the hash of the Parquet file.

    If personal data was removed, ``replaces`` is the hash of the previous archive of the same segments, which is
    then ignored.
    """

    lookout_archive: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    sha256: Sha256
    replaces: Sha256 | None = None
    segments: tuple[ArchivedSegment, ...]

    @model_validator(mode="after")
    def _refuse_replacing_itself(self) -> Self:
        if self.replaces == self.sha256:
            raise ValueError("an archive cannot replace itself")
        return self

    @property
    def parquet(self) -> str:
        """Return the file name of the Parquet file in the journal."""
        return f"{ARCHIVE_FOLDER}/{self.sha256}{PARQUET}"

    @property
    def name(self) -> str:
        """Return the file name of the manifest in the journal."""
        return f"{ARCHIVE_FOLDER}/{self.sha256}{MANIFEST if self.replaces is None else AGED}"


def list_current_manifests(journal: Journal, *, unless: Callable[[str], bool] = lambda _: False) -> Sequence[str]:
    """Return the names of all valid manifests, except those that another manifest has replaced.

    ``unless`` is called with the archive hash of each replacing manifest. If ``unless`` returns true, the replacing
    manifest is ignored, and the replaced manifest is listed instead.
    """
    aged = [
        name for name in journal.segments.list_files(ARCHIVE_FOLDER, AGED) if not unless(parse_archive_hash(name))
    ]
    replaced = {read_manifest(journal, name).replaces for name in aged}
    return [
        name
        for name in [*journal.segments.list_files(ARCHIVE_FOLDER, MANIFEST), *aged]
        if parse_archive_hash(name) not in replaced
    ]


def parse_archive_hash(name: str) -> str:
    """Parse the hash from the name of a manifest or a Parquet file."""
    return name.rpartition("/")[2].partition(".")[0]


def read_manifest(journal: Journal, name: str) -> ArchiveManifest:
    """Read an archive's manifest. Raises `WarehouseDamaged` and `SchemaTooNew`."""
    place = journal.segments.format_location(name)
    try:
        manifest = ArchiveManifest.model_validate_json(journal.segments.read(name))
    except ValidationError:
        raise WarehouseDamaged(
            f"the manifest {place} of an archive cannot be read; restore it from a backup"
        ) from None
    if manifest.lookout_archive > FORMAT_VERSION:
        raise SchemaTooNew(f"the archive {place} was written by a newer version of Lookout; update Lookout")
    return manifest


def build_entries(manifest: ArchiveManifest) -> Sequence[Entry]:
    """Build the rows of an archive's segments for the table of segments."""
    return [Entry(archived.header, archived.name, archived.size_bytes) for archived in manifest.segments]


def fetch_verified_parquet(journal: Journal, manifest: ArchiveManifest, scratch: Path) -> Path:
    """Return the archive's Parquet file, after verifying its hash. Raises `WarehouseDamaged`."""
    place = journal.segments.format_location(manifest.parquet)
    try:
        file = journal.segments.fetch_file(manifest.parquet, scratch)
    except FileNotFoundError:
        raise WarehouseDamaged(f"the archive {place} is missing; restore it from a backup") from None
    if hash_file(file) != manifest.sha256:
        raise WarehouseDamaged(f"the archive {place} is damaged (its hash differs); restore it from a backup")
    return file


def stage_archived_segments(connection: duckdb.DuckDBPyConnection, file: Path, segment_ids: Sequence[str]) -> None:
    """Add the lines of these segments from an archive to the staging table."""
    connection.execute(
        "insert into staged select segment_id, position, table_name, row_json from read_parquet(?)"
        " where segment_id in (select unnest(?::varchar[]))",
        [str(file), list(segment_ids)],
    )


def hash_file(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
