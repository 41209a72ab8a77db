"""A segment: an immutable file of JSON lines that says itself what it must hold.

The first line is the header, then comes one line ``{"table":"…","row":{…}}`` per row. A segment may hold rows of
several tables, which so become durable together: a cursor with its rows, an exchange with its assessment.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, NewType, get_args

from pydantic import Field, ValidationError

from monitors.errors import SchemaTooNew, WarehouseDamaged
from monitors.records.base import Identifier, Record, Sha256
from warehouse.rows import ANY_ROW, JournalRow, OutboxRow, TableName

FORMAT_VERSION = 1
"""Raised when the meaning of a header or a line changes; readers refuse what they do not know."""

SegmentId = NewType("SegmentId", str)
"""Sorts by the time of writing; unique across processes by 64 random bits."""

Clock = Callable[[], datetime]
"""Gives the present, with a zone."""

Entropy = Callable[[int], bytes]
"""Gives that many unpredictable bytes, as ``secrets.token_bytes`` does."""

_LINE = re.compile(rb'\{"table":"([a-z_]+)","row":(\{.*\})\}', re.DOTALL)
_TICK = timedelta(microseconds=1)


def first_id_at(time: datetime) -> str:
    """Sorts before every id given out at this time or later, and after all earlier ones."""
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"


class SegmentHeader(Record):
    """The first line. ``sha256`` is over every byte after the header's line end; ``rows`` counts per table."""

    lookout_segment: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    id: Identifier
    run_id: Identifier | None
    rows: Mapping[str, Annotated[int, Field(ge=1)]]
    sha256: Sha256


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """One row as written: its table and its JSON text."""

    table: str
    row_json: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment whose hash and counts were found right. ``size_bytes`` is the whole file's."""

    header: SegmentHeader
    lines: tuple[SegmentLine, ...]
    size_bytes: int

    def rows(self) -> Iterator[JournalRow | OutboxRow]:
        """The rows as records, in the order they were written."""
        for line in self.lines:
            yield ANY_ROW.validate_json(line_of(line))


def line_of(line: SegmentLine) -> bytes:
    """The line as it stands in the file, without its line end."""
    return b'{"table":"' + line.table.encode() + b'","row":' + line.row_json + b"}"


class SegmentNames:
    """Gives out ids that sort in the order of asking within a process, even when the clock stands or steps back."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._last: datetime | None = None

    def next(self) -> SegmentId:
        """A new id such as ``20260131T020000.123456Z-9f86d081884c7d65``. Not safe for two threads at once."""
        now = self._clock()
        if self._last is not None and now <= self._last:
            now = self._last + _TICK
        self._last = now
        return SegmentId(f"{first_id_at(now)}-{self._entropy(8).hex()}")


def encode(rows: Sequence[JournalRow | OutboxRow], *, segment_id: SegmentId, run_id: str | None) -> bytes:
    """The bytes of a segment that holds ``rows`` (at least one)."""
    if not rows:
        raise ValueError("a segment holds at least one row")
    body = b"".join(row.model_dump_json().encode() + b"\n" for row in rows)
    header = SegmentHeader(
        id=segment_id,
        run_id=run_id,
        rows=Counter(row.table for row in rows),
        sha256=hashlib.sha256(body).hexdigest(),
    )
    return header.model_dump_json().encode() + b"\n" + body


def decode(data: bytes, *, where: str, segment_id: str, run_id: str | None) -> Segment:
    """Read a segment and prove it whole: known format, its own id and run, hash and counts as the header says.

    ``where`` names the file in errors. Raises `WarehouseDamaged` when anything is off, and `SchemaTooNew` for a
    whole segment of a newer Lookout.
    """
    head, line_end, body = data.partition(b"\n")
    header = _header(head, where)
    if not line_end or header.id != segment_id or header.run_id != run_id:
        raise _damaged(where, f"its header names the segment {header.id} of {header.run_id or 'no run'}")
    if hashlib.sha256(body).hexdigest() != header.sha256:
        raise _damaged(where, "its content does not have the hash that its header names")
    lines = tuple(_split(body, where))
    if Counter(line.table for line in lines) != header.rows:
        raise _damaged(where, "its row counts are not those of its header")
    _refuse_newer(header, where)
    return Segment(header, lines, len(data))


def _header(head: bytes, where: str) -> SegmentHeader:
    try:
        return SegmentHeader.model_validate_json(head)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise _damaged(where, f"its header cannot be read ({first['msg']})") from None


def _refuse_newer(header: SegmentHeader, where: str) -> None:
    unknown = header.rows.keys() - set(get_args(TableName))
    if header.lookout_segment > FORMAT_VERSION or unknown:
        what = f"tables {', '.join(sorted(unknown))}" if unknown else f"format {header.lookout_segment}"
        raise SchemaTooNew(f"the segment {where} was written by a newer Lookout ({what}): update Lookout")


def _split(body: bytes, where: str) -> Iterator[SegmentLine]:
    for number, line in enumerate(body.split(b"\n")[:-1], start=2):
        match = _LINE.fullmatch(line)
        if match is None:
            raise _damaged(where, f"line {number} is not a row")
        yield SegmentLine(match[1].decode(), match[2])


def _damaged(where: str, why: str) -> WarehouseDamaged:
    return WarehouseDamaged(f"the segment {where} is damaged: {why}")
