"""Create, migrate and open the warehouse file.

Migrations are numbered steps that bring a file to the current schema. A ledger file beside the warehouse stores the
number of loaded segments, because DuckDB can lose a damaged log without an error.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import duckdb
from pydantic import ValidationError

from monitors.errors import SchemaTooNew, WarehouseUnwritable
from monitors.records.base import Record, UtcTime
from monitors.storage import build_unwritable_error, make_private_folder, sync_folder, write_atomically
from warehouse.database.connection import (
    Deadline,
    WaitPolicy,
    acquire_lock,
    build_not_duckdb_error,
    open_connection,
    transaction,
)
from warehouse.journal.segments import Clock, sync_file

_MIGRATIONS_TABLE = """
create table lookout_migrations (
  number integer primary key, name varchar not null, sha256 varchar not null, applied_at timestamptz not null
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step that changes the schema."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Return the hash of the migration's statements, which is stored when the migration is applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Schema:
    """All migrations in order, and the SQL of all views.

    If the SQL of the views changes, the views are created again.
    """

    migrations: Sequence[Migration]
    views: str

    @property
    def newest(self) -> int:
        """Return the number of the newest migration."""
        return self.migrations[-1].number


def load_bundled_schema() -> Schema:
    """Load the migrations and views of this version of Lookout."""
    package = resources.files("warehouse")
    files = sorted(package.joinpath("migrations").iterdir(), key=lambda file: file.name)
    steps = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in files
        if file.name.endswith(".sql")
    ]
    return Schema(steps, package.joinpath("views.sql").read_text("utf-8"))


def create_database(file: Path, deadline: Deadline, schema: Schema, clock: Clock) -> None:
    """Create a new warehouse at ``file``. An existing file is not replaced.

    The caller must hold the lock. Raises `WarehouseUnwritable`.
    """
    try:
        with build_database(file, deadline, schema, clock) as (_, beside):
            pass
        os.link(beside, file)
        beside.unlink()
        sync_folder(file.parent)
    except OSError as error:
        raise build_unwritable_error(file, error) from error


@contextmanager
def build_database(
    file: Path, deadline: Deadline, schema: Schema, clock: Clock
) -> Generator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Build a new warehouse beside ``file``, and verify it after the ``with`` block.

    Yields the path of the new file, and a connection with which the caller fills the new warehouse.

    DuckDB reports no error if its last checkpoint fails, for example on a full disk. Therefore, this function makes
    the checkpoint, opens the file again and compares the row count of every table. If any step fails, the
    unfinished file is removed. The caller must hold the lock, and must move the finished file to ``file``. Raises
    `WarehouseUnwritable` and `OSError`.
    """
    beside = file.with_name(f"{file.name}.new")
    remove_database(beside)
    try:
        with open_connection(beside, deadline, read_only=False) as connection:
            connection.execute(_MIGRATIONS_TABLE)
            migrate(connection, file, schema, clock)
            yield connection, beside
            row_counts = _count_rows_by_table(connection)
            connection.execute("checkpoint")
        _require_row_counts(beside, deadline, row_counts)
        sync_file(beside)
    except BaseException:  # remove the unfinished file after a cancellation, too
        with suppress(OSError):  # the first error has the reason
            remove_database(beside)
        raise


def _count_rows_by_table(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Count the rows of each table of the file."""
    names = connection.execute(
        "select table_name from duckdb_tables() where database_name = current_database() and not temporary"
    ).fetchall()
    return {str(name): _count_rows(connection, str(name)) for (name,) in names}


def _count_rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    row = connection.execute(f'select count(*) from "{table}"').fetchone()  # noqa: S608 - the file's own tables
    return int(row[0]) if row else 0


def _require_row_counts(beside: Path, deadline: Deadline, expected: dict[str, int]) -> None:
    """Raise `WarehouseUnwritable` if a table of the file has fewer or more rows than expected."""
    if build_wal_path(beside).exists():
        raise WarehouseUnwritable(
            f"{beside} could not be written completely (its log file still exists); free some disk space"
        )
    with open_connection(beside, deadline, read_only=True) as connection:
        counts = _count_rows_by_table(connection)
    if counts != expected:
        differences = ", ".join(
            f"{table} {counts.get(table, 0)} of {rows}"
            for table, rows in expected.items()
            if counts.get(table) != rows
        )
        raise WarehouseUnwritable(
            f"{beside} has a wrong number of rows after writing ({differences}); free some disk space and check "
            "the disk"
        )


