"""A new warehouse file from the journal, swapped in atomically; the old one is kept beside."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from monitors.records.base import Record
from warehouse.ledger import ledger_path, write_ledger
from warehouse.load import LoadReport, load
from warehouse.migrate import building
from warehouse.segment_store import sync_folder, unwritable
from warehouse.store import Store


class RebuildReport(Record):
    """What a rebuild did. ``kept_at`` is where the old file lies, or ``None`` when there was none."""

    loaded: LoadReport
    kept_at: str | None


def rebuild(store: Store, *, wait_s: float) -> RebuildReport:
    """Make the warehouse file anew from everything that the journal holds.

    Readers see the old file until the new one is whole. Works whatever the old file is: damaged, foreign, gone.
    It is kept beside under a name with the time, to be deleted by a person. Leases are not taken over. Raises
    `WarehouseBusy` after ``wait_s`` seconds and `WarehouseUnwritable`; then the old file is as it was.
    """
    database = store.database
    with database.held(wait_s) as deadline:
        try:
            with building(database.file, deadline, database.schema, database.clock) as (connection, beside):
                loaded = load(connection, store.journal, database.scratch)
                ledger = store.ledger_of(connection)
            kept = _swap(database.file, beside, store.clock())
        except OSError as error:
            raise unwritable(database.file, error) from error
        write_ledger(database.file, ledger)
    return RebuildReport(loaded=loaded, kept_at=str(kept) if kept else None)


def _swap(file: Path, beside: Path, now: datetime) -> Path | None:
    """Put the new file in place; there is a file under the name at every moment.

    The old log goes first: a new file with an old log would be nonsense, an old file without its log only lacks
    what the journal has.
    """
    kept = file.with_name(f"{file.name}.before-{now:%Y%m%dT%H%M%S.%fZ}") if file.exists() else None
    log = file.with_name(f"{file.name}.wal")
    if kept is not None:
        os.link(file, kept)
        if log.exists():
            log.rename(kept.with_name(f"{kept.name}.wal"))
    log.unlink(missing_ok=True)
    ledger_path(file).unlink(missing_ok=True)
    beside.replace(file)
    sync_folder(file.parent)
    return kept
