"""A warehouse in a folder, with a clock that only moves when told to, and real waiting."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from pathlib import Path

from tests.warehouse.sample_rows import NOON
from warehouse.connection import Patience
from warehouse.migrate import Schema
from warehouse.store import Store

REAL_PATIENCE = Patience(time.monotonic, time.sleep)


class SteppingClock:
    """Noon, and a second later at every look; `skip` moves it on."""

    def __init__(self, start: datetime = NOON) -> None:
        self._now = start

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def skip(self, **span: float) -> None:
        self._now += timedelta(**span)


def seeded_entropy(seed: int):
    return random.Random(seed).randbytes


def store_in(
    folder: Path, *, seed: int = 1, clock: SteppingClock | None = None, schema: Schema | None = None
) -> Store:
    return Store(
        folder,
        clock=clock or SteppingClock(),
        entropy=seeded_entropy(seed),
        patience=REAL_PATIENCE,
        schema=schema,
    )


def count(store: Store, table: str) -> int:
    return int(str(store.query(f"select count(*) from {table}").rows[0][0]))
