"""Drafts of gold cases: what a model proposed, where its words stand, and what a person said of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.cases import GoldCase, Text
from monitors.records.incidents import Name


class DraftState(StrEnum):
    """How far a draft has come. Only an accepted one has a case in a suite."""

    DRAFTED = "drafted"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Quote(Record):
    """Words of a document, as they stand there.

    ``start`` and ``end`` count Unicode code points of the document's text, end exclusive; ``document_sha256`` is
    over its bytes, so that a place is not sought in a newer edition. ``before`` and ``after`` are what stands
    around the quote, for whoever reviews.
    """

    document: Text
    document_sha256: Sha256
    text: Text
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(gt=0)]
    before: str = ""
    after: str = ""


class GoldDraft(Record):
    """A case that a model proposes. Nothing of it is gold before a person has said yes.

    ``model`` is the one that answered, ``prompt_sha256`` names what it was asked. ``quote`` is the clause behind
    the gold; a translation has ``original``, the case that it is a translation of, instead. ``why`` is the model's
    reason for the severity. The case in a suite has the id of ``case``.
    """

    id: Identifier
    state: DraftState = DraftState.DRAFTED
    made_at: UtcTime
    model: Text
    prompt_sha256: Sha256
    case: GoldCase
    quote: Quote | None = None
    original: GoldCase | None = None
    why: str = ""
    reviewed_by: Name | None = None
    reviewed_at: UtcTime | None = None
    note: Annotated[str, Field(max_length=2_000)] = ""

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if (self.quote is None) == (self.original is None):
            raise ValueError("a draft has a `quote` of a document, or the `original` that it translates")
        decided = self.state is not DraftState.DRAFTED
        if decided != (self.reviewed_by is not None) or decided != (self.reviewed_at is not None):
            raise ValueError("`reviewed_by` and `reviewed_at` stand on a draft exactly when it was decided")
        return self


class DraftOutcome(Record):
    """What a person made of a `CaseDraft`. ``case_id`` and ``suite`` are set when it joined one."""

    draft_id: Identifier
    at: UtcTime
    by: Name
    joined: bool
    case_id: Identifier | None = None
    suite: str = ""
    note: Annotated[str, Field(max_length=2_000)] = ""

    @model_validator(mode="after")
    def _joined_something(self) -> Self:
        if self.joined != (self.case_id is not None):
            raise ValueError("an outcome has a `case_id` exactly when the draft joined a suite")
        return self
