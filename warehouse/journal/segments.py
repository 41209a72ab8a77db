"""A segment: a file of JSON lines that never changes, with a header that describes its content.

The first line is the header. Each other line is a row, for example ``{"table":"…","row":{…}}``. All rows of a
segment become durable together. In a local folder, a segment is either complete or absent.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NewType, Protocol, get_args

from pydantic import Field, ValidationError

from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.records.base import Identifier, Record, Sha256
from monitors.storage import build_unwritable_error, move, open_folder, open_without_links, write_atomically
from warehouse.journal.rows import ANY_ROW, JournalRow, OutboxRow, TableName

FORMAT_VERSION = 1
"""Version of the format. Increase the version if the meaning of a header or a row changes.

Readers refuse newer versions.
"""

SegmentId = NewType("SegmentId", str)
"""The id of a segment. Ids sort by the time of writing, and two processes never create the same id."""

Clock = Callable[[], datetime]
"""A function that returns the present time with a time zone."""

Entropy = Callable[[int], bytes]
"""A function that returns the given number of unpredictable bytes, like ``secrets.token_bytes``."""

_LINE = re.compile(rb'\{"table":"([a-z_]+)","row":(\{.*\})\}', re.DOTALL)
_TICK = timedelta(microseconds=1)


_STAMP = "%Y%m%dT%H%M%S.%fZ"


def build_lower_bound_id(time: datetime) -> str:
    """Return a string that sorts before the ids of all segments written at ``time`` or later."""
    return f"{time.astimezone(UTC):{_STAMP}}"


def parse_time(segment_id: str) -> datetime:
    """Parse the time from a segment id."""
    return datetime.strptime(segment_id.partition("-")[0], _STAMP).replace(tzinfo=UTC)


class SegmentHeader(Record):
    """The first line of a segment.

    ``sha256`` is the hash of all later lines. ``rows`` is the number of these lines for each table.
    """

    lookout_segment: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    id: Identifier
    run_id: Identifier | None
    rows: Mapping[str, Annotated[int, Field(ge=1)]]
    sha256: Sha256


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A row in its stored form: the name of its table, and its JSON text."""

    table: str
    row_json: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment whose hash and counts are verified. ``size_bytes`` is the size of the file."""

    header: SegmentHeader
    lines: tuple[SegmentLine, ...]
    size_bytes: int

    def rows(self) -> Iterator[JournalRow | OutboxRow]:
        """Yield the rows as records, in the order in which they were written."""
        for line in self.lines:
            yield ANY_ROW.validate_json(format_line(line))


def format_line(line: SegmentLine) -> bytes:
    """Format one line of a segment, without the line break."""
    return b'{"table":"' + line.table.encode() + b'","row":' + line.row_json + b"}"


class SegmentNames:
    """Creates segment ids that sort in the order of the calls, even if the clock stops or goes backwards."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._last: datetime | None = None

    def build_next_id(self) -> SegmentId:
        """Return a new id such as ``20260131T020000.123456Z-9f86d081884c7d65``.

        Only one thread may call this method at a time.
        """
        now = self._clock()
        if self._last is not None and now <= self._last:
            now = self._last + _TICK
        self._last = now
        return SegmentId(f"{build_lower_bound_id(now)}-{self._entropy(8).hex()}")


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows encoded as lines of a segment, and the number of rows for each table."""

    body: bytes = b""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])

    def __add__(self, other: EncodedRows) -> EncodedRows:
        return EncodedRows(self.body + other.body, Counter(self.counts) + Counter(other.counts))


def encode_rows(rows: Iterable[JournalRow | OutboxRow]) -> EncodedRows:
    """Encode ``rows`` as the lines of a segment."""
    counts = Counter[str]()
    lines: list[bytes] = []
    for row in rows:
        counts[row.table] += 1
        lines.append(row.model_dump_json().encode() + b"\n")
    return EncodedRows(b"".join(lines), counts)


def encode_segment(rows: EncodedRows, *, segment_id: SegmentId, run_id: str | None) -> bytes:
    """Encode a complete segment as bytes: a header, and at least one row from ``rows``."""
    if not rows.counts:
        raise ValueError("a segment must have at least one row")
    header = SegmentHeader(
        id=segment_id, run_id=run_id, rows=rows.counts, sha256=hashlib.sha256(rows.body).hexdigest()
    )
    return header.model_dump_json().encode() + b"\n" + rows.body


def decode_segment(data: bytes, *, where: str, segment_id: str, run_id: str | None) -> Segment:
    """Decode a segment and verify its format, id, run, hash and row counts.

    ``where`` names the file in errors. Raises `WarehouseDamaged` if one of the verified values does not match, and
    `SchemaTooNew` for a complete segment from a newer version of Lookout.
    """
    head, line_end, body = data.partition(b"\n")
    header = _parse_header(head, where)
    if not line_end or header.id != segment_id or header.run_id != run_id:
        raise _build_damaged_error(
            where, f"the header belongs to the segment {header.id} of {header.run_id or 'no run'}"
        )
    if hashlib.sha256(body).hexdigest() != header.sha256:
        raise _build_damaged_error(where, "the hash of the content does not match the header")
    lines = tuple(_split_lines(body, where))
    if Counter(line.table for line in lines) != header.rows:
        raise _build_damaged_error(where, "the row counts do not match the header")
    unknown = header.rows.keys() - set(get_args(TableName))
    if header.lookout_segment > FORMAT_VERSION or unknown:
        difference = f"tables {', '.join(sorted(unknown))}" if unknown else f"format {header.lookout_segment}"
        raise SchemaTooNew(
            f"the segment {where} was written by a newer version of Lookout ({difference}); update Lookout"
        )
    return Segment(header, lines, len(data))


def _parse_header(head: bytes, where: str) -> SegmentHeader:
    try:
        return SegmentHeader.model_validate_json(head)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise _build_damaged_error(where, f"the header cannot be read ({first_error['msg']})") from None


def _split_lines(body: bytes, where: str) -> Iterator[SegmentLine]:
    for number, line in enumerate(body.split(b"\n")[:-1], start=2):
        match = _LINE.fullmatch(line)
        if match is None:
            raise _build_damaged_error(where, f"line {number} is not a valid row")
        yield SegmentLine(match[1].decode(), match[2])


def _build_damaged_error(where: str, reason: str) -> WarehouseDamaged:
    return WarehouseDamaged(f"the segment {where} is damaged: {reason}")


SUFFIX = ".jsonl"
SET_ASIDE = "_damaged"
"""Folder for damaged segments, which a person must inspect. Lookout does not read this folder again."""

STALE_AFTER = timedelta(hours=1)
"""The age from which a temporary file is removed. A temporary file of this age belongs to a killed process."""


class SegmentStore(Protocol):
    """Storage for segments, such as a folder. A segment's name is ``folder/segment-id.jsonl``."""

    def write(self, name: str, data: bytes) -> None:
        """Store ``data`` under ``name``. When this function returns, the file is complete and survives a crash.

        Raises `WarehouseUnwritable`.
        """
        ...

    def read(self, name: str) -> bytes:
        """Return the bytes of a segment. Raises `FileNotFoundError`."""
        ...

    def list_segments(self, folder: str | None = None) -> Sequence[str]:
        """Return the names of all complete segments, or of the segments in one folder, sorted by id."""
        ...

    def list_files(self, folder: str, suffix: str) -> Sequence[str]:
        """List the files in a folder whose names end with ``suffix``, sorted."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file. A missing file is not an error. Raises `WarehouseUnwritable`."""
        ...

    def move_file_in(self, name: str, file: Path) -> None:
        """Move a local file to ``name``. The local file then no longer exists. Raises `WarehouseUnwritable`."""
        ...

    def fetch_file(self, name: str, scratch: Path) -> Path:
        """Return the path of a local file with the content of ``name``.

        If the stored file is not on the local disk, its content is copied to ``scratch``. Raises
        `FileNotFoundError`.
        """
        ...

    def set_aside(self, name: str) -> str:
        """Move a damaged segment to the folder for damaged segments, and return its new location."""
        ...

    def list_set_aside(self) -> Sequence[str]:
        """Return the locations of the damaged segments that a person must inspect."""
        ...

    def remove_stale_files(self, now: datetime) -> int:
        """Remove temporary files that killed processes left behind. Return the number of removed files."""
        ...

    def format_location(self, name: str) -> str:
        """Return the path or address of a segment, for messages."""
        ...


