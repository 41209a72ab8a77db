"""Opens a warehouse in a folder. The clock of the warehouse is simulated, but waits take real time."""

from __future__ import annotations

import random
import tempfile
import time
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from tests.warehouse.sample_rows import NOON
from warehouse.database.connection import WaitPolicy
from warehouse.database.database import Ledger, Schema, write_ledger
from warehouse.database.store import Store

REAL_PATIENCE = WaitPolicy(time.monotonic, time.sleep)


class SteppingClock:
    """A clock that starts at noon and advances one second at each call; `skip` advances it further."""

    def __init__(self, start: datetime = NOON) -> None:
        self._now = start

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def skip(self, **span: float) -> None:
        self._now += timedelta(**span)


def seeded_entropy(seed: int):
    return random.Random(seed).randbytes


@cache
def empty_warehouse() -> bytes:
    """Return the content of a new warehouse file.

    The file is created only once, because creating a file for each test would take most of the test time.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = bare_store_in(Path(folder))
        store.load_pending(1)
        return store.database.file.read_bytes()


def store_in(
    folder: Path, *, seed: int = 1, clock: SteppingClock | None = None, schema: Schema | None = None
) -> Store:
    """Return a store in ``folder``. If the folder has no warehouse file, the store gets a copy of an empty file."""
    file = folder / "warehouse.duckdb"
    if schema is None and not file.exists() and not (folder / "journal").exists():
        file.write_bytes(empty_warehouse())
        write_ledger(file, Ledger(segments=0, as_of=NOON))
    return bare_store_in(folder, seed=seed, clock=clock, schema=schema)


def bare_store_in(
    folder: Path, *, seed: int = 1, clock: SteppingClock | None = None, schema: Schema | None = None
) -> Store:
    """Return a store in ``folder``. If the folder has no warehouse file, none is created."""
    return Store(
        folder,
        clock=clock or SteppingClock(),
        entropy=seeded_entropy(seed),
        patience=REAL_PATIENCE,
        schema=schema,
    )


def count(store: Store, table: str) -> int:
    return int(str(store.query(f"select count(*) from {table}").rows[0][0]))
