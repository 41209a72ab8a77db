"""The identity of a data folder, which shows whether a folder was renamed or copied.

The file ``identity.json`` contains its own inode number and creation time. The file keeps both if the folder is
renamed, or if a container is created again on the same volume. If the file is copied, the copy's inode number and
creation time differ from those that it contains, except in a copy of a whole disk.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from pydantic import ValidationError

from monitors.errors import ConfigError
from monitors.records.base import Record, UtcTime
from monitors.storage import build_unwritable_error, make_private_folder
from warehouse.data_folder import open_lock_file

IDENTITY_FILE: Final = "identity.json"

_AT_EMPTY_PATH: Final = 0x1000
_STATX_BTIME: Final = 0x800
_STATX_SIZE: Final = 256
_BTIME_OFFSET: Final = 80
"""Position of the creation time in Linux's ``struct statx``. Python 3.11 cannot read this time on Linux."""


class FolderIdentity(Record):
    """The identity of a data folder.

    ``inode`` and ``born_ns`` (the creation time) describe the identity file. Host and path are used only in
    messages. ``copied_at`` is the time at which a person confirmed that the folder is a copy. Runs and alerts from
    before this time belong to the original folder.
    """

    id: str
    inode: int
    born_ns: int | None
    created_at: UtcTime
    host: str
    path: Path
    copied_at: UtcTime | None = None

    def is_original_file(self, handle: int) -> bool:
        """Return whether ``handle`` is open on the original identity file, and not on a copy."""
        born_ns = _read_birth_ns(handle)
        is_born_then = self.born_ns is None or born_ns is None or self.born_ns == born_ns
        return self.inode == os.fstat(handle).st_ino and is_born_then


def read_identity(data_folder: Path) -> FolderIdentity | None:
    """Read the identity of a folder. Returns ``None`` if the folder has no identity yet.

    Raises `CopiedFolder` if the folder is a copy, and `ConfigError` if the identity file is damaged.
    """
    try:
        with (data_folder / IDENTITY_FILE).open(encoding="utf-8") as file:
            text = file.read()
            identity = _parse_identity(data_folder, text) if text else None
            is_copy = identity is not None and not identity.is_original_file(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        return None
    if identity is not None and is_copy:
        raise CopiedFolder(_format_copy_error(data_folder, identity))
    return identity


class CopiedFolder(ConfigError):
    """Raised if the data folder is a copy, and it is unknown whether the original folder is still used."""


def create_or_check_identity(data_folder: Path, *, new_id: str, at: UtcTime, moved: bool = False) -> None:
    """Give a new folder the identity ``new_id``, or check the identity of an existing folder.

    Raises `CopiedFolder` for a copy. If ``moved`` is true, the original folder no longer exists, and the copy takes
    over the identity of the original. Raises `ConfigError` for a damaged identity file, and `WarehouseUnwritable`.
    """
    with _lock_identity(data_folder) as file:
        text = file.read()
        before = _parse_identity(data_folder, text) if text else None
        if before is None:
            _write_identity(file, data_folder, new_id, at)
        elif not before.is_original_file(file.fileno()):
            if not moved:
                raise CopiedFolder(_format_copy_error(data_folder, before))
            _write_identity(file, data_folder, before.id, before.created_at, before.copied_at)


def assign_new_identity(data_folder: Path, *, new_id: str, at: UtcTime) -> None:
    """Give a copied folder the new identity ``new_id``. Raises `WarehouseUnwritable`."""
    with _lock_identity(data_folder) as file:
        _write_identity(file, data_folder, new_id, at, at)


@contextmanager
def _lock_identity(data_folder: Path) -> Generator[TextIO]:
    """Open the identity file, and lock it against other processes."""
    make_private_folder(data_folder)
    with open_lock_file(data_folder / IDENTITY_FILE) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def _write_identity(
    file: TextIO, data_folder: Path, folder_id: str, created_at: UtcTime, copied_at: UtcTime | None = None
) -> None:
    """Write the identity into the existing file, because a new file would have another inode number."""
    identity = FolderIdentity(
        id=folder_id,
        inode=os.fstat(file.fileno()).st_ino,
        born_ns=_read_birth_ns(file.fileno()),
        created_at=created_at,
        host=platform.node(),
        path=data_folder.absolute(),
        copied_at=copied_at,
    )
    try:
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), f"{identity.model_dump_json()}\n".encode())
        os.fsync(file.fileno())
    except OSError as error:
        raise build_unwritable_error(data_folder / IDENTITY_FILE, error) from error


def _parse_identity(data_folder: Path, text: str) -> FolderIdentity:
    try:
        return FolderIdentity.model_validate_json(text)
    except ValidationError:
        raise ConfigError(
            f"{data_folder / IDENTITY_FILE} cannot be read: it does not contain the JSON that Lookout wrote. If "
            "this folder is not a copy, delete the file: the next command writes a new file"
        ) from None


def _format_copy_error(data_folder: Path, identity: FolderIdentity) -> str:
    return (
        f"{data_folder} is a copy of the data folder that was created as {identity.path} on {identity.host}. "
        "If the original folder no longer exists, add --moved: the copy then continues with the original's "
        "incidents. If both folders remain in use, add --copy: the copy then does not send the messages of "
        "the original. Use these options with `lookout up`, `verify`, `nightly`, `watch` or `down`"
    )


def _read_birth_ns(handle: int) -> int | None:
    """Return the creation time of an open file in nanoseconds since 1970.

    Returns ``None`` if the system does not provide the creation time.
    """
    born = getattr(os.fstat(handle), "st_birthtime", None)
    if born is not None:
        return int(born * 1e9)
    if sys.platform != "linux":
        return None
    buffer = ctypes.create_string_buffer(_STATX_SIZE)
    try:
        failed = ctypes.CDLL(None).statx(handle, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer)
    except AttributeError:  # a C library without statx
        return None
    (mask,) = struct.unpack_from("=I", buffer)
    if failed or not mask & _STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _BTIME_OFFSET)
    return seconds * 1_000_000_000 + nanoseconds
