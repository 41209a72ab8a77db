"""Protect the data folder, which contains real replies. Only the folder's owner has access.

Symbolic links are not allowed.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from monitors.errors import ConfigError
from monitors.storage import build_unwritable_error, open_folder, open_without_links

INSPECTED_FOLDERS: Final = ("journal", "runs", "deploys", "sessions")
"""Subfolders of the data folder whose entries are also checked for symbolic links."""


@contextmanager
def open_lock_file(path: Path) -> Generator[TextIO]:
    """Open a lock file, and create it if it is missing.

    Raises `WarehouseUnwritable` if the file is a symbolic link or cannot be opened.
    """
    with open_lock_handle(path) as lock:
        yield lock


def open_lock_handle(path: Path, *, within: Path | None = None) -> TextIO:
    """Open a lock file, and return the open handle, which the caller must close. See `open_lock_file`.

    ``within`` is the data folder. If ``within`` is given, missing folders inside the data folder are created, and
    symbolic links inside the data folder raise `WarehouseUnwritable`.
    """
    try:
        with open_folder(path.parent, within=within or path.parent, make=within is not None) as folder:
            handle = open_without_links(path.name, os.O_RDWR | os.O_CREAT | os.O_APPEND, folder=folder)
    except OSError as error:
        raise build_unwritable_error(path, error) from error
    return os.fdopen(handle, "a+", encoding="utf-8")


def refuse_symbolic_links(data_folder: Path) -> None:
    """Raise `ConfigError` if an entry of the data folder or of its `INSPECTED_FOLDERS` is a symbolic link.

    The data folder itself may be a link.
    """
    for place in (data_folder, *(data_folder / name for name in INSPECTED_FOLDERS)):
        for link in _iterate_links(place):
            raise ConfigError(
                f"{link} is a symbolic link. A data folder must not contain links, because data would be written "
                "outside the folder. Replace the link with the folder or file to which it points, or set "
                "data_folder to a folder on the disk that you want to use"
            )


def _iterate_links(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # the next write to the folder reports the error
