"""The tables made anew from what the file says it has loaded, to compare it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import duckdb

from monitors.errors import SchemaTooNew, WarehouseDamaged, WarehouseError
from monitors.records.base import Record
from warehouse.archive import counting, entries_of, proven_parquet, read_manifest, stage_archived
from warehouse.connection import REBUILD, transaction
from warehouse.journal import Journal
from warehouse.load import BATCH_ROWS, load_segments
from warehouse.segment_store import segment_id_of
from warehouse.stage import Entry, NamedSegment, clear_stage, entry_of, take_in


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


@dataclass(slots=True)
class Copies:
    """What was found: the ids of all segments that are there, and what is wrong with them."""

    seen: set[str] = field(default_factory=set[str])
    troubles: list[Trouble] = field(default_factory=list[Trouble])


def load_copies(
    fresh: duckdb.DuckDBPyConnection,
    journal: Journal,
    scratch: Path,
    loaded: Mapping[str, str],
    archives: AbstractSet[str],
) -> Copies:
    """Fill empty tables from those segments that ``loaded`` (id → hash) names, archived or not.

    ``archives`` are the hashes of those that the file has: one that replaces another and waits to be loaded does
    not count yet.
    """
    copies = Copies()
    for name in counting(journal, unless=lambda sha256: sha256 not in archives):
        _copy_archive(fresh, journal, scratch, loaded, name=name, copies=copies)
    names = [name for name in journal.segments.names() if segment_id_of(name) not in copies.seen]
    for batch in _batches(journal, names, loaded, copies):
        with transaction(fresh):
            load_segments(fresh, journal, batch)
    return copies


def _copy_archive(
    fresh: duckdb.DuckDBPyConnection,
    journal: Journal,
    scratch: Path,
    loaded: Mapping[str, str],
    *,
    name: str,
    copies: Copies,
) -> None:
    try:
        manifest = read_manifest(journal, name)
        wanted = list(_as_loaded(entries_of(manifest), loaded, copies))
        parquet = proven_parquet(journal, manifest, scratch)
    except WarehouseError as error:
        copies.troubles.append(Trouble(kind=TroubleKind.SEGMENT_DAMAGED, text=str(error)))
        return
    with transaction(fresh):
        clear_stage(fresh)
        stage_archived(fresh, parquet, [entry.header.id for entry in wanted])
        take_in(fresh, wanted, journal.now())


def _batches(
    journal: Journal, names: Sequence[str], loaded: Mapping[str, str], copies: Copies
) -> Iterator[Sequence[NamedSegment]]:
    batch: list[NamedSegment] = []
    rows = 0
    for name in names:
        found = _read(journal, name, copies)
        if found is None or not list(_as_loaded([entry_of(found)], loaded, copies)):
            continue
        batch.append(found)
        rows += len(found.segment.lines)
        if rows >= BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _read(journal: Journal, name: str, copies: Copies) -> NamedSegment | None:
    try:
        return NamedSegment(name, journal.read(name))
    except (WarehouseDamaged, SchemaTooNew) as error:
        copies.seen.add(segment_id_of(name))
        copies.troubles.append(Trouble(kind=TroubleKind.SEGMENT_DAMAGED, text=str(error)))
        return None


def _as_loaded(entries: Sequence[Entry], loaded: Mapping[str, str], copies: Copies) -> Iterator[Entry]:
    """Those that the file has with the same hash; another hash is a trouble."""
    for entry in entries:
        copies.seen.add(entry.header.id)
        if entry.header.id not in loaded:
            continue
        if loaded[entry.header.id] == entry.header.sha256:
            yield entry
        else:
            copies.troubles.append(_changed(entry))


def _changed(entry: Entry) -> Trouble:
    return Trouble(
        kind=TroubleKind.SEGMENT_CHANGED,
        text=f"the segment {entry.name} is not the one that was loaded (another hash); {REBUILD} or restore it",
    )
