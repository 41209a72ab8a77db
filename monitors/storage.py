"""Files that are whole or not there, and files that several people and processes change, one at a time.

Only here is a file put in another's place: written beside, brought to disk, renamed, its folder brought to disk.
No symbolic link is followed. ``within`` is the data folder: what is done below it is done through handles on its
folders, so that no link leads out of it, not even one that is planted meanwhile.
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
"""The rights of a new file before the process's umask takes some away."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Content = str | bytes | Iterable[str]
"""What a file holds; text, or pieces of it, is written as UTF-8."""

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


def write_atomically(path: Path, content: Content, *, mode: int | None = None, within: Path | None = None) -> None:
    """Write a file so that ``path`` is the old one or the whole new one, whatever happens, a power cut included.

    ``mode`` are its rights; without one the umask decides. Missing folders are made for their owner alone. Raises
    `WarehouseUnwritable` with the path and what to do; nothing stays beside.
    """
    try:
        with open_folder(path.parent, within=within or path.parent, make=True) as folder:
            _replace_file(folder, path.name, content, mode)
    except OSError as error:
        raise build_unwritable_error(path, error) from error


def write_once(path: Path, content: Content, *, within: Path | None = None) -> bool:
    """As `write_atomically`, but false where ``path`` exists: of two writers at once one is the first."""
    try:
        with (
            open_folder(path.parent, within=within or path.parent, make=True) as folder,
            _write_beside(folder, path.name, content) as written,
        ):
            try:  # unlike a rename, a link fails where there is a file
                os.link(written, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                return False
            os.fsync(folder)
    except OSError as error:
        raise build_unwritable_error(path, error) from error
    return True


def move(source: Path, destination: Path, *, within: Path | None = None) -> Path:
    """Rename in one step, in the place of what ``goal`` was, and bring that to disk. ``goal``. Raises `OSError`.

    With ``within``, which ``source`` may lie outside of, missing folders are made.
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
    with _write_beside(folder, name, content, mode) as written:
        os.replace(written, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


@contextmanager
def _write_beside(folder: int, name: str, content: Content, mode: int | None = None) -> Generator[str]:
    """A new file beside ``name``, on the disk. It is gone when the block is, unless that has moved it."""
    beside = f".{name}.{os.getpid()}-{threading.get_ident()}.part"
    try:
        # There is one only after a killed process with the same number.
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)  # of a killed process that had the same number
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_without_links(beside, new, mode or DEFAULT_FILE_MODE, folder=folder), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.writelines(_encode(content))
            file.flush()
            os.fsync(file.fileno())
        yield beside
    finally:
        # It was moved into place, or the first error says why it is still there.
        with suppress(OSError):
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
    """`os.open`, in the handle ``folder``, that follows no link: `OSError` (ELOOP) where ``path`` is one."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone and durably.

    One that stands already stays as it is: somebody may have opened it on purpose. Raises `WarehouseUnwritable`.
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
    """A handle on ``folder`` that no link below ``within`` led to; ``within`` may be a link itself.

    What is done through the handle is done in that folder, wherever its path leads meanwhile. With ``make`` what is
    missing is made as `private_folder` does. Raises `OSError`, also where a part of the path is a link.
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
    """Make renames in a folder durable. Raises `OSError`."""
    handle = os.open(folder, _FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def build_unwritable_error(path: Path, error: OSError) -> WarehouseUnwritable:
    """The error for a person: which path, why, what to do."""
    code = error.errno or 0
    advice = _ADVICE.get(code, "set data_folder in lookout.toml to a folder that can be written")
    return WarehouseUnwritable(f"cannot write {path}: {os.strerror(code) if code else error}; {advice}")


@contextmanager
def lock_folder(path: Path) -> Generator[None]:
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


def read_text_or_empty(path: Path) -> str:
    """The text of a file, empty when it is not there. `GoldSetError` when it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise GoldSetError(f"{path}: not UTF-8 at byte {error.start + 1}; save it as UTF-8") from None
    except OSError as error:
        raise GoldSetError(f"{path} cannot be read: {error.strerror}") from None


def replace_text(path: Path, text: str) -> None:
    """Put ``text`` in the place of a gold file, which keeps its rights. `GoldSetError` when it cannot be written.

    The caller is `alone_with` it.
    """
    try:
        with open_folder(path.parent, within=path.parent) as folder:
            _replace_file(folder, path.name, text, path.stat().st_mode & 0o777 if path.exists() else None)
    except OSError as error:
        raise GoldSetError(f"{path} cannot be written: {error.strerror}") from None
