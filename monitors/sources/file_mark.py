"""Marks: knowing a file again by what was read of it."""

from __future__ import annotations

import hashlib

from monitors.records.logs import FileMark
from monitors.sources.log_files import LogFile

STARTS = (64, 256, 1_024, 4_096, 16_384, 65_536)
"""Bytes at the start of a file that are digested. An entry with a time and a text is longer than the first."""
TAIL_BYTES = 4_096
"""With a time in every line, down to the second at least, two logs that agree so far are one."""


def mark(file: LogFile, offset: int, generation: int) -> FileMark:
    """The mark of a file that was read up to ``offset``."""
    tail = min(TAIL_BYTES, offset)
    return FileMark(
        generation=generation,
        offset=offset,
        starts_sha256=tuple(_digest(file.read(0, length)) for length in STARTS if length <= offset),
        tail_bytes=tail,
        tail_sha256=_digest(file.read(offset - tail, tail)),
    )


def is_same(file: LogFile, known: FileMark) -> bool:
    """Whether this is the marked file, perhaps longer by now. A file of which nothing was read is any file."""
    if file.size < known.offset or (known.starts_sha256 and not _starts_alike(file, known)):
        return False
    return _digest(file.read(known.offset - known.tail_bytes, known.tail_bytes)) == known.tail_sha256


def is_older_copy(file: LogFile, known: FileMark) -> bool:
    """Whether this is a copy of the marked file from a time when less of it was there: all of it was read."""
    return file.size < known.offset and _starts_alike(file, known)


def common_start(file: LogFile, known: FileMark) -> int:
    """Up to which line's end a file that took the marked one's place begins with what was already read."""
    if is_older_copy(file, known):
        return file.size
    agreed = [
        length
        for length, digest in zip(STARTS, known.starts_sha256, strict=False)
        if length <= file.size and _digest(file.read(0, length)) == digest
    ]
    return file.read(0, agreed[-1]).rfind(b"\n") + 1 if agreed else 0


def _starts_alike(file: LogFile, known: FileMark) -> bool:
    lengths = [length for length in STARTS[: len(known.starts_sha256)] if length <= file.size]
    return bool(lengths) and _digest(file.read(0, lengths[-1])) == known.starts_sha256[len(lengths) - 1]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
