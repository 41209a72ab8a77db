"""Which of a model's proposals become drafts: their quote stands in the document, their gold in the quote."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from monitors.facts.disclosures import find_disclosures
from monitors.facts.language import identify
from monitors.goldset.drafting import ProposedDraft, Refused, severity_of, shortened
from monitors.goldset.overlap import grams, overlap
from monitors.goldset.quantities_kept import missing_from
from monitors.goldset.quotes import FEWEST_WORDS, find_quote
from monitors.records.base import Identifier, Language, Record, Sha256
from monitors.records.cases import GoldCase, Pipeline, Provenance, Text
from monitors.records.drafts import GoldDraft, Quote

SAME_QUESTION = 0.8
"""Overlap of letters from which two drafts of one clause ask the same; see `monitors.goldset.duplicates_check`."""

ID_DIGITS = 12

AROUND = 180
"""Characters of the document that are kept on either side of a quote: a sentence or two."""


class Document(Record):
    """A document that questions are drafted from. ``name`` is what people call it; ``sha256`` is over its bytes."""

    name: Text
    sha256: Sha256
    text: Text


class Wanted(Record):
    """What the drafts' cases have in common."""

    count: Annotated[int, Field(ge=1, le=40)] = 5
    language: Language = Language.ENGLISH
    citation: str | None = None
    cluster: Identifier | None = None
    account_patterns: tuple[str, ...] = ()
    """Regular expressions for the target's own numbers: personal data."""


class Origin(Record):
    """Who drafted, asked what, when."""

    model: Text
    prompt_sha256: Sha256
    at: datetime


def draft_of(
    proposed: ProposedDraft, document: Document, wanted: Wanted, origin: Origin, others: Sequence[GoldCase]
) -> GoldDraft | Refused:
    """A proposal as a draft, or why it is none. ``others`` are the cases and drafts that there are already."""
    place = find_quote(proposed.quote, document.text)
    reason = _quote_problem(proposed) if place is None else _problem(proposed, wanted, document.text[slice(*place)])
    if place is None or reason:
        return Refused(about=shortened(proposed.question), reason=reason)
    quote = _quote(document, place)
    case = _case(proposed, document, wanted, quote)
    twin = next((one for one in others if _asks_the_same(one, case)), None)
    if twin is not None:
        return Refused(about=shortened(proposed.question), reason=f"{twin.id} asks the same")
    return GoldDraft(
        id=case.id,
        made_at=origin.at,
        model=origin.model,
        prompt_sha256=origin.prompt_sha256,
        case=case,
        quote=quote,
        why=proposed.why,
    )


def _quote(document: Document, place: tuple[int, int]) -> Quote:
    start, end = place
    return Quote(
        document=document.name,
        document_sha256=document.sha256,
        text=document.text[start:end],
        start=start,
        end=end,
        before=document.text[max(0, start - AROUND) : start],
        after=document.text[end : end + AROUND],
    )


def _quote_problem(proposed: ProposedDraft) -> str:
    if len(proposed.quote.split()) < FEWEST_WORDS:
        return f'its quote "{proposed.quote}" has fewer than {FEWEST_WORDS} words'
    return f'its quote does not stand in the document: "{shortened(proposed.quote)}"'


def _problem(proposed: ProposedDraft, wanted: Wanted, clause: str) -> str:
    unfounded = missing_from(proposed.gold, clause)
    if unfounded:
        return f"its gold states {', '.join(unfounded)}, which the quoted clause does not"
    found = identify(proposed.question)
    if found is not wanted.language:
        return f"it is in {found.value}, asked for was {wanted.language.value}"
    personal = find_disclosures(f"{proposed.question}\n{proposed.gold}", account_patterns=wanted.account_patterns)
    return f"it holds personal data ({personal[0].kind.value})" if personal else ""


def _case(proposed: ProposedDraft, document: Document, wanted: Wanted, quote: Quote) -> GoldCase:
    asked = " ".join(proposed.question.split())
    digest = hashlib.sha256(f"{document.sha256}\0{asked}".encode()).hexdigest()[:ID_DIGITS]
    return GoldCase(
        id=f"draft-{digest}",
        turns=(asked,),
        gold=" ".join(proposed.gold.split()),
        severity=severity_of(proposed),
        language=wanted.language,
        type=proposed.type,
        expected_citation=wanted.citation,
        cluster=wanted.cluster,
        provenance=Provenance(pipeline=Pipeline.DRAFT, document=document.name, clause=" ".join(quote.text.split())),
    )


def _asks_the_same(one: GoldCase, other: GoldCase) -> bool:
    """Nearly the same words about the same document: two policies are asked the same things."""
    if one.language is not other.language or one.provenance.document != other.provenance.document:
        return False
    return overlap(grams(one.question), grams(other.question)) >= SAME_QUESTION
