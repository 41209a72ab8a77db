"""Read each line of a log exactly once, even after appends, rotation, truncation and restarts.

The lines of a growing file are read in limited memory, each with its position. A mark (hashes of the part that was
read) identifies the file at later polls. From the cursor and the files, `plan_reading` computes which parts of
which files to read next.

A poll first reads the lines that were added to older files, which may still grow while the application holds them
open. The current file is the file that the last poll was reading. The first of these rules that matches applies:

- If the newest file is still the current file, reading continues at the last position.
- If a rotated file is the current file, it was renamed, or was copied before the newest file was emptied. The poll
  reads the remaining part of the rotated file, then the files that were created after it, then the newest file from
  its start.
- If the current file is not found, the lines that were written to it after the last poll are lost. A warning
  reports the loss. The poll reads the files that were created after the last poll, and the newest file from its
  start, but not the lines at its start that were already read.
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
    """One line of the log, without its line ending. Two lines at different positions are always different lines.

    ``length`` is the length of the line in bytes. ``length`` is larger than the length of ``raw`` if only the start
    of the line was stored.
    """

    generation: int
    offset: int
    raw: bytes
    length: int
    sha256: str


def read_complete_lines(file: LogFile, start: int, generation: int, *, max_bytes: int) -> Iterator[LogLine]:
    """Yield each complete line from ``start`` on. If a line is longer than ``max_bytes``, only its start is stored.

    Memory use is limited to one chunk and the longest line. A last line without a line ending is not yielded.
    """
    position, open_line = start, _OpenLine(start, max_bytes)
    while chunk := file.read(position, CHUNK_BYTES):
        position += len(chunk)
        first, *pieces = chunk.split(b"\n")
        open_line.add(first)
        if not pieces:
            continue
        yield open_line.build_line(generation)
        offset = open_line.end + 1
        for piece in pieces[:-1]:
            yield _build_line(generation, offset, piece, max_bytes)
            offset += len(piece) + 1
        open_line = _OpenLine(offset, max_bytes)
        open_line.add(pieces[-1])


def read_incomplete_line(file: LogFile, start: int, generation: int, *, max_bytes: int) -> LogLine:
    """Read from ``start`` to the end of the file as one line without a line ending."""
    line = _OpenLine(start, max_bytes)
    position = start
    while chunk := file.read(position, CHUNK_BYTES):
        position += len(chunk)
        line.add(chunk)
    return line.build_line(generation)


def _build_line(generation: int, offset: int, line: bytes, max_bytes: int) -> LogLine:
    """Build a line that is completely in one chunk. Most lines are."""
    return LogLine(generation, offset, line[:max_bytes], len(line), hashlib.sha256(line).hexdigest())


class _OpenLine:
    """A line of which only the beginning has been read so far."""

    def __init__(self, offset: int, max_bytes: int) -> None:
        self.end = self._offset = offset
        self._max_bytes, self._bytes, self._digest = max_bytes, b"", hashlib.sha256()

    def add(self, piece: bytes) -> None:
        self.end += len(piece)
        self._digest.update(piece)
        self._bytes += piece[: max(0, self._max_bytes - len(self._bytes))]

    def build_line(self, generation: int) -> LogLine:
        return LogLine(
            generation=generation,
            offset=self._offset,
            raw=self._bytes,
            length=self.end - self._offset,
            sha256=self._digest.hexdigest(),
        )


START_LENGTHS = (64, 256, 1_024, 4_096, 16_384, 65_536)
"""The lengths, in bytes, of the parts at the start of a file that are hashed.

The shortest part is 64 bytes, because an entry with a time and a text is longer than 64 bytes.
"""
TAIL_BYTES = 4_096
"""Number of bytes, immediately before the position of the cursor, that are hashed.

