"""The files of a log as they stand at one moment: the newest, and those that rotation has put aside."""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from monitors.errors import SourceUnavailable


class LogFile(Protocol):
    """A file that holds still while it is read: it may only grow."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def size(self) -> int:
        """Bytes when it was opened."""
        ...

    @property
    def archive(self) -> bool:
        """Whether it is packed: nothing is ever added to it."""
        ...

    @property
    def modified_ns(self) -> int:
        """When it was last written to, in nanoseconds by its own file system's clock."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``, fewer only at its end; none from beyond ``size``."""
        ...


class LogFiles(NamedTuple):
    """What there was at one look: the newest file, if there is one, and the rotated ones, oldest first."""

    newest: LogFile | None
    rotated: Sequence[LogFile]


class LogPlace(Protocol):
    """Where a log lies."""

    def look(self) -> AbstractContextManager[LogFiles]:
        """The files, open until the context ends. `SourceUnavailable` when nobody answers."""
        ...


class LocalLog:
    """A log on this machine. Every file is opened before its size is asked: a rename changes nothing after that.

    Rotated files are those beside it whose name begins with its own (``x.jsonl.1``, ``x.jsonl-20261122``), or that
    match ``rotated``, a glob pattern. What ends in ``.gz`` is read unpacked.
    """

    def __init__(self, path: Path, *, rotated: str | None = None) -> None:
        self._path = path
        self._pattern = rotated or f"{glob.escape(path.name)}?*"

    @contextmanager
    def look(self) -> Generator[LogFiles]:
        """The files, open until the context ends. `SourceUnavailable` names the one that cannot be read."""
        with ExitStack() as stack:
            newest = _opened(self._path, stack)
            beside = sorted(self._path.parent.glob(self._pattern)) if self._path.parent.is_dir() else []
            seen = {newest.identity} if newest else set[tuple[int, int]]()
            rotated: list[LogFile] = []
            for path in beside:
                file = _opened(path, stack) if path != self._path else None
                if file is not None and file.identity not in seen:  # renamed between two opens
                    seen.add(file.identity)
                    rotated.append(file)
            yield LogFiles(newest, sorted(rotated, key=lambda file: file.modified_ns))


class _PlainFile:
    """An open file of this machine. What is appended after its size was asked is left for the next look."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.archive, status = False, os.fstat(stream.fileno())
        self.name, self.size, self.modified_ns = name, status.st_size, status.st_mtime_ns
        self.identity = status.st_dev, status.st_ino
        self._stream = stream

    def read(self, start: int, length: int) -> bytes:
        if start >= self.size:
            return b""
        self._stream.seek(start)
        return self._stream.read(min(length, self.size - start))


class _ArchivedFile:
    """A file that rotation packed, read unpacked. Its size costs a whole unpacking, so it is asked for late."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.archive, status = True, os.fstat(stream.fileno())
        self.name, self.modified_ns = name, status.st_mtime_ns
        self.identity = status.st_dev, status.st_ino
        self._unpacked = gzip.GzipFile(fileobj=stream)
        self._size: int | None = None

    @property
    def size(self) -> int:
        if self._size is None:
            self._size = self._unpacked_size()
        return self._size

    def _unpacked_size(self) -> int:
        try:
            return self._unpacked.seek(0, os.SEEK_END)
        except (EOFError, OSError, zlib.error):
            return 0  # still being written, or no archive at all: the next look finds it whole

    def read(self, start: int, length: int) -> bytes:
        if start >= self.size:
            return b""
        self._unpacked.seek(start)
        return self._unpacked.read(length)


def _opened(path: Path, stack: ExitStack) -> _PlainFile | _ArchivedFile | None:
    try:
        stream = stack.enter_context(path.open("rb"))
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise SourceUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error
    return _ArchivedFile(path.name, stream) if path.suffix == ".gz" else _PlainFile(path.name, stream)
