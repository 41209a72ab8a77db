"""Lines out of a growing file, in bounded memory, each with its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from monitors.sources.log_files import LogFile

CHUNK_BYTES = 1 << 20


class LogLine(NamedTuple):
    """One line as it stands in the log, without its end. The same text at another place is another line.

    ``length`` is in bytes; it exceeds that of ``raw`` where only the start was kept.
    """

    generation: int
    offset: int
    raw: bytes
    length: int
    sha256: str


def complete_lines(file: LogFile, start: int, generation: int, *, longest_bytes: int) -> Iterator[LogLine]:
    """Every line from ``start`` that has its end. Of one longer than ``longest_bytes`` only the start is kept.

    Memory stays within a chunk and the longest line. A last line without an end is left for another time.
    """
    place, open_line = start, _OpenLine(start, longest_bytes)
    while chunk := file.read(place, CHUNK_BYTES):
        place += len(chunk)
        first, *pieces = chunk.split(b"\n")
        open_line.add(first)
        if not pieces:
            continue
        yield open_line.closed(generation)
        offset = open_line.end + 1
        for piece in pieces[:-1]:
            yield _whole(generation, offset, piece, longest_bytes)
            offset += len(piece) + 1
        open_line = _OpenLine(offset, longest_bytes)
        open_line.add(pieces[-1])


def rest_of(file: LogFile, start: int, generation: int, *, longest_bytes: int) -> LogLine:
    """What stands from ``start`` to the end of the file, as one line: it has no line's end."""
    line = _OpenLine(start, longest_bytes)
    place = start
    while chunk := file.read(place, CHUNK_BYTES):
        place += len(chunk)
        line.add(chunk)
    return line.closed(generation)


def _whole(generation: int, offset: int, line: bytes, longest_bytes: int) -> LogLine:
    """A line that lies in one chunk, as nearly all do."""
    return LogLine(generation, offset, line[:longest_bytes], len(line), hashlib.sha256(line).hexdigest())


class _OpenLine:
    """A line whose end has not come yet."""

    def __init__(self, offset: int, longest_bytes: int) -> None:
        self.end = self._offset = offset
        self._longest, self._kept, self._digest = longest_bytes, b"", hashlib.sha256()

    def add(self, piece: bytes) -> None:
        self.end += len(piece)
        self._digest.update(piece)
        self._kept += piece[: max(0, self._longest - len(self._kept))]

    def closed(self, generation: int) -> LogLine:
        return LogLine(
            generation=generation,
            offset=self._offset,
            raw=self._kept,
            length=self.end - self._offset,
            sha256=self._digest.hexdigest(),
        )