def build_wal_path(file: Path) -> Path:
    """Return the path of DuckDB's write-ahead log of a database file."""
    return file.with_name(f"{file.name}.wal")


def remove_database(file: Path) -> None:
    """Remove a database file with its log. Raises `OSError`."""
    for path in (file, build_wal_path(file)):
        path.unlink(missing_ok=True)


def migrate(connection: duckdb.DuckDBPyConnection, file: Path, schema: Schema, clock: Clock) -> Sequence[int]:
    """Apply the missing migrations, recreate changed views, and return the applied migration numbers.

    ``file`` is used only in error messages. Raises `SchemaTooNew` for a file from a newer version of Lookout, and
    `WarehouseUnwritable` for a DuckDB file of another program. Such files are not changed.
    """
    done = read_schema_number(connection, file)
    if done > schema.newest:
        raise SchemaTooNew(
            f"{file} has schema {done}, but this version of Lookout supports schemas up to {schema.newest}; update "
            "Lookout, or choose another data folder"
        )
    missing = [step for step in schema.migrations if step.number > done]
    for step in missing:
        _apply_migration(connection, step, clock)
    if missing or _has_different_views(connection, schema):
        with transaction(connection):
            connection.execute(schema.views)
            connection.execute("delete from view_set")
            connection.execute("insert into view_set values (?)", [_hash_views(schema)])
    return [step.number for step in missing]


def read_schema_number(connection: duckdb.DuckDBPyConnection, file: Path) -> int:
    """Read the number of the last migration. Raises `WarehouseUnwritable` if the file is not a warehouse."""
    try:
        row = connection.execute("select coalesce(max(number), 0) from lookout_migrations").fetchone()
    except duckdb.CatalogException:
        raise WarehouseUnwritable(
            f"{file} is a DuckDB file of another program, so Lookout did not change it; move the file away, or "
            "choose another data folder"
        ) from None
    return int(row[0]) if row else 0


def has_newest_schema(connection: duckdb.DuckDBPyConnection, file: Path, schema: Schema) -> bool:
    """Return whether the schema is up to date. A read-only connection is sufficient."""
    return read_schema_number(connection, file) == schema.newest and not _has_different_views(connection, schema)


def _apply_migration(connection: duckdb.DuckDBPyConnection, step: Migration, clock: Clock) -> None:
    with transaction(connection):
        connection.execute(step.sql)
        connection.execute(
            "insert into lookout_migrations values (?, ?, ?, ?)", [step.number, step.name, step.sha256, clock()]
        )


def _has_different_views(connection: duckdb.DuckDBPyConnection, schema: Schema) -> bool:
    return connection.execute("select sha256 from view_set").fetchall() != [(_hash_views(schema),)]


def _hash_views(schema: Schema) -> str:
    return hashlib.sha256(schema.views.encode()).hexdigest()


class Ledger(Record):
    """A record of how many segments were committed to the warehouse. The ledger is written after each commit.

    ``segments`` counts the committed segments that are not lost. ``lost`` counts the segments that were committed
    and are now in neither the warehouse nor the journal.
    """

    segments: int
    as_of: UtcTime
    lost: int = 0

    def with_more_lost_segments(self, count: int) -> Ledger:
        """Return a copy of the ledger with ``count`` segments moved from ``segments`` to ``lost``."""
        return Ledger(segments=self.segments - count, as_of=self.as_of, lost=self.lost + count)


def build_ledger_path(file: Path) -> Path:
    """Return the path of the ledger of a warehouse file."""
    return file.with_name(f"{file.name}.ledger")


