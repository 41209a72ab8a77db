"""Following a log through appends, rotation, truncation and restarts: every line once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from monitors.records.base import Identifier
from monitors.records.logs import FileMark, LogCursor, LogNotice
from monitors.sources.file_mark import mark
from monitors.sources.log_files import LogFiles
from monitors.sources.log_lines import LogLine, complete_lines, rest_of
from monitors.sources.log_plan import Stretch, plan

WATCHED_GENERATIONS = 16
"""Earlier files that are looked at again: more than any rotation scheme keeps within the life of a writer."""


class Limits(NamedTuple):
    """What bounds memory: the longest line kept whole, and how much one batch holds."""

    longest_bytes: int = 1 << 20
    batch_bytes: int = 4 << 20
    batch_lines: int = 5_000


DEFAULT_LIMITS = Limits()

NOTHING_READ = FileMark(generation=0, offset=0, tail_bytes=0, tail_sha256=hashlib.sha256(b"").hexdigest())
"""Where reading of a log stands that nobody has seen yet."""


class LogBatch(NamedTuple):
    """Lines in the order in which they were written, and where reading stands after them.

    Store lines, notices and cursor in one step: then a crash at any moment neither skips nor repeats.
    """

    lines: tuple[LogLine, ...]
    cursor: LogCursor
    notices: tuple[LogNotice, ...] = ()


def follow(
    files: LogFiles,
    log: Identifier,
    cursor: LogCursor | None,
    *,
    is_whole: Callable[[bytes], bool],
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[LogBatch]:
    """All that was added since ``cursor``, in batches; none when nothing happened.

    ``is_whole`` says of a last line without a line's end whether it can be taken as it is: some writers put the
    line's end before each entry. What is not whole waits.
    """
    planned = plan(files, log, cursor)
    reading = _Reading(log, cursor, is_whole, limits, history_to=files.newest.size if files.newest else 0)
    if planned.notices:
        yield reading.batch((), planned.notices) if cursor is None else LogBatch((), cursor, planned.notices)
    for stretch in planned.stretches:
        yield from reading.read(stretch)
    if files.newest is not None:
        reading.modified_ns = files.newest.modified_ns
    if reading.moved:
        yield reading.batch(())


class _Reading:
    """Where reading stands while the stretches of one look are read."""

    def __init__(
        self,
        log: Identifier,
        cursor: LogCursor | None,
        is_whole: Callable[[bytes], bool],
        limits: Limits,
        *,
        history_to: int,
    ) -> None:
        self._log, self._is_whole, self._limits = log, is_whole, limits
        self._history_to = cursor.history_to if cursor else history_to
        self._current = cursor.current if cursor else NOTHING_READ
        self._earlier = cursor.earlier if cursor else ()
        self.modified_ns = cursor.modified_ns if cursor else 0
        self._told = cursor

    @property
    def moved(self) -> bool:
        """Whether anything is known now that was not when it was last told."""
        return self._told is None or self._standing(self._told.sequence) != self._told

    def batch(self, lines: tuple[LogLine, ...], notices: tuple[LogNotice, ...] = ()) -> LogBatch:
        """What was read, and the next step's cursor."""
        self._told = self._standing(1 if self._told is None else self._told.sequence + 1)
        return LogBatch(lines, self._told, notices)

    def _standing(self, sequence: int) -> LogCursor:
        return LogCursor(
            log=self._log,
            sequence=sequence,
            current=self._current,
            earlier=self._earlier,
            modified_ns=self.modified_ns,
            history_to=self._history_to,
        )

    def read(self, stretch: Stretch) -> Iterator[LogBatch]:
        """The stretch in batches; a batch ends where a line ends."""
        lines: list[LogLine] = []
        held, offset = 0, stretch.start
        longest = self._limits.longest_bytes
        for line in complete_lines(stretch.file, stretch.start, stretch.generation, longest_bytes=longest):
            lines.append(line)
            held, offset = held + len(line.raw), line.offset + line.length + 1
            if held >= self._limits.batch_bytes or len(lines) >= self._limits.batch_lines:
                self._place(mark(stretch.file, offset, stretch.generation))
                yield self.batch(tuple(lines))
                lines, held = [], 0
        rest = rest_of(stretch.file, offset, stretch.generation, longest_bytes=longest)
        if rest.length == len(rest.raw) > 0 and self._is_whole(rest.raw):
            lines.append(rest)
            offset += rest.length
        self._place(mark(stretch.file, offset, stretch.generation))
        if lines:
            yield self.batch(tuple(lines))

    def _place(self, reached: FileMark) -> None:
        """Put a mark where it belongs: an earlier file's, the current one's, or that of a file begun anew."""
        current = self._current
        if current.generation == reached.generation:
            self._current = reached
        elif reached.generation < current.generation:
            self._earlier = tuple(
                reached if known.generation == reached.generation else known for known in self._earlier
            )
        else:
            read = (current,) if current.offset > 0 else ()
            self._earlier = (*read, *self._earlier)[:WATCHED_GENERATIONS]
            self._current = reached
