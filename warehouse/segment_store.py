"""Where segments lie: a local folder, written so that a segment is there as a whole or not at all."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from monitors.errors import WarehouseUnwritable

SUFFIX = ".jsonl"
SET_ASIDE = "_damaged"
"""The folder that damaged segments are moved to: kept for a person, never read again."""

STALE_AFTER = timedelta(hours=1)
"""A temporary file this old belongs to a writer that was killed: writing one takes milliseconds."""

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


class SegmentStore(Protocol):
    """A place for segments. A name is ``folder/segment-id.jsonl``."""

    def put(self, name: str, data: bytes) -> None:
        """Keep ``data`` under ``name``; durable and whole when this returns. Raises `WarehouseUnwritable`."""
        ...

    def get(self, name: str) -> bytes:
        """The bytes of a segment. Raises `FileNotFoundError`."""
        ...

    def names(self, folder: str | None = None) -> Sequence[str]:
        """All whole segments (of one folder), sorted by segment id. Temporary and set-aside files are left out."""
        ...

    def others(self, folder: str, suffix: str) -> Sequence[str]:
        """Whole files of another kind in a folder, sorted: archives and their manifests."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file; one that is gone is no error. Raises `WarehouseUnwritable`."""
        ...

    def put_file(self, name: str, file: Path) -> None:
        """Keep a local file under ``name`` and remove it where it was. Raises `WarehouseUnwritable`."""
        ...

    def as_file(self, name: str, scratch: Path) -> Path:
        """A local file with the content of ``name``, where needed copied to ``scratch``. `FileNotFoundError`."""
        ...

    def set_aside(self, name: str) -> str:
        """Move a damaged segment out of the way and say where to."""
        ...

    def set_aside_names(self) -> Sequence[str]:
        """Where each damaged segment waits for a person."""
        ...

    def sweep(self, now: datetime) -> int:
        """Remove what killed writers left behind; how many files."""
        ...

    def place(self, name: str) -> str:
        """Where a segment lies, for a person."""
        ...


class LocalSegments:
    """Segments in a local folder: written beside, fsynced, renamed, the folder fsynced."""

    def __init__(self, folder: Path) -> None:
        self._root = folder

    def put(self, name: str, data: bytes) -> None:
        """Keep a segment; when this returns it survives a power cut."""
        path = self._root / name
        try:
            make_folder(path.parent)
            write_atomically(path, data)
        except OSError as error:
            raise unwritable(path, error) from error

    def get(self, name: str) -> bytes:
        """The bytes of a segment."""
        return (self._root / name).read_bytes()

    def names(self, folder: str | None = None) -> Sequence[str]:
        """All whole segments (of one folder), sorted by segment id."""
        folders = self._folders() if folder is None else [folder]
        found = [f"{each}/{file}" for each in folders for file in self._files(each) if file.endswith(SUFFIX)]
        return sorted((name for name in found if "/." not in name), key=segment_id_of)

    def others(self, folder: str, suffix: str) -> Sequence[str]:
        """Whole files of another kind in a folder, sorted."""
        return sorted(
            f"{folder}/{file}" for file in self._files(folder) if file.endswith(suffix) and not file.startswith(".")
        )

    def delete(self, name: str) -> None:
        """Remove a file; one that is gone is no error."""
        try:
            (self._root / name).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self._root / name, error) from error

    def put_file(self, name: str, file: Path) -> None:
        """Move a local file to its place, whole and durable."""
        path = self._root / name
        try:
            make_folder(path.parent)
            sync_file(file)
            file.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            raise unwritable(path, error) from error

    def as_file(self, name: str, scratch: Path) -> Path:  # noqa: ARG002 - a local file needs no copy
        """The file itself."""
        path = self._root / name
        if not path.is_file():
            raise FileNotFoundError(path)
        return path

    def set_aside(self, name: str) -> str:
        """Move a damaged segment to the folder of damaged ones, under a name that tells where it was."""
        goal = self._root / SET_ASIDE / name.replace("/", "__")
        try:
            make_folder(goal.parent)
            (self._root / name).rename(goal)
            sync_folder(goal.parent)
        except OSError as error:
            raise unwritable(goal, error) from error
        return str(goal)

    def set_aside_names(self) -> Sequence[str]:
        """Where each damaged segment waits for a person."""
        return sorted(str(self._root / SET_ASIDE / file) for file in self._files(SET_ASIDE))

    def sweep(self, now: datetime) -> int:
        """Remove temporary files older than an hour: their writers were killed."""
        stale = [path for path in self._temporary() if _age(path, now) > STALE_AFTER]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)

    def place(self, name: str) -> str:
        """The path of a segment."""
        return str(self._root / name)

    def _folders(self) -> list[str]:
        return [name for name in _entries(self._root, files=False) if name != SET_ASIDE]

    def _files(self, folder: str) -> list[str]:
        return _entries(self._root / folder, files=True)

    def _temporary(self) -> Iterator[Path]:
        for folder in self._folders():
            yield from (self._root / folder / file for file in self._files(folder) if file.startswith("."))


def segment_id_of(name: str) -> str:
    """The segment id in a name."""
    return name.rpartition("/")[2].removesuffix(SUFFIX)


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` is the old file or the whole new one, whatever happens. Raises `OSError`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and make its entry in each parent durable. Raises `OSError`."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_file(file: Path) -> None:
    """Make a file's content durable. Raises `OSError`."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def unwritable(path: Path, error: OSError) -> WarehouseUnwritable:
    """The error for a person: which path, why, what to do."""
    code = error.errno or 0
    advice = _ADVICE.get(code, "check the data folder")
    return WarehouseUnwritable(f"cannot write {path}: {os.strerror(code) if code else error}; {advice}")


def _entries(folder: Path, *, files: bool) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return [entry.name for entry in found if entry.is_file() is files]
    except (FileNotFoundError, NotADirectoryError):
        return []  # writing there says what is wrong


def _age(path: Path, now: datetime) -> timedelta:
    try:
        return now - datetime.fromtimestamp(path.stat().st_mtime, tz=now.tzinfo)
    except FileNotFoundError:
        return timedelta(0)
