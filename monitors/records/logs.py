"""The application's own hallucination log: where reading stands, what was read, what could not be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, Strict, StrictInt, StrictStr

from monitors.records.base import Identifier, Probability, Record, Sha256, UtcTime

Offset = Annotated[int, Field(ge=0)]
"""A place in a file, in bytes from its start."""


class FileMark(Record):
    """How a file is known again, wherever rotation has moved it, and how far it was read.

    By content alone: inodes are reused, and copies get new ones. ``starts_sha256`` are digests of the first 64,
    256, 1,024, … bytes, as far as it was read, so that a shorter copy is known too. The tail is the ``tail_bytes``
    bytes just before ``offset``. All lie in what was read, which an append never changes.
    """

    generation: Annotated[int, Field(ge=0)]
    """How many times the log had started anew when this file was its newest."""
    offset: Offset
    """Read up to here: the byte after the last complete line."""
    starts_sha256: tuple[Sha256, ...] = ()
    tail_bytes: Offset
    tail_sha256: Sha256


class LogCursor(Record):
    """Where reading stands. It is stored in one step with what was read: a restart neither skips nor repeats."""

    log: Identifier
    sequence: Annotated[int, Field(ge=1)] = 1
    """Counts the steps of reading: of two cursors the larger one is further on."""
    current: FileMark
    earlier: tuple[FileMark, ...] = ()
    """Files of earlier generations, newest first: their writers may still add a line."""
    modified_ns: Offset = 0
    """When the newest file had last been written to, by its file system's clock: what is older is known."""
    history_to: Offset = 0
    """Bytes that the log held when watching began: what stands there is history, and wakes nobody."""

    @property
    def nothing_read(self) -> bool:
        """Whether no file of this log has ever held anything."""
        return self.current.offset == 0 and not self.earlier

    def is_history(self, generation: int, offset: int) -> bool:
        """Whether a line at this place had been written before watching began."""
        return generation == 0 and offset < self.history_to


class QuarantineReason(StrEnum):
    """Why a line could not be read as an entry."""

    TOO_LONG = "too_long"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"


class QuarantinedLine(Record):
    """A line that is no entry. It is stored aside and counted; the lines around it are read as ever."""

    id: Identifier
    log: Identifier
    generation: int
    offset: Offset
    length: Offset
    sha256: Sha256
    reason: QuarantineReason
    detail: str


class LogWarningKind(StrEnum):
    """An event of the log itself."""

    MISSING = "missing"
    """There is no file, and none of its earlier ones either."""
    REPLACED = "replaced"
    """The file that was being read is gone: what had been written to it since is missing."""


class LogWarning(Record):
    """Something that the owner of the log must know: lines are missing, or the log is."""

    log: Identifier
    kind: LogWarningKind
    generation: int
    offset: Offset
    """Up to here the missing file had been read."""
    detail: str


class BlockedReply(Record):
    """A reply that the application held back, in the fields of its log. Whatever it left out is absent here.

    ``extra`` holds the fields that the format does not know, and known ones whose value is of another type than it
    says: an odd entry is still an entry.
    """

    ts: UtcTime | None = None
    user_text: StrictStr | None = None
    blocked_reply: StrictStr | None = None
    reasons: tuple[StrictStr, ...] = ()
    unsupported_claims: tuple[StrictStr, ...] = ()
    chunk_count: Annotated[StrictInt, Field(ge=0)] | None = None
    top_score: Annotated[Probability, Strict()] | None = None
    policy_ids: tuple[StrictStr, ...] = ()
    extra: dict[str, JsonValue] = Field(default_factory=dict)


class HallucinationEntry(Record):
    """One entry of a hallucination log and where it stands. The same text elsewhere is another entry."""

    id: Identifier
    log: Identifier
    generation: Annotated[int, Field(ge=0)]
    offset: Offset
    reply: BlockedReply


class LoggedHallucination(Record):
    """An entry as it is stored: its texts redacted, with the incident that reports it.

    ``notify`` is false for what stood in the log before it was watched: that is history and wakes nobody.
    """

    target: Identifier
    fingerprint: Sha256
    read_at: UtcTime
    notify: bool
    entry: HallucinationEntry
