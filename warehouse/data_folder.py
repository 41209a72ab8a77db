"""The data folder holds what the application really said: it is its owner's alone, and nothing in it leads out."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from monitors.errors import ConfigError

OWNER_ONLY_FOLDER: Final = 0o700
ANYBODY_BY_UMASK: Final = 0o666
"""The rights of a new file before the process's umask takes some away."""

HOLDING_FILES: Final = ("journal", "runs", "deploys", "sessions")
"""Folders inside it whose entries are inspected too."""


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone and durably. Raises `OSError`.

    One that stands already stays as it is: somebody may have opened it on purpose.
    """
    if folder.is_dir():
        return
    private_folder(folder.parent)
    folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_in_place(path: Path, flags: int) -> int:
    """`os.open` that follows no link: `OSError` (ELOOP) where ``path`` is one."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, ANYBODY_BY_UMASK)


@contextmanager
def lock_file(path: Path) -> Generator[TextIO]:
    """A file to lock by, made when it is missing. Raises `OSError`, also where it is a link."""
    with opened_for_lock(path) as lock:
        yield lock


def opened_for_lock(path: Path) -> TextIO:
    """As `lock_file`, for whoever holds it longer than a block."""
    return os.fdopen(open_in_place(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+", encoding="utf-8")


def new_file(path: Path) -> int:
    """A new file for writing in the place of whatever a killed writer, or somebody else, left there. `OSError`."""
    path.unlink(missing_ok=True)
    return open_in_place(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


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
