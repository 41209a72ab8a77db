"""Open the warehouse file for one writer or for many readers, and limit the waiting time.

DuckDB refuses a second process instead of waiting. A lock file beside the warehouse makes Lookout's processes wait
for each other. Many readers could block a writer forever. A second lock file (``.turn``) therefore gives a waiting
writer priority.
"""

from __future__ import annotations

import atexit
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from monitors.errors import (
    SchemaTooNew,
    WarehouseBusy,
    WarehouseDamaged,
    WarehouseError,
    WarehouseInUse,
    WarehouseUnwritable,
)
from monitors.storage import build_unwritable_error, open_without_links

_MIN_PAUSE_S = 0.005
_MAX_PAUSE_S = 0.1
"""Longest pause between two attempts, in seconds. Attaching, writing and detaching a file takes about 0.01 s."""

_WRITER_TURN_S = 2.0
"""Time in seconds for which a waiting writer blocks new readers."""

_READERS_TURN_S = 0.3
"""Time in seconds for which new readers may start after `_WRITER_TURN_S`, if a query still blocks the writer."""

_OFFLINE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""Options that prevent DuckDB from downloading extensions. All extensions that Lookout uses are built in."""

_MAX_IDLE_ENGINES = 4
"""Maximum number of idle engines in this process. More engines exist only while more threads use the warehouse."""

REBUILD_HINT = "run `lookout warehouse rebuild` (it saves the old file and restores all rows from the journal)"


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """The two functions that are used for waiting: one returns the time, the other pauses. Both use seconds."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], None]


class Deadline:
    """A time limit of ``wait_s`` seconds for repeated attempts, with growing pauses.

    The first attempt is always made.
    """

    def __init__(self, patience: WaitPolicy, wait_s: float) -> None:
        self._patience = patience
        self._end = patience.monotonic() + wait_s
        self._pause_s = _MIN_PAUSE_S

    def limit_to(self, seconds: float) -> Deadline:
        """Return a deadline that is ``seconds`` from now, or this deadline if this one is earlier."""
        left_s = self._end - self._patience.monotonic()
        return Deadline(self._patience, max(0.0, min(seconds, left_s)))

    def pause(self) -> bool:
        """Wait a short time and return ``True``. If the deadline has passed, return ``False`` without waiting."""
        left_s = self._end - self._patience.monotonic()
        if left_s <= 0:
            return False
        # DuckDB's lock has no timeout. It is therefore tried again and again.
        self._patience.sleep(min(self._pause_s, left_s))
        self._pause_s = min(self._pause_s * 1.5, _MAX_PAUSE_S)
        return True


