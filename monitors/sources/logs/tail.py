"""Following a log through appends, rotation, truncation and restarts: every line once.

Lines come out of a growing file in bounded memory, each with its place. Marks recognize a file by what was read of
it. The stretches to read next follow from what is known and what lies there, which is pure but for reading.

The rules, in the order in which a poll of the files applies them:

- The newest file is the one that was being read: go on where reading stopped.
- It is not, but a rotated file is (renamed, or copied before the newest was emptied): finish that, then read what
  came between, then the newest from its start.
- Nowhere is it found: what was written to it after the last poll is missing. A warning says so, and the newest is
  read from its start, save for a beginning that was already read.
- Files of earlier generations may still grow, as long as their writer holds them open: what was added is read too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from monitors.records.base import Identifier
from monitors.records.logs import FileMark, LogCursor, LogWarning, LogWarningKind
from monitors.sources.logs.files import LogFile, LogFiles

CHUNK_BYTES = 1 << 20


class LogLine(NamedTuple):
    """One line as it stands in the log, without its end. The same text at another place is another line.

    ``length`` is in bytes; it exceeds that of ``raw`` where only the start was stored.
    """

    generation: int
    offset: int
    raw: bytes
    length: int
    sha256: str


def complete_lines(file: LogFile, start: int, generation: int, *, longest_bytes: int) -> Iterator[LogLine]:
    """Every line from ``start`` that has its end. Of one longer than ``longest_bytes`` only the start is stored.

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
        self._longest, self._bytes, self._digest = longest_bytes, b"", hashlib.sha256()

    def add(self, piece: bytes) -> None:
        self.end += len(piece)
        self._digest.update(piece)
        self._bytes += piece[: max(0, self._longest - len(self._bytes))]

    def closed(self, generation: int) -> LogLine:
        return LogLine(
            generation=generation,
            offset=self._offset,
            raw=self._bytes,
            length=self.end - self._offset,
            sha256=self._digest.hexdigest(),
        )


STARTS = (64, 256, 1_024, 4_096, 16_384, 65_536)
"""Bytes at the start of a file that are digested. An entry with a time and a text is longer than the first."""
TAIL_BYTES = 4_096
"""With a time in every line, down to the second at least, two logs that agree in so many bytes are one."""


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


class Stretch(NamedTuple):
    """Read ``file`` from ``start`` to its end, as part of ``generation``."""

    file: LogFile
    start: int
    generation: int


class Plan(NamedTuple):
    """Stretches in the order in which their lines were written, and what is to be said of the log."""

    stretches: tuple[Stretch, ...]
    issues: tuple[LogWarning, ...] = ()


def plan(files: LogFiles, log: Identifier, cursor: LogCursor | None) -> Plan:
    """What to read at this poll. Without a cursor, the newest file from its start; rotated ones are history."""
    if cursor is None:
        return Plan((Stretch(files.newest, 0, 0),)) if files.newest else Plan((), (_never_there(log),))
    late = _late(files, cursor)
    current = cursor.current
    if files.newest is not None and current.offset > 0 and is_same(files.newest, current):
        return Plan((*late, Stretch(files.newest, current.offset, current.generation)))
    moved = _moved(files, current)
    between = _between(files, cursor, moved)
    missing = files.newest is None and not between
    issues: tuple[LogWarning, ...] = ()
    if moved is None and current.offset > 0:
        issues = (_gap_issue(log, current, missing=missing),)
    elif missing and cursor.nothing_read:
        issues = (_never_there(log),)
    finished = (Stretch(moved, current.offset, current.generation),) if moved is not None else ()
    return Plan((*late, *finished, *_anew(files.newest, between, current)), issues)


def _never_there(log: Identifier) -> LogWarning:
    return LogWarning(
        log=log, kind=LogWarningKind.MISSING, generation=0, offset=0, detail="there is no such file yet"
    )


def _late(files: LogFiles, cursor: LogCursor) -> tuple[Stretch, ...]:
    """What was added to files of earlier generations. Nothing is ever added to an archive."""
    plain = [file for file in files.rotated if not file.archive]
    grown = ((known, _same(plain, known)) for known in reversed(cursor.earlier))
    return tuple(
        Stretch(file, known.offset, known.generation)
        for known, file in grown
        if file is not None and file.size > known.offset
    )


def _moved(files: LogFiles, current: FileMark) -> LogFile | None:
    """Where the file that was being read lies now. A cursor that has read nothing has nothing to finish."""
    return _same(files.rotated, current) if current.offset > 0 else None


