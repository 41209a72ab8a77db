"""A copy of the warehouse for the site. Pages read the copy, so that pages and runs do not block each other.

In the warehouse itself, DuckDB blocks readers while a process writes. The copy is renewed after the warehouse has
changed. All sites that use the same data folder share the copy.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Final

import duckdb

from monitors.errors import WarehouseBusy, WarehouseDamaged, WarehouseUnwritable
from monitors.storage import build_unwritable_error, make_private_folder, move
from warehouse.data_folder import open_lock_handle
from warehouse.database.connection import Deadline, open_connection, translate_error
from warehouse.database.database import Database, migrate, remove_database
from warehouse.database.store import Store

SNAPSHOT_FOLDER: Final = "snapshots"
"""Name of the folder inside the data folder that contains the copies."""
MEMORY: Final = "1GB"
"""Memory limit for queries on the copy."""
_COPY_PATTERN: Final = "warehouse-*.duckdb"
_LOCK: Final = "making.lock"
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": MEMORY,
    "temp_directory": "",
}


@dataclass
class _OpenCopy:
    """An open copy of the warehouse.

    Once a newer copy is open, this copy is closed after its last reader has finished.
    """

    file: Path
    connection: duckdb.DuckDBPyConnection
    readers: int = 0
    is_replaced: bool = False


@dataclass
class Snapshot:
    """The newest copy of the database ``source``. Any number of threads can use this object."""

    source: Database
    folder: Path
    as_of: datetime | None = None
    """The last time at which the copy was known to be up to date, or ``None`` before the first `refresh`."""
    _current: _OpenCopy | None = None
    _guard: Lock = field(default_factory=Lock)

    def refresh(self, wait_s: float) -> bool:
        """If the warehouse has changed, open a newer copy. Return whether a newer copy was opened.

        The copy is made first, unless another site has already made it. Pages use the old copy until the newer copy
        is open. Waits at most ``wait_s`` seconds for a writer. Raises `WarehouseBusy`, `WarehouseUnwritable`,
        `WarehouseDamaged`, `SchemaTooNew`.
        """
        make_private_folder(self.folder)
        self.source.create_if_missing(wait_s)
        seen_at, version = self.source.clock(), self.source.compute_file_version()
        copy_name = self._find_copy_of_version(version)
        if copy_name is None:
            copy_name = self._find_or_make_copy(wait_s)
        changed = self._open_copy_if_newer(copy_name)
        self.as_of = seen_at
        return changed

    @contextmanager
    def open_cursor(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Open a cursor on the newest copy. Raises `WarehouseBusy` if there is no copy yet."""
        with self._guard:
            copy = self._current
            if copy is None:
                raise WarehouseBusy("Lookout is making the first copy of the warehouse; try again in a few seconds")
            copy.readers += 1
        cursor = copy.connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            yield cursor
        except duckdb.Error as error:
            raise translate_error(error, copy.file) from error
        finally:
            cursor.close()
            self._release_copy(copy)

    @property
    def copy_name(self) -> str:
        """Return the file name of the current copy, or an empty string before the first copy."""
        current = self._current
        return current.file.name if current else ""

    def close(self) -> None:
        """Close the copy, but do not delete its file."""
        with self._guard:
            copy, self._current = self._current, None
        if copy is not None:
            self._close_copy_when_unused(copy)

    def _release_copy(self, copy: _OpenCopy) -> None:
        with self._guard:
            copy.readers -= 1
            is_last = copy.is_replaced and not copy.readers
        if is_last:
            copy.connection.close()

    def _close_copy_when_unused(self, copy: _OpenCopy) -> None:
        with self._guard:
            copy.is_replaced = True
            is_unused = not copy.readers
        if is_unused:
            copy.connection.close()

    def _find_copy_of_version(self, version: str) -> Path | None:
        copies = sorted(self.folder.glob(f"warehouse-{version}-*.duckdb"))
        return copies[-1] if copies else None

    def _find_or_make_copy(self, wait_s: float) -> Path:
        with _lock_folder(self.folder):
            made = self._find_copy_of_version(
                self.source.compute_file_version()
            )  # another site may have made it by now
            return made or self._make_copy_and_remove_others(wait_s)

    def _make_copy_and_remove_others(self, wait_s: float) -> Path:
        beside = self.folder / "making.duckdb"
        remove_database(beside)
        try:
            version = self.source.copy_and_return_version(beside, wait_s)
            with open_connection(beside, Deadline(self.source.patience, wait_s), read_only=False) as connection:
                migrate(connection, self.source.file, self.source.schema, self.source.clock)
                connection.execute("checkpoint")
            goal = self.folder / f"warehouse-{version}-{self.source.clock():%Y%m%dT%H%M%S%f}.duckdb"
            move(beside, goal)
        except OSError as error:
            remove_database(beside)
            raise build_unwritable_error(beside, error) from error
        # An open copy is freed after its last reader has closed it.
        for old in self.folder.glob(_COPY_PATTERN):
            if old != goal:
                old.unlink(missing_ok=True)
        return goal

    def _open_copy_if_newer(self, file: Path) -> bool:
        if self._current is not None and self._current.file == file:
            return False
        try:
            connection = duckdb.connect(str(file), read_only=True, config=_SETTINGS)
        except duckdb.Error as error:
            raise translate_error(error, file) from error
        with self._guard:
            before, self._current = self._current, _OpenCopy(file, connection)
        if before is not None:
            self._close_copy_when_unused(before)
        return True


@contextmanager
def _lock_folder(folder: Path) -> Generator[None]:
    """During the ``with`` block, hold the lock that allows only one process at a time to make a copy.

    Raises `WarehouseBusy` if another process holds the lock.
    """
    with open_lock_handle(folder / _LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WarehouseBusy(
                "another process is making a copy of the warehouse; try again in a few seconds"
            ) from None
        yield


def remove_snapshots(data_folder: Path) -> None:
    """Remove all copies, because they may contain data that was removed from the warehouse.

    Raises `WarehouseUnwritable`.
    """
    folder = data_folder / SNAPSHOT_FOLDER
    try:
        for file in (*folder.glob(_COPY_PATTERN), folder / "making.duckdb"):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise build_unwritable_error(folder, error) from error


@dataclass(frozen=True, slots=True)
class SnapshotDatabase(Database):
    """The warehouse for the site. Reading never waits, and writing raises an error."""

    snapshot: Snapshot | None = None

    @contextmanager
    def hold_lock(self, wait_s: float) -> Generator[Deadline]:
        """Raise an error, because a snapshot is read-only."""
        del wait_s
        raise WarehouseUnwritable(f"{self.file} is a read-only copy; Lookout must not write to it")
        yield  # pyright: ignore[reportUnreachable] - a generator, like the method that it replaces

    @contextmanager
    def open_for_reading(self, wait_s: float) -> Generator[duckdb.DuckDBPyConnection]:
        """Yield a cursor on the newest copy, without waiting."""
        del wait_s
        if self.snapshot is None:
            raise WarehouseDamaged(f"{self.file} does not exist: there is no copy to read")
        with self.snapshot.open_cursor() as cursor:
            yield cursor


def build_snapshot_and_store(store: Store) -> tuple[Snapshot, Store]:
    """Return a snapshot object for a store's warehouse, and a store that reads from it. Nothing is copied yet."""
    source = store.database
    folder = source.file.parent
    snapshot = Snapshot(source, folder / SNAPSHOT_FOLDER)
    database = SnapshotDatabase(source.file, source.schema, source.clock, source.patience, snapshot)
    return snapshot, store.with_database(database)