class LocalSegments:
    """Segments in a local folder."""

    def __init__(self, folder: Path) -> None:
        self._root = folder

    def write(self, name: str, data: bytes) -> None:
        """Store a segment. When this function returns, the segment survives a power failure."""
        write_atomically(self._root / name, data, within=self._root.parent)

    def read(self, name: str) -> bytes:
        """Return the bytes of a segment."""
        path = self._root / name
        with (
            self._open_folder(path.parent) as folder,
            os.fdopen(open_without_links(path.name, os.O_RDONLY, folder=folder), "rb") as file,
        ):
            return file.read()

    def list_segments(self, folder: str | None = None) -> Sequence[str]:
        """Return the names of all complete segments, or of the segments in one folder, sorted by id."""
        folders = self._list_folders() if folder is None else [folder]
        paths = [
            f"{folder_name}/{file}"
            for folder_name in folders
            for file in self._list_files(folder_name)
            if file.endswith(SUFFIX)
        ]
        return sorted((name for name in paths if "/." not in name), key=parse_segment_id)

    def list_files(self, folder: str, suffix: str) -> Sequence[str]:
        """List the files in a folder whose names end with ``suffix``, sorted."""
        return sorted(
            f"{folder}/{file}"
            for file in self._list_files(folder)
            if file.endswith(suffix) and not file.startswith(".")
        )

    def delete(self, name: str) -> None:
        """Remove a file. If the folder of the file's run is then empty, also remove the folder.

        A missing file is not an error.
        """
        path = self._root / name
        try:
            with self._open_folder(path.parent) as folder:
                os.unlink(path.name, dir_fd=folder)
            self._remove_run_folder_if_empty(path.parent.name)
        except FileNotFoundError:
            return
        except OSError as error:
            raise build_unwritable_error(path, error) from error

    def move_file_in(self, name: str, file: Path) -> None:
        """Move a local file to its final path.

        When this function returns, the file is complete and survives a crash.
        """
        path = self._root / name
        try:
            sync_file(file)
            move(file, path, within=self._root.parent)
        except OSError as error:
            raise build_unwritable_error(path, error) from error

    def fetch_file(self, name: str, scratch: Path) -> Path:  # noqa: ARG002 - a local file needs no copy
        """Return the path of the file itself, without a copy."""
        path = self._root / name
        if not path.is_file():
            raise FileNotFoundError(path)
        return path

    def set_aside(self, name: str) -> str:
        """Move a damaged segment to the folder for damaged segments.

        The new name of the segment contains the name of its old folder.
        """
        path, goal = self._root / name, self._root / SET_ASIDE / name.replace("/", "__")
        try:
            move(path, goal, within=self._root.parent)
        except OSError as error:
            raise build_unwritable_error(goal, error) from error
        return str(goal)

    def list_set_aside(self) -> Sequence[str]:
        """Return the paths of the damaged segments that a person must inspect."""
        return sorted(str(self._root / SET_ASIDE / file) for file in self._list_files(SET_ASIDE))

    def remove_stale_files(self, now: datetime) -> int:
        """Remove temporary files and empty run folders that are more than an hour old.

        Return the number of removed files.
        """
        return sum(self._remove_stale_files_in_folder(name, now) for name in self._list_folders())

    def format_location(self, name: str) -> str:
        """Return the path of a segment."""
        return str(self._root / name)

    def _open_folder(self, folder: Path) -> AbstractContextManager[int]:
        return open_folder(folder, within=self._root.parent)

    def _list_folders(self) -> list[str]:
        return [name for name in self._list_entries(self._root, files=False) if name != SET_ASIDE]

    def _list_files(self, folder: str) -> list[str]:
        return self._list_entries(self._root / folder, files=True)

    def _list_entries(self, folder: Path, *, files: bool) -> list[str]:
        try:
            with self._open_folder(folder) as handle, os.scandir(handle) as entries:
                return [entry.name for entry in entries if entry.is_file(follow_symlinks=False) is files]
        except (FileNotFoundError, NotADirectoryError):
            return []  # the next write to the folder reports the error

    def _remove_stale_files_in_folder(self, name: str, now: datetime) -> int:
        count = 0
        # A folder that was never written to has nothing to remove.
        with suppress(FileNotFoundError, NotADirectoryError), self._open_folder(self._root / name) as folder:
            for file in self._list_files(name):
                if file.startswith(".") and _compute_age(file, folder, now) > STALE_AFTER:
                    os.unlink(file, dir_fd=folder)
                    count += 1
            if _compute_age(".", folder, now) > STALE_AFTER:
                self._remove_run_folder_if_empty(name)
        return count

    def _remove_run_folder_if_empty(self, folder: str) -> None:
        """Remove a run's folder if it is empty. A folder whose name begins with an underscore is not removed."""
        if not folder.startswith("_"):
            with suppress(OSError), self._open_folder(self._root) as root:  # the folder is not empty, or it is gone
                os.rmdir(folder, dir_fd=root)


def parse_segment_id(name: str) -> str:
    """Parse the segment id from the name of a segment."""
    return name.rpartition("/")[2].removesuffix(SUFFIX)


def sync_file(file: Path) -> None:
    """Write a file's content to the disk, so that it survives a power failure. Raises `OSError`."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def _compute_age(name: str, folder: int, now: datetime) -> timedelta:
    return now - datetime.fromtimestamp(os.stat(name, dir_fd=folder).st_mtime, tz=now.tzinfo)
