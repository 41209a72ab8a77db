"""Personal data ages out first (W6): texts are emptied, ids of real conversations become pseudonyms.

Verdicts, scores, timings and everything that trends are made of stays. Old segments are archived, the archive is
replaced by one without personal data, and the tables are filled from that: journal and tables say the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from importlib import resources
from itertools import groupby
from pathlib import Path

import duckdb

from monitors.records.base import Record
from warehouse.archive import (
    ArchivedSegment,
    Manifest,
    file_sha256,
    manifests,
    proven_parquet,
    stage_archived,
)
from warehouse.compact import compact, publish, write_parquet
from warehouse.journal import Journal
from warehouse.load import load
from warehouse.segment import SegmentLine, first_id_at, line_of
from warehouse.stage import clear_stage
from warehouse.store import Store

SHORTEST_KEY = 16
"""Bytes: a shorter key could be found by trying."""


class AgeReport(Record):
    """What was aged: archives and the segments in them."""

    archives: int
    segments: int


def age(store: Store, *, before: datetime, key: bytes, wait_s: float) -> AgeReport:
    """Remove personal data from everything written before a time.

    Answers, questions, partial texts, attempts' details and paths of screenshots and traces go, texts of log
    entries, and of drawn conversations all but what is counted: when it ended, its stratum, how likely it was to be
    drawn. The id that it was taken under stays, so that it is not taken again. Ids of traffic in results and what
    hangs on them become ``p-`` and 24 hexadecimal digits of SHA-256 over ``key`` and the id: the same id stays the
    same, nobody without the key can find it. Keep ``key`` (16 random bytes or more) and use it every time.

    An archive is aged when its youngest segment is old enough. Killed at any moment, the next load finishes. Free
    blocks of the database file may still hold old text, as do files that a rebuild kept: a rebuild makes a
    clean file, the kept ones are a person's to delete. Raises as `compact` does, `ValueError` for a short key.
    """
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"the key for pseudonyms needs {SHORTEST_KEY} bytes or more, got {len(key)}")
    compact(store, before=before, wait_s=wait_s, unfinished=True)
    limit = first_id_at(before)
    segments = archives = 0
    with store.database.writing(wait_s) as connection:
        for manifest in manifests(store.journal):
            if manifest.replaces is None and max(each.header.id for each in manifest.segments) < limit:
                _age_archive(connection, store.journal, manifest, key, store.database.scratch)
                archives += 1
                segments += len(manifest.segments)
        load(connection, store.journal, store.database.scratch)
        store.remember(connection)
    compact(store, before=before, wait_s=wait_s, unfinished=True)  # the replaced archives go
    return AgeReport(archives=archives, segments=segments)


def _age_archive(
    connection: duckdb.DuckDBPyConnection, journal: Journal, manifest: Manifest, key: bytes, scratch: Path
) -> None:
    clear_stage(connection)
    parquet = proven_parquet(journal, manifest, scratch)
    stage_archived(connection, parquet, [each.header.id for each in manifest.segments])
    connection.execute(
        "create or replace temp macro pseudonym(id) as"
        " if(starts_with(id, 'p-') and length(id) = 26, id, 'p-' || left(sha256(getvariable('key') || id), 24))"
    )
    connection.execute("set variable key = ?", [key.hex()])
    connection.execute(
        "create or replace temp table real_traffic as select distinct run_id from results where origin <> 'probe'"
    )
    connection.execute(resources.files("warehouse").joinpath("aging.sql").read_text("utf-8"))
    connection.execute("reset variable key")
    hashes = dict(_hashes(connection))
    scratch.unlink(missing_ok=True)
    write_parquet(connection, scratch, replaces=manifest.sha256)
    aged = Manifest(
        sha256=file_sha256(scratch),
        replaces=manifest.sha256,
        segments=tuple(_with_hash(each, hashes[each.header.id]) for each in manifest.segments),
    )
    publish(journal, aged, scratch)


def _hashes(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """The hash that each staged segment's body has now."""
    rows = connection.execute("select segment_id, table_name, row_json from staged order by segment_id, position")
    for segment_id, lines in groupby(_every(rows), key=lambda row: str(row[0])):
        body = hashlib.sha256()
        for _, table, row in lines:
            body.update(line_of(SegmentLine(str(table), str(row).encode())) + b"\n")
        yield segment_id, body.hexdigest()


def _every(rows: duckdb.DuckDBPyConnection) -> Iterator[tuple[object, ...]]:
    while batch := rows.fetchmany(10_000):
        yield from batch


def _with_hash(each: ArchivedSegment, sha256: str) -> ArchivedSegment:
    return each.model_copy(update={"header": each.header.model_copy(update={"sha256": sha256})})