def _between(files: LogFiles, cursor: LogCursor, moved: LogFile | None) -> list[LogFile]:
    """Files that came and were put aside since the last poll: newer than it, and none that is known."""
    return [
        file
        for file in files.rotated
        if file is not moved
        and file.modified_ns >= cursor.modified_ns
        and not any(
            known.offset > 0 and (is_same(file, known) or is_older_copy(file, known))
            for known in (cursor.current, *cursor.earlier)
        )
    ]


def _anew(newest: LogFile | None, between: list[LogFile], current: FileMark) -> tuple[Stretch, ...]:
    """Files started since the last poll, each a generation of its own."""
    first = current.generation + (1 if current.offset > 0 else 0)
    stretches = [Stretch(file, 0, first + number) for number, file in enumerate(between)]
    if newest is not None:
        stretches.append(Stretch(newest, common_start(newest, current), first + len(between)))
    return tuple(stretches)


def _same(files: Sequence[LogFile], known: FileMark) -> LogFile | None:
    """The marked file; of several copies the longest."""
    return max((file for file in files if is_same(file, known)), key=lambda file: file.size, default=None)


def _gap_issue(log: Identifier, current: FileMark, *, missing: bool) -> LogWarning:
    kind = LogWarningKind.MISSING if missing else LogWarningKind.REPLACED
    happened = "it is gone" if missing else "it was emptied, replaced or deleted"
    return LogWarning(
        log=log,
        kind=kind,
        generation=current.generation,
        offset=current.offset,
        detail=f"{happened}, and no rotated copy of it lies beside it; "
        f"what was written to it after byte {current.offset:,} is lost",
    )


WATCHED_GENERATIONS = 16
"""Earlier files that are polled again: more than any rotation scheme keeps within the life of a writer."""


class BatchLimits(NamedTuple):
    """What bounds memory: the longest line stored whole, and how much one batch holds."""

    longest_bytes: int = 1 << 20
    batch_bytes: int = 4 << 20
    batch_lines: int = 5_000


DEFAULT_LIMITS = BatchLimits()

NOTHING_READ = FileMark(generation=0, offset=0, tail_bytes=0, tail_sha256=hashlib.sha256(b"").hexdigest())
"""The first cursor of a log that nobody has read yet."""


class LogBatch(NamedTuple):
    """Lines in the order in which they were written, and where reading stands after them.

    Store lines, warnings and cursor in one step: then a crash at any moment neither skips nor repeats.
    """

    lines: tuple[LogLine, ...]
    cursor: LogCursor
    issues: tuple[LogWarning, ...] = ()


def follow(
    files: LogFiles,
    log: Identifier,
    cursor: LogCursor | None,
    *,
    is_whole: Callable[[bytes], bool],
    limits: BatchLimits = DEFAULT_LIMITS,
) -> Iterator[LogBatch]:
    """All that was added since ``cursor``, in batches; none when nothing happened.

    ``is_whole`` says of a last line without a line's end whether it can be taken as it is: some writers put the
    line's end before each entry. What is not whole waits.
    """
    planned = plan(files, log, cursor)
    reading = _Reading(log, cursor, is_whole, limits, history_to=files.newest.size if files.newest else 0)
    if planned.issues:
        yield reading.batch((), planned.issues) if cursor is None else LogBatch((), cursor, planned.issues)
    for stretch in planned.stretches:
        yield from reading.read(stretch)
    if files.newest is not None:
        reading.modified_ns = files.newest.modified_ns
    if reading.moved:
        yield reading.batch(())


class _Reading:
    """Where reading stands while the stretches of one poll are read."""

    def __init__(
        self,
        log: Identifier,
        cursor: LogCursor | None,
        is_whole: Callable[[bytes], bool],
        limits: BatchLimits,
        *,
        history_to: int,
    ) -> None:
        self._log, self._is_whole, self._limits = log, is_whole, limits
        self._history_to = cursor.history_to if cursor else history_to
        self._current = cursor.current if cursor else NOTHING_READ
        self._earlier = cursor.earlier if cursor else ()
        self.modified_ns = cursor.modified_ns if cursor else 0
        self._reported = cursor

    @property
    def moved(self) -> bool:
        """Whether anything is known now that was not when it was last reported."""
        return self._reported is None or self._standing(self._reported.sequence) != self._reported

    def batch(self, lines: tuple[LogLine, ...], issues: tuple[LogWarning, ...] = ()) -> LogBatch:
        """What was read, and the next step's cursor."""
        self._reported = self._standing(1 if self._reported is None else self._reported.sequence + 1)
        return LogBatch(lines, self._reported, issues)

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
        """Put a mark where it belongs: an earlier file's, the current one's, or that of a file started anew."""
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
