"""Which stretches of which files are to be read next, by what is known and what lies there. Pure but for reading.

The rules, in the order in which a look at the files applies them:

- The newest file is the one that was being read: go on where reading stopped.
- It is not, but a rotated file is (renamed, or copied before the newest was emptied): finish that, then read what
  came between, then the newest from its start.
- Nowhere is it found: what was written to it after the last look is lost. That is said, and the newest is read from
  its start, save for a beginning that was already read.
- Files of earlier generations may still grow, as long as their writer holds them open: what was added is read too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from monitors.records.base import Identifier
from monitors.records.logs import FileMark, LogCursor, LogNotice, LogNoticeKind
from monitors.sources.file_mark import common_start, is_older_copy, is_same
from monitors.sources.log_files import LogFile, LogFiles


class Stretch(NamedTuple):
    """Read ``file`` from ``start`` to its end, as part of ``generation``."""

    file: LogFile
    start: int
    generation: int


class Plan(NamedTuple):
    """Stretches in the order in which their lines were written, and what is to be said of the log."""

    stretches: tuple[Stretch, ...]
    notices: tuple[LogNotice, ...] = ()


def plan(files: LogFiles, log: Identifier, cursor: LogCursor | None) -> Plan:
    """What to read at this look. Without a cursor, the newest file from its start; rotated ones are history."""
    if cursor is None:
        return Plan((Stretch(files.newest, 0, 0),)) if files.newest else Plan((), (_never_there(log),))
    late = _late(files, cursor)
    current = cursor.current
    if files.newest is not None and current.offset > 0 and is_same(files.newest, current):
        return Plan((*late, Stretch(files.newest, current.offset, current.generation)))
    moved = _moved(files, current)
    between = _between(files, cursor, moved)
    missing = files.newest is None and not between
    notices: tuple[LogNotice, ...] = ()
    if moved is None and current.offset > 0:
        notices = (_lost(log, current, missing=missing),)
    elif missing and cursor.nothing_read:
        notices = (_never_there(log),)
    finished = (Stretch(moved, current.offset, current.generation),) if moved is not None else ()
    return Plan((*late, *finished, *_anew(files.newest, between, current)), notices)


def _never_there(log: Identifier) -> LogNotice:
    return LogNotice(
        log=log, kind=LogNoticeKind.MISSING, generation=0, offset=0, detail="there is no such file yet"
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
    """Where the file that was being read lies now. Of nothing read, nothing is left to be finished."""
    return _same(files.rotated, current) if current.offset > 0 else None


def _between(files: LogFiles, cursor: LogCursor, moved: LogFile | None) -> list[LogFile]:
    """Files that came and were put aside since the last look: newer than it, and none that is known."""
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
    """Files begun since the last look, each a generation of its own."""
    first = current.generation + (1 if current.offset > 0 else 0)
    stretches = [Stretch(file, 0, first + number) for number, file in enumerate(between)]
    if newest is not None:
        stretches.append(Stretch(newest, common_start(newest, current), first + len(between)))
    return tuple(stretches)


def _same(files: Sequence[LogFile], known: FileMark) -> LogFile | None:
    """The marked file; of several copies the longest."""
    return max((file for file in files if is_same(file, known)), key=lambda file: file.size, default=None)


def _lost(log: Identifier, current: FileMark, *, missing: bool) -> LogNotice:
    kind = LogNoticeKind.MISSING if missing else LogNoticeKind.REPLACED
    happened = "it is gone" if missing else "it was emptied, replaced or deleted"
    return LogNotice(
        log=log,
        kind=kind,
        generation=current.generation,
        offset=current.offset,
        detail=f"{happened}, and no rotated copy of it lies beside it; "
        f"what was written to it after byte {current.offset:,} is lost",
    )