@contextmanager
def acquire_lock(file: Path, deadline: Deadline, *, exclusive: bool) -> Generator[None]:
    """Hold the lock beside ``file`` during the ``with`` block. Raises `WarehouseInUse` if the deadline passes.

    A reader in a read-only folder cannot create the lock file, and continues without a lock.
    """
    lock = file.with_name(f"{file.name}.lock")
    try:
        handle = open_without_links(lock, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        if exclusive:
            raise build_unwritable_error(lock, error) from error
        yield
        return
    try:
        if not (_try_exclusive_lock if exclusive else _try_shared_lock)(handle, file, deadline):
            raise WarehouseInUse(
                f"another run of Lookout uses {file}. The results of runs are safe in the journal, and Lookout "
                "loads them later"
            )
        yield
    finally:
        os.close(handle)


def _try_exclusive_lock(handle: int, file: Path, deadline: Deadline) -> bool:
    """Acquire the exclusive lock and return ``True``. Return ``False`` if the deadline passes first.

    A waiting writer blocks new readers for two seconds, and then lets new readers start for a short time.
    """
    while True:
        with _open_writer_priority_file(file) as turn:
            if not _try_flock(turn, fcntl.LOCK_EX, deadline):
                return False
            if _try_flock(handle, fcntl.LOCK_EX, deadline.limit_to(_WRITER_TURN_S)):
                return True
        readers_turn = deadline.limit_to(_READERS_TURN_S)
        while readers_turn.pause():
            pass
        if not deadline.pause():
            return False


def _try_shared_lock(handle: int, file: Path, deadline: Deadline) -> bool:
    try:
        with _open_writer_priority_file(file) as turn:
            return _try_flock(turn, fcntl.LOCK_SH, deadline) and _try_flock(handle, fcntl.LOCK_SH, deadline)
    except WarehouseUnwritable:
        return _try_flock(handle, fcntl.LOCK_SH, deadline)  # the wait may be unfair, but it harms no process


@contextmanager
def _open_writer_priority_file(file: Path) -> Generator[int]:
    path = file.with_name(f"{file.name}.turn")
    try:
        handle = open_without_links(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise build_unwritable_error(path, error) from error
    try:
        yield handle
    finally:
        os.close(handle)


def _try_flock(handle: int, kind: int, deadline: Deadline) -> bool:
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if not deadline.pause():
                return False
        else:
            return True


class _Engine:
    """An in-memory DuckDB database, to which one warehouse file at a time is attached.

    The engine is reused, because starting DuckDB takes 16 ms of CPU time, and attaching a file takes only 3 ms. A
    service opens the warehouse every few seconds.
    """

    def __init__(self) -> None:
        self._instance = duckdb.connect(":memory:", config=_OFFLINE)

    def attach(self, file: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        """Attach ``file`` and return a connection to it. Temporary tables and settings end with the connection."""
        # The folder that DuckDB chooses if it opens a file itself. In memory it would use the working directory.
        self._instance.execute(f"SET temp_directory = {quote_path(f'{file}.tmp')}")
        options = "TYPE duckdb, READ_ONLY" if read_only else "TYPE duckdb"
        self._instance.execute(f"ATTACH {quote_path(file)} AS warehouse ({options})")
        connection = self._instance.cursor()
        connection.execute("USE warehouse")
        connection.execute("SET TimeZone = 'UTC'")
        return connection

    def detach_all(self) -> None:
        """Detach the warehouse file and all other attached files."""
        names = self._instance.execute(
            "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'"
        ).fetchall()
        for (name,) in names:
            self._instance.execute(f'DETACH "{name}"')

    def can_attach(self) -> bool:
        """Return whether the engine can attach another file.

        The test is to change DuckDB's setting for the folder of temporary files. DuckDB refuses this change after a
        query that used temporary files, and after a person's query, because such a query turns off access to files.
        """
        try:
            self._instance.execute("SET temp_directory = ''")
        except duckdb.Error:
            return False
        return True

    def close(self) -> None:
        self._instance.close()


_idle_engines: list[_Engine] = []


def _close_idle_engines() -> None:
    while _idle_engines:
        _idle_engines.pop().close()


os.register_at_fork(before=_close_idle_engines)  # a fork does not copy DuckDB's threads
atexit.register(_close_idle_engines)  # DuckDB reports objects that still exist when Python ends, on stderr


@contextmanager
def open_connection(file: Path, deadline: Deadline, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
    """Open a connection for the ``with`` block, and close it afterwards. The caller must hold the lock.

    A DuckDB error is raised as a `WarehouseError`, except an error in the SQL statement.
    """
    try:
        with _borrow_engine() as engine:
            connection = _attach(engine, file, deadline, read_only=read_only)
            try:
                yield connection
            finally:
                connection.close()
            engine.detach_all()
    except duckdb.Error as error:
        raise translate_error(error, file) from error


@contextmanager
def _borrow_engine() -> Generator[_Engine]:
    """Yield an idle engine, or a new one if none is idle.

    After an error in the ``with`` block, the engine is closed.
    """
    try:
        engine = _idle_engines.pop()
    except IndexError:
        engine = _Engine()
    try:
        yield engine
    except BaseException:  # also after a cancellation, the engine may be unusable
        engine.close()
        raise
    if len(_idle_engines) < _MAX_IDLE_ENGINES and engine.can_attach():
        _idle_engines.append(engine)
    else:
        engine.close()


def quote_path(path: Path | str) -> str:
    """Return ``path`` as a string literal for the SQL statement ATTACH, which accepts no parameters."""
    return "'" + str(path).replace("'", "''") + "'"


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Generator[None]:
    """Run the ``with`` block in a transaction. An exception rolls the transaction back."""
    connection.begin()
    try:
        yield
    except BaseException:  # roll back after a cancellation, too
        with suppress(duckdb.Error):  # the transaction may have ended already, and the first error has the reason
            connection.rollback()
        raise
    connection.commit()


def _attach(engine: _Engine, file: Path, deadline: Deadline, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    while True:
        try:
            return engine.attach(file, read_only=read_only)
        except duckdb.Error as error:
            if not _is_lock_error(error):
                raise translate_error(error, file) from error
            if not deadline.pause():
                raise WarehouseBusy(
                    f"another process uses {file}. The results of runs are safe in the journal, and Lookout loads "
                    "them later. If this message appears again, close the program that has the file open"
                ) from error


def _is_lock_error(error: duckdb.Error) -> bool:
    text = str(error)
    return "Could not set lock on file" in text or "already attached" in text


def build_not_duckdb_error(file: Path) -> WarehouseDamaged:
    """Build the error for a path that is a folder or a file of another program."""
    if file.is_dir():
        return WarehouseDamaged(
            f"{file} is a folder, so Lookout did not change it; move the folder away, or {REBUILD_HINT}"
        )
    return WarehouseDamaged(
        f"{file} is not a DuckDB file, so Lookout did not change it; move it away if you need it, or {REBUILD_HINT}"
    )


_STATEMENT_ERRORS = (duckdb.ProgrammingError, duckdb.NotSupportedError, duckdb.DataError)
"""Errors in a statement rather than in the file. `translate_error` returns these errors unchanged."""


def translate_error(error: duckdb.Error, file: Path) -> Exception:
    """Convert a DuckDB error to a Lookout error. An error in the SQL statement is returned unchanged."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, duckdb.OutOfMemoryException) or any(sign in text for sign in _MEMORY_SIGNS):
        return WarehouseError(
            f"not enough memory to use {file}. No data is lost. Stop other programs, or give Lookout more memory"
        )
    if isinstance(error, duckdb.IOException | duckdb.PermissionException):
        return _translate_disk_error(text, file)
    if isinstance(error, _COMMIT_ERRORS) and any(sign in text for sign in _UNWRITABLE_SIGNS):
        return _build_unwritable_error(text, file)
    if isinstance(error, _STATEMENT_ERRORS) and not _is_about_corruption(text):
        return error
    return WarehouseDamaged(f"{file} is damaged; {REBUILD_HINT}")


_UNWRITABLE_SIGNS = (
    "Permission denied",
    "Read-only file system",
    "read-only",
    "No space left",
    "quota exceeded",
    "File too large",
)
"""Texts that occur in error messages about a file or folder that cannot be written."""


_MEMORY_SIGNS = ("bad allocation", "bad_alloc", "Allocation failure", "Failed to allocate")
"""Texts that occur in error messages about too little memory."""


_COMMIT_ERRORS = (duckdb.TransactionException, duckdb.FatalException)
"""Errors that DuckDB raises if the disk is full during a commit."""


def _build_unwritable_error(text: str, file: Path) -> WarehouseUnwritable:
    return WarehouseUnwritable(
        f"cannot write {file}: {text}; free some disk space, or make the file writable for this user"
    )


def _translate_disk_error(text: str, file: Path) -> WarehouseError:
    if "not a valid DuckDB database file" in text:
        return build_not_duckdb_error(file)
    if "newer version of DuckDB" in text or "newer DuckDB version" in text:
        return SchemaTooNew(f"{file} was written by a newer version of DuckDB; update Lookout")
    if any(sign in text for sign in _UNWRITABLE_SIGNS):
        return _build_unwritable_error(text, file)
    return WarehouseDamaged(f"{file} cannot be read: it is cut off or damaged; {REBUILD_HINT}")


CHECKSUM_ERROR = "Corrupt database file"
"""Beginning of DuckDB's error message about a damaged block of the file."""


def _is_about_corruption(text: str) -> bool:
    return "corrupt" in text.lower() or "checksum" in text.lower()
