"""Records of the application's own hallucination log: the read position, the entries, and invalid lines."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, Strict, StrictInt, StrictStr

from monitors.records.base import Identifier, Probability, Record, Sha256, UtcTime

Offset = Annotated[int, Field(ge=0)]
"""A position in a file, in bytes from the start of the file."""


class FileMark(Record):
    """The read position in a log file, and hashes by which Lookout recognises the file after a rotation.

    Lookout recognises a file only by its content, because a copy of the file has another inode. ``starts_sha256``
    contains the hashes of the file's first 64, 256, 1,024, … bytes. ``tail_sha256`` is the hash of the last
    ``tail_bytes`` bytes before ``offset``.
    """

    generation: Annotated[int, Field(ge=0)]
    """The number of this file in the log, counted from 0. Newer files have larger numbers."""
    offset: Offset
    """The position after the last complete line that was read."""
    starts_sha256: tuple[Sha256, ...] = ()
    tail_bytes: Offset
    tail_sha256: Sha256


class LogCursor(Record):
    """The position up to which a log was read.

    The cursor and the entries that were read are stored in one transaction. Therefore, no entry is skipped after a
    restart.
    """

    log: Identifier
    sequence: Annotated[int, Field(ge=1)] = 1
    """The number of this read operation. Later read operations have larger numbers."""
    current: FileMark
    earlier: tuple[FileMark, ...] = ()
    """Older files of the log, newest first. The application may still append lines to these files."""
    modified_ns: Offset = 0
    """The time at which the newest file was last written, in nanoseconds, from the clock of its file system."""
    history_to: Offset = 0
    """Size of the log in bytes when Lookout began to watch it. Entries before this position send no alert."""

    @property
    def has_read_nothing(self) -> bool:
        """Return whether nothing has been read from the log, because it has been empty so far."""
        return self.current.offset == 0 and not self.earlier

    def is_written_before_watching(self, generation: int, offset: int) -> bool:
        """Return whether the line at this position was written before Lookout began to watch the log.

        ``generation`` identifies the file, and ``offset`` is the position in the file in bytes.
        """
        return generation == 0 and offset < self.history_to


class QuarantineReason(StrEnum):
    """The reason why a line is not a valid entry."""

    TOO_LONG = "too_long"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    NO_TEXT = "no_text"
    """The line is a JSON object, but has no question, reply or claim under a known field name."""


class QuarantinedLine(Record):
    """A line of a log that is not a valid entry. All other lines of the log are still read."""

    id: Identifier
    log: Identifier
    generation: int
    offset: Offset
    length: Offset
    sha256: Sha256
    reason: QuarantineReason
    detail: str


class LogWarningKind(StrEnum):
    """The kind of problem with a log."""

    MISSING = "missing"
    """No file of the log exists."""
    REPLACED = "replaced"
    """The file that Lookout was reading no longer exists. Lines that Lookout had not read yet are lost."""


class LogWarning(Record):
    """A problem that the owner of the log must fix: the log or some of its lines are missing."""

    log: Identifier
    kind: LogWarningKind
    generation: int
    offset: Offset
    """The position up to which Lookout read the file that is now missing."""
    detail: str


class BlockedReply(Record):
    """A reply that the application blocked, with the fields of the application's log.

    ``extra`` contains unknown fields, and known fields whose value has an unexpected type.
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
        """Return whether the question, the blocked reply or a claim contains text that a person can judge."""
        return any(text and text.strip() for text in (self.user_text, self.blocked_reply, *self.unsupported_claims))


class HallucinationEntry(Record):
    """An entry of a hallucination log with its position. The same text at another position is a different entry."""

    id: Identifier
    log: Identifier
    generation: Annotated[int, Field(ge=0)]
    offset: Offset
    reply: BlockedReply


class LoggedHallucination(Record):
    """A log entry in the form in which it is stored: with redacted texts, and the fingerprint of its incident.

    ``notify`` is false for entries that were written before Lookout began to watch the log.
    """

    target: Identifier
    fingerprint: Sha256
    read_at: UtcTime
    notify: bool
    entry: HallucinationEntry
