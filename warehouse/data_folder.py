"""The data folder holds what the application really said: it is its owner's alone, and nothing in it leads out."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from monitors.errors import ConfigError, WarehouseUnwritable

OWNER_ONLY_FOLDER: Final = 0o700
ANYBODY_BY_UMASK: Final = 0o666
"""The rights of a new file before the process's umask takes some away."""

HOLDING_FILES: Final = ("journal", "runs", "deploys", "sessions")
"""Folders inside it whose entries are inspected too."""


_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is reached: free some space",
    errno.EFBIG: "the file size limit is reached: raise it (`ulimit -f`)",
    errno.EROFS: "the file system is read-only: choose another data folder",
    errno.EACCES: "no permission: make the folder writable for this user or choose another data folder",
    errno.EPERM: "no permission: make the folder writable for this user or choose another data folder",
    errno.ENOTDIR: "a part of the path is a file: move it away or choose another data folder",
    errno.EEXIST: "a file stands where a folder must be: move it away or choose another data folder",
}


def unwritable(path: Path, error: OSError) -> WarehouseUnwritable:
    """The error for a person: which path, why, what to do."""
    code = error.errno or 0
    advice = _ADVICE.get(code, "check the data folder")
    return WarehouseUnwritable(f"cannot write {path}: {os.strerror(code) if code else error}; {advice}")


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone and durably.

    One that stands already stays as it is: somebody may have opened it on purpose. Raises `WarehouseUnwritable`.
    """
    if folder.is_dir():
        return
    private_folder(folder.parent)
    try:
        folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
        sync_folder(folder.parent)
    except OSError as error:
        raise unwritable(folder, error) from error


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def held_folder(folder: Path, *, within: Path, make: bool = False) -> Generator[int]:
    """A handle on ``folder`` that no link below ``within`` led to; ``within`` may be a link itself.

    What is done through the handle is done in that folder, wherever its path leads meanwhile. With ``make`` what is
    missing is made as `private_folder` does. Raises `OSError`, also where a part of the path is a link.
    """
    if make:
        private_folder(within)
    handle = os.open(within, _FOLDER)
    try:
        for part in folder.relative_to(within).parts:
            if make:
                _make_in(handle, part)
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _make_in(handle: int, name: str) -> None:
    try:
        os.mkdir(name, OWNER_ONLY_FOLDER, dir_fd=handle)
    except FileExistsError:
        return
    os.fsync(handle)


def open_in_place(path: Path | str, flags: int, *, folder: int | None = None) -> int:
    """`os.open`, in the handle ``folder``, that follows no link: `OSError` (ELOOP) where ``path`` is one."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, ANYBODY_BY_UMASK, dir_fd=folder)


@contextmanager
def lock_file(path: Path) -> Generator[TextIO]:
    """A file to lock by, made when it is missing. Raises `WarehouseUnwritable`, also where it is a link."""
    with opened_for_lock(path) as lock:
        yield lock


def opened_for_lock(path: Path) -> TextIO:
    """As `lock_file`, for whoever holds it longer than a block."""
    try:
        handle = open_in_place(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        raise unwritable(path, error) from error
    return os.fdopen(handle, "a+", encoding="utf-8")


def new_file(path: Path | str, *, folder: int | None = None) -> int:
    """A new file for writing in the place of whatever a killed writer, or somebody else, left there. `OSError`.

    ``folder`` as in `open_in_place`.
    """
    with suppress(FileNotFoundError):
        os.unlink(path, dir_fd=folder)
    return open_in_place(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder)


def refuse_links(data_folder: Path) -> None:
    """Raise `ConfigError` where something in the data folder is a symbolic link. It may be one itself."""
    for place in (data_folder, *(data_folder / name for name in HOLDING_FILES)):
        for link in _links(place):
            raise ConfigError(
                f"{link} is a symbolic link, and nothing in a data folder may be: what is written there ends up "
                "elsewhere. Put what it leads to in its place, or set data_folder to a folder on the disk you want"
            )


def _links(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # writing there says what is wrong
