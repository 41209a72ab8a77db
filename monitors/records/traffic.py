"""Conversations that real users had with the application, as they are read from wherever they are stored."""

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
    """One message of the user and what came back: nothing, where ``reply_text`` is empty.

    ``context`` are the passages that the application had before it when it replied, as far as they were stored:
    what a reply can be checked against when there is no gold. ``app_path`` names the model or path that replied
    (primary, fallback, …). ``is_question`` says whether the reply asked back to clear something up, where the
    source says so itself. ``is_report`` says that the user gave an issue, its title in the first line, and that the
    reply is an agent's report on it; ``steps`` and ``hops`` are what the agent did, where they were stored.
    """

    user_text: str
    reply_text: str
    citations: tuple[str, ...] = ()
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
    """A completed conversation. ``id`` is the source's own where that can be one, else made from it.

    ``origin_id`` is the source's id as it stands there: what scores are written back to. Where the source gives
    none, it is ``id``, which is then made from the time and the turns.
    """

    id: Identifier
    origin_id: str
    completed_at: UtcTime
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    app_version: str | None = None
    user_key: str | None = None
    """Who it was, as far as the source says: an account, a session. Pseudonymised before it is stored."""


class SourceWarningKind(StrEnum):
    """A problem in reading a source."""

    LINE_UNREADABLE = "line_unreadable"
    ITEM_UNREADABLE = "item_unreadable"
    PAGE_UNREADABLE = "page_unreadable"
    ITEM_CHANGED = "item_changed"
    """The same id came with another question: the later one counts, the other is not used."""
    PAGES_MAY_FOLLOW = "pages_may_follow"
    """A page that looks full says nothing of a next one."""


class SourceWarning(Record):
    """An item that could not be read: it is counted and reported, those around it are read as ever.

    ``place`` says where (file and line, page of an export, id of a run). ``detail`` never quotes the item. ``at``
    is when the item was completed, as far as it or its neighbour says.
    """

    kind: SourceWarningKind
    place: str
    detail: str
    at: UtcTime | None = None


class Watermark(Record):
    """How far a source has been read: what had been completed up to then and was there has been seen.

    A later nightly run reads again from some time before it, for what comes late; ids show what was seen already.
    """

    source: Identifier
    completed_to: UtcTime


class SampledConversation(Record):
    """A conversation that was sampled, with how likely that was: every rate is weighted by it."""

    conversation: Conversation
    stratum: Identifier
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]

    def store_as(self, conversation: Conversation) -> SampledConversation:
        """The same place in the sample, with the version of the conversation that may be stored."""
        return SampledConversation(
            conversation=conversation, stratum=self.stratum, inclusion_probability=self.inclusion_probability
        )


class StratumCount(Record):
    """One stratum of a nightly run: how many conversations there were and how many were sampled."""

    stratum: Identifier
    conversations: Annotated[int, Field(ge=0)]
    sampled: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _sampled_from_it(self) -> Self:
        if self.sampled > self.conversations:
            raise ValueError("no more can be sampled than there are")
        return self