def read_ledger(file: Path) -> Ledger | None:
    """Read the ledger. Returns ``None`` if the ledger is missing or unreadable."""
    try:
        return Ledger.model_validate_json(build_ledger_path(file).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_ledger(file: Path, ledger: Ledger) -> None:
    """Replace the ledger atomically. Raises `WarehouseUnwritable`."""
    write_atomically(build_ledger_path(file), ledger.model_dump_json(exclude_defaults=True))


_MAGIC = slice(8, 12)
"""The position in a DuckDB file at which every such file has the bytes ``DUCK``."""


@dataclass(frozen=True, slots=True)
class Database:
    """A warehouse file and the schema that it must have."""

    file: Path
    schema: Schema
    clock: Clock
    patience: WaitPolicy

    @property
    def scratch(self) -> Path:
        """Return the path of a temporary file beside the warehouse.

        Only the process that holds the lock may use the file.
        """
        return self.file.with_name(f"{self.file.name}.scratch")

    @contextmanager
    def hold_lock(self, wait_s: float) -> Generator[Deadline]:
        """Hold the exclusive lock without opening the file. Raises `WarehouseBusy`."""
        deadline = Deadline(self.patience, wait_s)
        make_private_folder(self.file.parent)
        with acquire_lock(self.file, deadline, exclusive=True):
            yield deadline

    @contextmanager
    def open_for_writing(self, wait_s: float) -> Generator[duckdb.DuckDBPyConnection]:
        """Open the file for writing, without other readers or writers. The file is created or migrated if needed.

        Waits at most ``wait_s`` seconds. Raises `WarehouseBusy`, `WarehouseUnwritable`, `WarehouseDamaged`,
        `SchemaTooNew`.
        """
        with self.hold_lock(wait_s) as deadline:
            self._create_or_check_file(deadline)
            with open_connection(self.file, deadline, read_only=False) as connection:
                migrate(connection, self.file, self.schema, self.clock)
                yield connection

    @contextmanager
    def open_for_reading(self, wait_s: float) -> Generator[duckdb.DuckDBPyConnection]:
        """Open the file for reading, together with other readers.

        Waits at most ``wait_s`` seconds for a writer. The file is created or migrated first if needed. Raises the
        errors of `open_for_writing`.
        """
        deadline = Deadline(self.patience, wait_s)
        self.create_if_missing(wait_s)
        with self._open_shared(deadline) as connection:
            if has_newest_schema(connection, self.file, self.schema):
                yield connection
                return
        self._create_or_migrate(wait_s)
        with self._open_shared(deadline) as connection:
            yield connection

    def create_if_missing(self, wait_s: float) -> None:
        """Create the file if it is missing. Raises the errors of `open_for_writing`."""
        if not self.file.exists():
            self._create_or_migrate(wait_s)

    @contextmanager
    def _open_shared(self, deadline: Deadline) -> Generator[duckdb.DuckDBPyConnection]:
        with acquire_lock(self.file, deadline, exclusive=False):
            self._refuse_non_duckdb_file()
            with open_connection(self.file, deadline, read_only=True) as connection:
                yield connection

    def compute_file_version(self) -> str:
        """Return a string that changes whenever the file or its log changes."""
        parts: list[int] = []
        for path in (self.file, build_wal_path(self.file)):
            # A missing file adds nothing to the text.
            with suppress(FileNotFoundError):
                state = path.stat()
                parts += [state.st_ino, state.st_size, state.st_mtime_ns]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def copy_and_return_version(self, goal: Path, wait_s: float) -> str:
        """Copy the database and its log to ``goal``, and return the version of the copy.

        Creates the database if it is missing. Writers wait until the copy is finished, which takes about a second
        for a gigabyte. Raises the errors of `open_for_reading`.
        """
        self.create_if_missing(wait_s)
        with self._open_shared(Deadline(self.patience, wait_s)):
            version = self.compute_file_version()
            for source, copy in ((build_wal_path(self.file), build_wal_path(goal)), (self.file, goal)):
                if source.exists():
                    shutil.copyfile(source, copy)
        return version

    def _create_or_migrate(self, wait_s: float) -> None:
        with self.open_for_writing(wait_s):
            return

    def _create_or_check_file(self, deadline: Deadline) -> None:
        if not self.file.exists():
            create_database(self.file, deadline, self.schema, self.clock)
            return
        self._refuse_non_duckdb_file()
        if not build_ledger_path(self.file).exists():
            # Opening another application's database for writing could change it.
            with open_connection(self.file, deadline, read_only=True) as connection:
                read_schema_number(connection, self.file)

    def _refuse_non_duckdb_file(self) -> None:
        """Raise `WarehouseDamaged` for a file that is not a DuckDB file.

        DuckDB must not open such a file, because for some file formats DuckDB would download an extension.
        """
        if not is_duckdb_file(self.file):
            raise build_not_duckdb_error(self.file)


def is_duckdb_file(file: Path) -> bool:
    """Return whether a file contains the bytes ``DUCK``, which identify a DuckDB file."""
    if not file.is_file():
        return False
    with file.open("rb") as handle:
        return handle.read(16)[_MAGIC] == b"DUCK"
