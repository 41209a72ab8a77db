"""Files that are whole or not there, and files that several people and processes change, one at a time."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from monitors.errors import GoldSetError, WarehouseUnwritable


def write_atomically(path: Path, pieces: Iterable[str]) -> None:
    """Writes UTF-8 text beside ``path``, brings it to disk, and puts it in place in one step.

    A reader sees the old file or the new one. The folder is made when it is missing. Raises
    ``WarehouseUnwritable`` naming the path when it cannot be written; no half file stays behind.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_beside_and_replace(path, pieces)
    except OSError as error:
        message = (
            f"{path}: cannot be written ({error.strerror or error}); give a folder that this user may write to"
        )
        raise WarehouseUnwritable(message) from error


def _write_beside_and_replace(path: Path, pieces: Iterable[str]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    beside.unlink(missing_ok=True)  # of a killed process that had the same number
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(beside, new, 0o666)  # the umask decides who may read it
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def alone_with(path: Path) -> Generator[None]:
    """Hold the folder of ``path`` against other processes that change a gold file in it. Made when it is not there.

    The folder and not the file, because replacing a file leaves its lock behind on the old one.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise GoldSetError(f"{folder} cannot be used: {error.strerror}; name one that you may write to") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def text_of(path: Path) -> str:
    """The text of a file, empty when it is not there. `GoldSetError` when it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise GoldSetError(f"{path}: not UTF-8 at byte {error.start + 1}; save it as UTF-8") from None
    except OSError as error:
        raise GoldSetError(f"{path} cannot be read: {error.strerror}") from None


def replace_text(path: Path, text: str) -> None:
    """Put ``text`` in the place of the file; after a kill the file is the old or the new one, never a part.

    The caller is `alone_with` it.
    """
    beside = path.with_name(f".{path.name}.writing")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise GoldSetError(f"{path} cannot be written: {error.strerror}") from None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
