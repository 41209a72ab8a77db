"""The application's own hallucination log: the reading position, entries, and unreadable lines."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, Strict, StrictInt, StrictStr

from monitors.records.base import Identifier, Probability, Record, Sha256, UtcTime

Offset = Annotated[int, Field(ge=0)]
"""A place in a file, in bytes from its start."""


class FileMark(Record):
    """Identifies a file after rotation has moved it, and says how far it was read.

    By content only: inodes are reused, and copies get new ones. ``starts_sha256`` are digests of the first 64, 256,
    1,024, … bytes that were read, so that a shorter copy is recognised too. The tail is the ``tail_bytes`` bytes
    just before ``offset``. All are within what was read, which an append never changes.
    """

    generation: Annotated[int, Field(ge=0)]
    """How many times the log had been rotated when this file was its newest."""
    offset: Offset
    """Read up to here: the byte after the last complete line."""
    starts_sha256: tuple[Sha256, ...] = ()
    tail_bytes: Offset
    tail_sha256: Sha256


class LogCursor(Record):
    """The reading position. It is stored in one transaction with the entries: a restart skips nothing."""

    log: Identifier
    sequence: Annotated[int, Field(ge=1)] = 1
    """Counts the steps of reading: a larger one is further on."""
    current: FileMark
    earlier: tuple[FileMark, ...] = ()
    """Files of earlier generations, newest first: their writers may still add a line."""
    modified_ns: Offset = 0
    """When the newest file was last written to, by its file system's clock: older files are known."""
    history_to: Offset = 0
    """The size of the log when its target was registered: earlier entries are history and send no alert."""

    @property
    def has_read_nothing(self) -> bool:
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
    NO_TEXT = "no_text"
    """An object without a question, a reply or a claim at a known name."""


class QuarantinedLine(Record):
    """A line that is not an entry. It is stored separately and counted; the other lines are read."""

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
    """Neither the file nor any of its earlier ones exists."""
    REPLACED = "replaced"
    """The file that was being read is gone: lines that were written to it since are missing."""


class LogWarning(Record):
    """A problem for the owner of the log: lines are missing, or the log is."""

    log: Identifier
    kind: LogWarningKind
    generation: int
    offset: Offset
    """The missing file was read up to here."""
    detail: str


class BlockedReply(Record):
    """A reply that the application blocked, with the fields of its log. Missing fields are absent.

    ``extra`` holds unknown fields, and known ones whose value has another type: an unusual entry is still an entry.
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

    @property
    def has_text(self) -> bool:
        """Whether it holds something that a person can judge: a question, a reply or a claim."""
        return any(text and text.strip() for text in (self.user_text, self.blocked_reply, *self.unsupported_claims))


class HallucinationEntry(Record):
    """One entry of a hallucination log with its place. The same text at another place is another entry."""

    id: Identifier
    log: Identifier
    generation: Annotated[int, Field(ge=0)]
    offset: Offset
    reply: BlockedReply


class LoggedHallucination(Record):
    """A stored entry: its texts redacted, with the incident that reports it.

    ``notify`` is false for entries from before the log was watched: history sends no alert.
    """

    target: Identifier
    fingerprint: Sha256
    read_at: UtcTime
    notify: bool
    entry: HallucinationEntry
