"""Write files atomically, and lock folders against other processes.

Only this module replaces files: it writes a temporary file, then renames it. Symbolic links are not followed. The
parameter ``within`` is the data folder. No operation leaves this folder through a link, even if the link is created
during the operation.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from monitors.errors import GoldSetError, WarehouseUnwritable

OWNER_ONLY_MODE: Final = 0o600
OWNER_ONLY_FOLDER_MODE: Final = 0o700
DEFAULT_FILE_MODE: Final = 0o666
"""The permissions of a new file. The umask of the process can only remove permissions."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Content = str | bytes | Iterable[str]
"""The content of a file. A string, or a sequence of strings, is written as UTF-8."""

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is reached: free some space",
    errno.EFBIG: "the file size limit is reached: raise it (`ulimit -f`)",
    errno.EROFS: "the file system is read-only: choose another data folder",
    errno.EACCES: "no permission: make the folder writable for this user, or choose another data folder",
    errno.EPERM: "no permission: make the folder writable for this user, or choose another data folder",
    errno.ENOTDIR: "a part of the path is a file: move the file away, or choose another data folder",
    errno.EEXIST: (
        "a file exists at the path of a folder that Lookout needs: move the file away, or choose another data "
        "folder"
    ),
}


def write_atomically(path: Path, content: Content, *, mode: int | None = None, within: Path | None = None) -> None:
    """Write a file atomically.

    Even after a power failure, ``path`` contains either the complete old or the complete new content.

    ``mode`` is the permissions of the file. By default, the umask determines the permissions. Missing folders are
    created, and only their owner can read them. Raises `WarehouseUnwritable` with the path and the fix.
    """
    try:
        with open_folder(path.parent, within=within or path.parent, make=True) as folder:
            _replace_file(folder, path.name, content, mode)
    except OSError as error:
        raise build_unwritable_error(path, error) from error


