"""Conversations of real users with the application, as they are read from a source."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Milliseconds, Record, UtcTime
from monitors.records.exchanges import Step


class Thumb(StrEnum):
    """What a user pressed below a reply."""

    UP = "up"
    DOWN = "down"


class Feedback(Record):
    """What a user thought of one reply."""

    thumb: Thumb
    comment: str = ""


class Turn(Record):
    """One message of the user and its reply; an empty ``reply_text`` means that there was none.

    ``lists_citations`` says that the source has a field for ``citations``, filled or not. ``context`` are stored
    passages that the application used for its reply: without gold, the reply is checked against them. ``app_path``
    names the model or path that replied (primary, fallback, …). ``is_question`` says whether the reply is a
    clarifying question, if the source knows. ``is_report`` says that the message is an issue with its title in the
    first line, and the reply an agent's report; ``steps`` and ``hops`` are what the agent did, if they were stored.
    """

    user_text: str
    reply_text: str
    citations: tuple[str, ...] = ()
    lists_citations: bool = False
    context: tuple[str, ...] = ()
    app_path: str | None = None
    latency_ms: Milliseconds | None = None
    is_question: bool | None = None
    feedback: Feedback | None = None
    is_report: bool = False
    issue_url: str | None = None
    steps: tuple[Step, ...] = ()
    hops: Annotated[int, Field(ge=0)] | None = None


class Conversation(Record):
    """A completed conversation. ``id`` is the source's id if it is a valid identifier, else derived from it.

    ``origin_id`` is the source's unchanged id, to which scores are written back. Without one it equals ``id``,
    which is then derived from the time and the turns.
    """

    id: Identifier
    origin_id: str
    completed_at: UtcTime
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    app_version: str | None = None
    user_key: str | None = None
    """The user as the source names them: an account, a session. Pseudonymised before it is stored."""


class SourceWarningKind(StrEnum):
    """A problem in reading a source."""

    LINE_UNREADABLE = "line_unreadable"
    ITEM_UNREADABLE = "item_unreadable"
    PAGE_UNREADABLE = "page_unreadable"
    ITEM_CHANGED = "item_changed"
    """The same id occurred with another question: the later one counts."""
    PAGES_MAY_FOLLOW = "pages_may_follow"
    """A page looks full, but the source does not say whether another one follows."""


class UnusableReason(StrEnum):
    """Why an item is not a conversation that can be graded."""

    BROKEN = "broken"
    """The line, page or item cannot be parsed."""
    NO_TIME = "no_time"
    NO_QUESTION = "no_question"
    NO_REPLY_PLACE = "no_reply_place"
    """It has no place for a reply, so that nobody can tell whether there was one."""
    REPLY_UNREADABLE = "reply_unreadable"
    """A reply is there, in a form that is not known."""
    NO_CONVERSATION = "no_conversation"
    """A span of a tracer, or a message, in which the user neither writes nor reads."""
    UNPAIRED = "unpaired"
    """Its questions and answers cannot be paired, or it is a message without the id of its conversation."""
    INVALID = "invalid"
    """A part of it has a value that cannot be stored."""


class SourceWarning(Record):
    """An item that could not be read: it is counted and reported, and the other items are read.

    ``place`` says where (file and line, page of an export, id of a run). ``detail`` quotes no text of the item; of
    a time that cannot be read it shows the value. ``at`` is when the item or its neighbour was completed, if known.
    ``reason`` is absent for a warning about a whole source.
    """

    kind: SourceWarningKind
    place: str
    detail: str
    reason: UnusableReason | None = None
    at: UtcTime | None = None


class Watermark(Record):
    """How far a source has been read: all conversations that were completed and available by then.

    The next nightly run starts some time before it, to find late conversations; ids show which are known.
    """

    source: Identifier
    completed_to: UtcTime


class SampledConversation(Record):
    """A conversation that was sampled, with how likely that was: every rate is weighted by it."""

    conversation: Conversation
    stratum: Identifier
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]

    def with_conversation(self, conversation: Conversation) -> SampledConversation:
        """Return the same sample entry with the version of the conversation that may be stored."""
        return SampledConversation(
            conversation=conversation, stratum=self.stratum, inclusion_probability=self.inclusion_probability
        )


class StratumCount(Record):
    """One stratum of a nightly run: how many conversations there were and how many were sampled."""

    stratum: Identifier
    conversations: Annotated[int, Field(ge=0)]
    sampled: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _check_sample_count(self) -> Self:
        if self.sampled > self.conversations:
            raise ValueError("more conversations are sampled than exist")
        return self
