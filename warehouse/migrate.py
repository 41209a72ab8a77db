"""Bringing a warehouse file to the present schema: numbered steps, each in a transaction with its record."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import duckdb

from monitors.errors import SchemaTooNew, WarehouseUnwritable
from warehouse.connection import Deadline, opened, transaction
from warehouse.segment import Clock
from warehouse.segment_store import sync_file, sync_folder, unwritable

_RECORD = """
create table lookout_migrations (
  number integer primary key, name varchar not null, sha256 varchar not null, applied_at timestamptz not null
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Hash of the statements, kept with the record."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Schema:
    """What a file must hold: the steps in order, and the views, which are made anew whenever they change."""

    migrations: Sequence[Migration]
    views: str

    @property
    def newest(self) -> int:
        """The number of the last step."""
        return self.migrations[-1].number


def bundled_schema() -> Schema:
    """The steps and views that come with this version of Lookout."""
    package = resources.files("warehouse")
    files = sorted(package.joinpath("migrations").iterdir(), key=lambda file: file.name)
    steps = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in files
        if file.name.endswith(".sql")
    ]
    return Schema(steps, package.joinpath("views.sql").read_text("utf-8"))


def create(file: Path, deadline: Deadline, schema: Schema, clock: Clock) -> None:
    """Make a new warehouse beside and move it into place whole; an existing file is never replaced.

    The caller holds the lock. Raises `WarehouseUnwritable`.
    """
    try:
        with building(file, deadline, schema, clock) as (_, beside):
            pass
        os.link(beside, file)
        beside.unlink()
        sync_folder(file.parent)
    except OSError as error:
        raise unwritable(file, error) from error


@contextmanager
def building(
    file: Path, deadline: Deadline, schema: Schema, clock: Clock
) -> Generator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A new warehouse beside ``file``, open to be filled; at the end it is whole and on the disk.

    What a killed builder left there is removed first. The caller holds the lock. Raises `OSError`.
    """
    beside = file.with_name(f"{file.name}.new")
    discard(beside)
    with opened(beside, deadline, read_only=False) as connection:
        connection.execute(_RECORD)
        bring_up(connection, file, schema, clock)
        yield connection, beside
    sync_file(beside)


def discard(file: Path) -> None:
    """Remove a database file that nobody needs, with its log. Raises `OSError`."""
    for path in (file, file.with_name(f"{file.name}.wal")):
        path.unlink(missing_ok=True)


def bring_up(connection: duckdb.DuckDBPyConnection, file: Path, schema: Schema, clock: Clock) -> Sequence[int]:
    """Apply the steps that are missing and renew the views; the numbers of the steps that were applied.

    ``file`` is for errors. Raises `SchemaTooNew` for a file of a newer Lookout, `WarehouseUnwritable` for a
    DuckDB file of something else; both are left as they are.
    """
    done = applied(connection, file)
    if done > schema.newest:
        raise SchemaTooNew(
            f"{file} has schema {done}, this Lookout knows {schema.newest}: update Lookout, "
            "or choose another data folder"
        )
    missing = [step for step in schema.migrations if step.number > done]
    for step in missing:
        _apply(connection, step, clock)
    if missing or _views_differ(connection, schema):
        _renew_views(connection, schema)
    return [step.number for step in missing]


def applied(connection: duckdb.DuckDBPyConnection, file: Path) -> int:
    """The number of the last step that the file has. Raises `WarehouseUnwritable` when it is not a warehouse."""
    try:
        row = connection.execute("select coalesce(max(number), 0) from lookout_migrations").fetchone()
    except duckdb.CatalogException:
        raise WarehouseUnwritable(
            f"{file} is a DuckDB file of something else and was left untouched: "
            "move it away or choose another data folder"
        ) from None
    return int(row[0]) if row else 0


def is_current(connection: duckdb.DuckDBPyConnection, file: Path, schema: Schema) -> bool:
    """Whether nothing is left to apply. Works on a read-only connection."""
    return applied(connection, file) == schema.newest and not _views_differ(connection, schema)


def _apply(connection: duckdb.DuckDBPyConnection, step: Migration, clock: Clock) -> None:
    with transaction(connection):
        connection.execute(step.sql)
        connection.execute(
            "insert into lookout_migrations values (?, ?, ?, ?)", [step.number, step.name, step.sha256, clock()]
        )


def _renew_views(connection: duckdb.DuckDBPyConnection, schema: Schema) -> None:
    with transaction(connection):
        connection.execute(schema.views)
        connection.execute("delete from view_set")
        connection.execute("insert into view_set values (?)", [_views_hash(schema)])


def _views_differ(connection: duckdb.DuckDBPyConnection, schema: Schema) -> bool:
    return connection.execute("select sha256 from view_set").fetchall() != [(_views_hash(schema),)]


def _views_hash(schema: Schema) -> str:
    return hashlib.sha256(schema.views.encode()).hexdigest()