def write_once(path: Path, content: Content, *, within: Path | None = None) -> bool:
    """Write a new file and return true. If ``path`` exists already, change nothing and return false.

    If two processes write the same file at once, only one of the calls returns true.
    """
    try:
        with (
            open_folder(path.parent, within=within or path.parent, make=True) as folder,
            _write_temporary_file(folder, path.name, content) as written,
        ):
            try:  # unlike a rename, a link fails if the file exists
                os.link(written, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                return False
            os.fsync(folder)
    except OSError as error:
        raise build_unwritable_error(path, error) from error
    return True


def move(source: Path, destination: Path, *, within: Path | None = None) -> Path:
    """Rename ``source`` to ``destination`` and return ``destination``. Raises `OSError`.

    If ``within`` is given, missing folders of ``destination`` are created. ``source`` may be outside ``within``.
    """
    inside = within is not None and source.is_relative_to(within)
    with (
        open_folder(source.parent, within=within if within and inside else source.parent) as here,
        open_folder(destination.parent, within=within or destination.parent, make=within is not None) as there,
    ):
        os.replace(source.name, destination.name, src_dir_fd=here, dst_dir_fd=there)
        os.fsync(there)
    return destination


def _replace_file(folder: int, name: str, content: Content, mode: int | None) -> None:
    with _write_temporary_file(folder, name, content, mode) as written:
        os.replace(written, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


@contextmanager
def _write_temporary_file(folder: int, name: str, content: Content, mode: int | None = None) -> Generator[str]:
    """Write ``content`` to a temporary file in the open folder ``folder``, and yield the temporary file's name.

    The caller renames the file to ``name``. At the end of the ``with`` block, the file is deleted unless it was
    renamed.
    """
    beside = f".{name}.{os.getpid()}-{threading.get_ident()}.part"
    try:
        with suppress(FileNotFoundError):  # a killed process with the same number may have left such a file
            os.unlink(beside, dir_fd=folder)
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_without_links(beside, new, mode or DEFAULT_FILE_MODE, folder=folder), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.writelines(_encode(content))
            file.flush()
            os.fsync(file.fileno())
        yield beside
    finally:
        with suppress(OSError):  # the file was renamed, or another error is raised already
            os.unlink(beside, dir_fd=folder)


def _encode(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
    else:
        pieces = (content,) if isinstance(content, str) else content
        yield from (piece.encode() for piece in pieces)


def open_without_links(
    path: Path | str, flags: int, mode: int = DEFAULT_FILE_MODE, *, folder: int | None = None
) -> int:
    """Open ``path`` in the open folder ``folder``. Raises `OSError` if ``path`` is a link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents. Only the owner can read the new folders.

    The permissions of an existing folder are not changed. Raises `WarehouseUnwritable`.
    """
    try:
        _make_folder(folder)
    except OSError as error:
        raise build_unwritable_error(Path(str(error.filename or folder)), error) from error


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=OWNER_ONLY_FOLDER_MODE, exist_ok=True)
    sync_folder(folder.parent)


@contextmanager
def open_folder(folder: Path, *, within: Path, make: bool = False) -> Generator[int]:
    """Open ``folder`` without following links inside ``within``. ``within`` itself may be a link.

    The folder stays open even if it is renamed. If ``make`` is true, missing folders are created as in
    `make_private_folder`. Raises `OSError` if a folder cannot be opened, or if a part of the path inside ``within``
    is a link.
    """
    if make:
        _make_folder(within)
    handle = os.open(within, _FOLDER)
    try:
        for part in folder.relative_to(within).parts:
            if make:
                _make_subfolder(handle, part)
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _make_subfolder(handle: int, name: str) -> None:
    try:
        os.mkdir(name, OWNER_ONLY_FOLDER_MODE, dir_fd=handle)
    except FileExistsError:
        return
    os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Write the changes in a folder to the disk, so that a power failure cannot undo a rename. Raises `OSError`."""
    handle = os.open(folder, _FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def build_unwritable_error(path: Path, error: OSError) -> WarehouseUnwritable:
    """Build the error for a path that cannot be written, with the reason and the fix."""
    code = error.errno or 0
    advice = _ADVICE.get(code, "set data_folder in lookout.toml to a writable folder")
    if code == errno.ENOSPC and _has_no_inodes(path):
        advice = "the file system has free space, but cannot create more files (no free inodes): delete files"
    return WarehouseUnwritable(f"cannot write {path}: {os.strerror(code) if code else error}; {advice}")


def _has_no_inodes(path: Path) -> bool:
    """Return whether the file system of ``path`` has free space, but cannot create more files."""
    folder = next((parent for parent in (path, *path.absolute().parents) if parent.is_dir()), None)
    if folder is None:
        return False
    room = os.statvfs(folder)
    return room.f_files > 0 and room.f_favail == 0 and room.f_bavail > 0


@contextmanager
def lock_parent_folder(path: Path) -> Generator[None]:
    """Lock the folder of ``path`` against other processes that change gold files.

    Create the folder if it is missing. The lock is on the folder, because a lock on the gold file would be lost
    when this file is replaced.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise GoldSetError(f"{folder} cannot be used: {error.strerror}; choose a writable folder") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_text_or_empty(path: Path) -> str:
    """Return the content of a text file, or an empty string if the file does not exist.

    Raises `GoldSetError` if the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise GoldSetError(f"{path}: not UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None
    except OSError as error:
        raise GoldSetError(f"{path} cannot be read: {error.strerror}") from None


def replace_gold_file(path: Path, text: str) -> None:
    """Replace the content of a gold file, and preserve its permissions. Raises `GoldSetError`.

    The caller must hold the lock of `lock_parent_folder`.
    """
    try:
        with open_folder(path.parent, within=path.parent) as folder:
            _replace_file(folder, path.name, text, path.stat().st_mode & 0o777 if path.exists() else None)
    except OSError as error:
        raise GoldSetError(f"{path} cannot be written: {error.strerror}") from None