If the lines contain times, two different files never have the same hash.
"""


def build_file_mark(file: LogFile, offset: int, generation: int) -> FileMark:
    """Return the mark of a file that was read up to ``offset``.

    The mark contains hashes of the part that was read. These hashes identify the file at later polls.
    """
    tail = min(TAIL_BYTES, offset)
    return FileMark(
        generation=generation,
        offset=offset,
        starts_sha256=tuple(_hash_content(file.read(0, length)) for length in START_LENGTHS if length <= offset),
        tail_bytes=tail,
        tail_sha256=_hash_content(file.read(offset - tail, tail)),
    )


def is_marked_file(file: LogFile, mark: FileMark) -> bool:
    """Return whether ``file`` is the file that ``mark`` describes. The file may have grown.

    The mark of an unread file matches all files.
    """
    if file.size < mark.offset or (mark.starts_sha256 and not _has_same_start(file, mark)):
        return False
    return _hash_content(file.read(mark.offset - mark.tail_bytes, mark.tail_bytes)) == mark.tail_sha256


def is_older_copy(file: LogFile, mark: FileMark) -> bool:
    """Return whether ``file`` is an earlier, shorter copy of the file that ``mark`` describes.

    All lines of such a copy were already read.
    """
    return file.size < mark.offset and _has_same_start(file, mark)


def find_first_unread_offset(file: LogFile, mark: FileMark) -> int:
    """Return the offset in ``file`` at which its unread lines begin.

    ``file`` has replaced the file that ``mark`` describes. ``file`` may begin with lines of the old file, which
    were already read.
    """
    if is_older_copy(file, mark):
        return file.size
    matching_lengths = [
        length
        for length, digest in zip(START_LENGTHS, mark.starts_sha256, strict=False)
        if length <= file.size and _hash_content(file.read(0, length)) == digest
    ]
    return file.read(0, matching_lengths[-1]).rfind(b"\n") + 1 if matching_lengths else 0


def _has_same_start(file: LogFile, mark: FileMark) -> bool:
    lengths = [length for length in START_LENGTHS[: len(mark.starts_sha256)] if length <= file.size]
    return bool(lengths) and _hash_content(file.read(0, lengths[-1])) == mark.starts_sha256[len(lengths) - 1]


def _hash_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class FilePart(NamedTuple):
    """A part of a log to read: ``file`` from ``start`` to its end. ``generation`` numbers the files of the log."""

    file: LogFile
    start: int
    generation: int


class ReadingPlan(NamedTuple):
    """The parts of files to read, in the order in which their lines were written, and warnings about the log."""

    parts: tuple[FilePart, ...]
    issues: tuple[LogWarning, ...] = ()


def plan_reading(files: LogFiles, log: Identifier, cursor: LogCursor | None) -> ReadingPlan:
    """Return the parts of the files to read at this poll.

    Without a cursor, only the newest file is read, from its start.
    """
    if cursor is None:
        return (
            ReadingPlan((FilePart(files.newest, 0, 0),))
            if files.newest
            else ReadingPlan((), (_build_missing_warning(log),))
        )
    late_parts = _find_late_parts(files, cursor)
    current = cursor.current
    if files.newest is not None and current.offset > 0 and is_marked_file(files.newest, current):
        return ReadingPlan((*late_parts, FilePart(files.newest, current.offset, current.generation)))
    moved_file = _find_marked_file(files.rotated, current) if current.offset > 0 else None
    unread_rotated = _list_unread_rotated(files, cursor, moved_file)
    is_log_missing = files.newest is None and not unread_rotated
    issues: tuple[LogWarning, ...] = ()
    if moved_file is None and current.offset > 0:
        issues = (_build_gap_warning(log, current, is_log_missing=is_log_missing),)
    elif is_log_missing and cursor.has_read_nothing:
        issues = (_build_missing_warning(log),)
    finished = (FilePart(moved_file, current.offset, current.generation),) if moved_file is not None else ()
    return ReadingPlan((*late_parts, *finished, *_plan_new_files(files.newest, unread_rotated, current)), issues)


def _build_missing_warning(log: Identifier) -> LogWarning:
    return LogWarning(
        log=log, kind=LogWarningKind.MISSING, generation=0, offset=0, detail="the file does not exist yet"
    )


def _find_late_parts(files: LogFiles, cursor: LogCursor) -> tuple[FilePart, ...]:
    """Find the parts that were appended to older files after their rotation. Compressed files never grow."""
    plain = [file for file in files.rotated if not file.archive]
    marked_files = ((mark, _find_marked_file(plain, mark)) for mark in reversed(cursor.earlier))
    return tuple(
        FilePart(file, mark.offset, mark.generation)
        for mark, file in marked_files
        if file is not None and file.size > mark.offset
    )


def _list_unread_rotated(files: LogFiles, cursor: LogCursor, moved_file: LogFile | None) -> list[LogFile]:
    """List the rotated files that no poll has read, because they were created after the last poll.

    The oldest file comes first. The result does not include ``moved_file``, the file that the last poll was reading
    and that now has a new name.
    """
    return [
        file
        for file in files.rotated
        if file is not moved_file
        and file.modified_ns >= cursor.modified_ns
        and not any(
            mark.offset > 0 and (is_marked_file(file, mark) or is_older_copy(file, mark))
            for mark in (cursor.current, *cursor.earlier)
        )
    ]


def _plan_new_files(
    newest: LogFile | None, unread_rotated: list[LogFile], current: FileMark
) -> tuple[FilePart, ...]:
    """Return the parts to read of files that were created after the last poll.

    Each file becomes a separate generation, with a number higher than that of ``current``.
    """
    first = current.generation + (1 if current.offset > 0 else 0)
    parts = [FilePart(file, 0, first + number) for number, file in enumerate(unread_rotated)]
    if newest is not None:
        parts.append(FilePart(newest, find_first_unread_offset(newest, current), first + len(unread_rotated)))
    return tuple(parts)


def _find_marked_file(files: Sequence[LogFile], mark: FileMark) -> LogFile | None:
    """Return the file that ``mark`` describes, or ``None`` if ``files`` does not contain this file.

    If there are several copies, return the longest copy.
    """
    return max((file for file in files if is_marked_file(file, mark)), key=lambda file: file.size, default=None)


def _build_gap_warning(log: Identifier, current: FileMark, *, is_log_missing: bool) -> LogWarning:
    kind = LogWarningKind.MISSING if is_log_missing else LogWarningKind.REPLACED
    cause = "the log no longer exists" if is_log_missing else "the log was emptied, replaced or deleted"
    return LogWarning(
        log=log,
        kind=kind,
        generation=current.generation,
        offset=current.offset,
        detail=f"{cause}, and its folder contains no rotated copy. The unread lines after byte "
        f"{current.offset:,} are lost",
    )


MAX_WATCHED_GENERATIONS = 16
"""Maximum number of older files that are polled again, because an application may still write to them."""


class BatchLimits(NamedTuple):
    """Limits of memory use: the maximum length of a line that is stored completely, and the maximum batch size.

    The size of a batch is limited in bytes and in lines.
    """

    max_line_bytes: int = 1 << 20
    max_batch_bytes: int = 4 << 20
    max_batch_lines: int = 5_000


DEFAULT_LIMITS = BatchLimits()

NOTHING_READ = FileMark(generation=0, offset=0, tail_bytes=0, tail_sha256=hashlib.sha256(b"").hexdigest())
"""The initial mark of a log that has not been read yet."""


class LogBatch(NamedTuple):
    """Lines in the order in which they were written, and the cursor after these lines.

    The caller must store lines, warnings and cursor in one transaction. Then a crash neither skips nor repeats
    lines.
    """

    lines: tuple[LogLine, ...]
    cursor: LogCursor
    issues: tuple[LogWarning, ...] = ()


def read_new_batches(
    files: LogFiles,
    log: Identifier,
    cursor: LogCursor | None,
    *,
    is_whole: Callable[[bytes], bool],
    limits: BatchLimits = DEFAULT_LIMITS,
) -> Iterator[LogBatch]:
    """Yield the lines that were added after ``cursor``, in batches. Without new lines, there may be no batch.

    ``is_whole`` decides whether a last line without a line ending is complete, because some applications write the
    line ending before each entry. An incomplete line is read at a later poll.
    """
    plan = plan_reading(files, log, cursor)
    reading = _PartReader(log, cursor, is_whole, limits, history_to=files.newest.size if files.newest else 0)
    if plan.issues:
        yield reading.build_batch((), plan.issues) if cursor is None else LogBatch((), cursor, plan.issues)
    for part in plan.parts:
        yield from reading.read(part)
    if files.newest is not None:
        reading.modified_ns = files.newest.modified_ns
    if reading.has_changes:
        yield reading.build_batch(())


def build_unread_cursor_with_history(files: LogFiles, log: Identifier) -> LogCursor:
    """Return the cursor of a log that has not been read yet.

    The existing lines of the log count as history: later polls read these lines, but send no alert about them.
    """
    newest = files.newest
    return LogCursor(
        log=log,
        current=NOTHING_READ,
        modified_ns=newest.modified_ns if newest else 0,
        history_to=newest.size if newest else 0,
    )


class _PartReader:
    """Reads the parts of files that one poll must read, and updates the read position."""

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
    def has_changes(self) -> bool:
        """Return whether anything was read since the last batch, so that the cursor has changed."""
        return self._reported is None or self._build_cursor(self._reported.sequence) != self._reported

    def build_batch(self, lines: tuple[LogLine, ...], issues: tuple[LogWarning, ...] = ()) -> LogBatch:
        """Return a batch of lines with the cursor after them."""
        self._reported = self._build_cursor(1 if self._reported is None else self._reported.sequence + 1)
        return LogBatch(lines, self._reported, issues)

    def _build_cursor(self, sequence: int) -> LogCursor:
        return LogCursor(
            log=self._log,
            sequence=sequence,
            current=self._current,
            earlier=self._earlier,
            modified_ns=self.modified_ns,
            history_to=self._history_to,
        )

    def read(self, part: FilePart) -> Iterator[LogBatch]:
        """Yield the lines of ``part``, one part of a file, in batches. Each batch ends at the end of a line."""
        lines: list[LogLine] = []
        batch_bytes, offset = 0, part.start
        max_bytes = self._limits.max_line_bytes
        for line in read_complete_lines(part.file, part.start, part.generation, max_bytes=max_bytes):
            lines.append(line)
            batch_bytes, offset = batch_bytes + len(line.raw), line.offset + line.length + 1
            if batch_bytes >= self._limits.max_batch_bytes or len(lines) >= self._limits.max_batch_lines:
                self._store_mark(build_file_mark(part.file, offset, part.generation))
                yield self.build_batch(tuple(lines))
                lines, batch_bytes = [], 0
        incomplete_line = read_incomplete_line(part.file, offset, part.generation, max_bytes=max_bytes)
        if incomplete_line.length == len(incomplete_line.raw) > 0 and self._is_whole(incomplete_line.raw):
            lines.append(incomplete_line)
            offset += incomplete_line.length
        self._store_mark(build_file_mark(part.file, offset, part.generation))
        if lines:
            yield self.build_batch(tuple(lines))

    def _store_mark(self, mark: FileMark) -> None:
        """Store the mark of a file up to the position that was read.

        If the file is newer than the current file, it becomes the current file.
        """
        current = self._current
        if current.generation == mark.generation:
            self._current = mark
        elif mark.generation < current.generation:
            self._earlier = tuple(
                mark if earlier.generation == mark.generation else earlier for earlier in self._earlier
            )
        else:
            finished = (current,) if current.offset > 0 else ()
            self._earlier = (*finished, *self._earlier)[:MAX_WATCHED_GENERATIONS]
            self._current = mark
