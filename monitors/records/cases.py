"""Gold questions and the suites they come in."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Identifier, Language, Record, Severity, Sha256, UtcTime

Text = Annotated[str, Field(min_length=1)]


class Pipeline(StrEnum):
    """How a case came to be."""

    TEMPLATE = "template"
    DRAFT = "draft"
    ADVERSARIAL = "adversarial"
    BILINGUAL = "bilingual"
    TRIAGE = "triage"
    GROWTH = "growth"
    IMPORTED = "imported"


class Provenance(Record):
    """Where a case comes from, so that a dispute over its gold can be settled.

    ``field`` and ``clause`` are the fact and the words of the document behind the gold;
    ``reviewed_by`` is the person who said yes, ``reviewed_at`` when. What a model or a stranger wrote is no gold
    without a name: see `NEEDS_REVIEW`.
    """

    pipeline: Pipeline
    document: str | None = None
    field: str | None = None
    clause: str | None = None
    reviewed_by: str | None = None
    reviewed_at: UtcTime | None = None


NEEDS_REVIEW = frozenset({Pipeline.DRAFT, Pipeline.BILINGUAL, Pipeline.GROWTH})
"""Pipelines whose cases are proposals until a person has said yes: no suite with one unreviewed loads."""


class GoldCase(Record):
    """One question with what is expected of the answer.

    ``turns`` are the user's messages in order; the last one's answer is graded. ``gold`` is the right answer in
    words (for an expected refusal: why it must refuse). Any of ``alternatives`` is as good as ``gold``.
    ``expected_citation`` is text that one of the answer's citations must contain. ``cluster`` names what
    related cases share (a policy), ``pair`` joins translations of one question.
    ``month_is_30_days`` and ``relative_tolerance`` (a share, 0.01 = 1 %) loosen the comparison of quantities.
    """

    id: Identifier
    turns: Annotated[tuple[Text, ...], Field(min_length=1)]
    gold: Text
    alternatives: tuple[Text, ...] = ()
    expected_refusal: bool = False
    expected_citation: Text | None = None
    severity: Severity
    language: Language
    type: Identifier
    provenance: Provenance
    cluster: Identifier | None = None
    pair: Identifier | None = None
    month_is_30_days: bool = False
    relative_tolerance: Annotated[Decimal, Field(ge=0, lt=1)] = Decimal(0)

    @property
    def question(self) -> str:
        """The turn whose answer is graded."""
        return self.turns[-1]


class Suite(Record):
    """A versioned set of cases. ``sha256`` is over the cases alone and goes on every result."""

    name: Identifier
    sha256: Sha256
    cases: Annotated[tuple[GoldCase, ...], Field(min_length=1)]
