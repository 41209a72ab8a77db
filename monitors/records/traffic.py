"""Conversations between real users and the application, as read from a source."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Milliseconds, Record, UtcTime
from monitors.records.exchanges import Step


class Thumb(StrEnum):
    """A user's thumbs up or thumbs down on a reply."""

    UP = "up"
    DOWN = "down"


class Feedback(Record):
    """A user's feedback on a reply."""

    thumb: Thumb
    comment: str = ""


class Turn(Record):
    """A user's message and the reply to it. If ``reply_text`` is empty, there was no reply.

    - ``lists_citations`` is true if the source has a field for citations.
    - ``context`` contains the passages that the application used.
    - ``app_path`` is the name of the model or path that replied.
    - ``is_question`` is true if the reply is a clarifying question.
    - If ``is_report`` is true, the message is an issue, and the reply is an agent's report.
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
    """A completed conversation between a user and the application.

    ``origin_id`` is the id of the conversation in the source. ``id`` is ``origin_id`` converted to a valid
    `Identifier`.
    """

    id: Identifier
    origin_id: str
    completed_at: UtcTime
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    app_version: str | None = None
    user_key: str | None = None
    """The user's name in the source. The name is replaced by a pseudonym before the conversation is stored."""


class SourceWarningKind(StrEnum):
    """The kind of a problem that occurred when a source was read."""

    LINE_UNREADABLE = "line_unreadable"
    ITEM_UNREADABLE = "item_unreadable"
    PAGE_UNREADABLE = "page_unreadable"
    ITEM_CHANGED = "item_changed"
    """The same id occurred again with another question. The later version of the item counts."""
    PAGES_MAY_FOLLOW = "pages_may_follow"
    """A page is full, and the source does not report whether there are more pages."""


class UnusableReason(StrEnum):
    """Why an item cannot be graded as a conversation."""

    BROKEN = "broken"
    """The line, page or item cannot be parsed."""
    NO_TIME = "no_time"
    NO_QUESTION = "no_question"
    NO_REPLY_PLACE = "no_reply_place"
    """The item has no field for a reply. Therefore, Lookout cannot know whether there was a reply."""
    REPLY_UNREADABLE = "reply_unreadable"
    """The item has a reply in an unknown format."""
    NO_CONVERSATION = "no_conversation"
    """The item is not a message that a user wrote or read."""
    UNPAIRED = "unpaired"
    """The questions and answers of the item cannot be paired, or the item has no conversation id."""
    INVALID = "invalid"
    """The item contains a value that Lookout cannot store."""


class SourceWarning(Record):
    """A warning about an item that could not be read. All other items are still read.

    ``place`` is the location of the item, for example file and line. ``detail`` contains no text from the item. A
    warning about a whole source has no ``reason``.
    """

    kind: SourceWarningKind
    place: str
    detail: str
    reason: UnusableReason | None = None
    at: UtcTime | None = None


class Watermark(Record):
    """The position up to which a source was read.

    The next nightly run starts a little before this position, to find conversations that arrived late.
    """

    source: Identifier
    completed_to: UtcTime


class SampledConversation(Record):
    """A sampled conversation, and the probability with which it was sampled.

    In rates, the conversation has a weight of 1 divided by this probability.
    """

    conversation: Conversation
    stratum: Identifier
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]

    def with_conversation(self, conversation: Conversation) -> SampledConversation:
        """Return a copy of the sample with ``conversation``, the version of the conversation that may be stored."""
        return SampledConversation(
            conversation=conversation, stratum=self.stratum, inclusion_probability=self.inclusion_probability
        )


class StratumCount(Record):
    """The number of conversations in one stratum (a group with similar risk), and how many of them were sampled."""

    stratum: Identifier
    conversations: Annotated[int, Field(ge=0)]
    sampled: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _check_sample_count(self) -> Self:
        if self.sampled > self.conversations:
            raise ValueError("the number of sampled conversations is larger than the number of conversations")
        return self
