"""The warehouse file in use: who may open it, how it comes to be, what it must hold before anyone reads it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.connection import Deadline, Patience, locked, not_duckdb, opened
from warehouse.ledger import ledger_path
from warehouse.migrate import Schema, applied, bring_up, create, is_current
from warehouse.segment import Clock
from warehouse.segment_store import make_folder, unwritable

_MAGIC = slice(8, 12)
"""Where a DuckDB file says DUCK."""


@dataclass(frozen=True, slots=True)
class Database:
    """One warehouse file with the schema that it must have."""

    file: Path
    schema: Schema
    clock: Clock
    patience: Patience

    @property
    def scratch(self) -> Path:
        """A file beside for whoever holds the lock; what is found there belongs to nobody."""
        return self.file.with_name(f"{self.file.name}.scratch")

    @contextmanager
    def held(self, wait_s: float) -> Generator[Deadline]:
        """The lock alone: nobody of Lookout's has the file open meanwhile. Raises `WarehouseBusy`."""
        deadline = Deadline(self.patience, wait_s)
        try:
            make_folder(self.file.parent)
        except OSError as error:
            raise unwritable(self.file.parent, error) from error
        with locked(self.file, deadline, exclusive=True):
            yield deadline

    @contextmanager
    def writing(self, wait_s: float) -> Generator[duckdb.DuckDBPyConnection]:
        """The file, created or migrated where needed, for this writer alone; waits ``wait_s`` seconds at most.

        Raises `WarehouseBusy`, `WarehouseUnwritable`, `WarehouseDamaged`, `SchemaTooNew`.
        """
        with self.held(wait_s) as deadline:
            self._prepare(deadline)
            with opened(self.file, deadline, read_only=False) as connection:
                bring_up(connection, self.file, self.schema, self.clock)
                yield connection

    @contextmanager
    def reading(self, wait_s: float) -> Generator[duckdb.DuckDBPyConnection]:
        """The file for reading, beside other readers; waits ``wait_s`` seconds at most for a writer.

        A missing file is created and an old one migrated first. Raises as `writing` does.
        """
        deadline = Deadline(self.patience, wait_s)
        self.ensure(wait_s)
        with self._shared(deadline) as connection:
            if is_current(connection, self.file, self.schema):
                yield connection
                return
        self._write_once(wait_s)
        with self._shared(deadline) as connection:
            yield connection

    def ensure(self, wait_s: float) -> None:
        """Create the file when there is none. Raises as `writing` does."""
        if not self.file.exists():
            self._write_once(wait_s)

    @contextmanager
    def _shared(self, deadline: Deadline) -> Generator[duckdb.DuckDBPyConnection]:
        with locked(self.file, deadline, exclusive=False):
            self._refuse_strange()
            with opened(self.file, deadline, read_only=True) as connection:
                yield connection

    def _write_once(self, wait_s: float) -> None:
        with self.writing(wait_s):
            return

    def _prepare(self, deadline: Deadline) -> None:
        if not self.file.exists():
            create(self.file, deadline, self.schema, self.clock)
            return
        self._refuse_strange()
        if not ledger_path(self.file).exists():
            self._refuse_foreign(deadline)

    def _refuse_strange(self) -> None:
        """DuckDB would fetch an extension for some files of others (SQLite's): so it never gets to see them."""
        if not _is_duckdb(self.file):
            raise not_duckdb(self.file)

    def _refuse_foreign(self, deadline: Deadline) -> None:
        """Look before writing: opening somebody else's database for writing could already change it."""
        with opened(self.file, deadline, read_only=True) as connection:
            applied(connection, self.file)


def _is_duckdb(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as handle:
        return handle.read(16)[_MAGIC] == b"DUCK"
