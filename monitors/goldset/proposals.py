"""Model proposals: what a model is asked when it drafts questions, and what of its reply is accepted.

No model is called here. A proposed question becomes a draft when its quote stands in the document and its gold in
the quote. A translation becomes a draft when it states the same quantities in the language that was asked for.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Final, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.language import identify
from monitors.facts.similarity import QUOTE_MIN_WORDS, differences, find_quote, grams, missing_from, overlap
from monitors.goldset.lines import read_json
from monitors.records.base import Identifier, Language, Record, Severity, Sha256
from monitors.records.cases import GoldCase, GoldDraft, Pipeline, Provenance, Quote, Text

QUESTION_CHARACTERS: Final = 600
GOLD_CHARACTERS: Final = 600
QUOTE_CHARACTERS: Final = 1_200
"""Longer ones are no question, no short answer and no clause."""

MOST_CHARACTERS: Final = 200_000
"""The limit of a whole reply: forty drafts of the longest kind."""

_TYPE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+){0,3}")

TASK: Final = "Write {count} questions in {language}."
LANGUAGES: Final = {"en": "English", "hi": "Hindi (in Devanagari)", "hinglish": "Hinglish (Hindi in Latin letters)"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _list(name: str, item: dict[str, Any]) -> dict[str, Any]:
    return _object({name: {"type": "array", "items": _object(item)}})


_STRING: Final = {"type": "string"}
DRAFTS_SCHEMA: Final = _list(
    "drafts",
    {
        "question": _STRING,
        "quote": {"type": "string", "description": "copied letter by letter from the document"},
        "gold": {"type": "string", "description": "the right answer, short"},
        "type": _STRING,
        "severity": {"type": "integer", "enum": [1, 2, 3]},
        "why": _STRING,
    },
)
TRANSLATIONS_SCHEMA: Final = _list(
    "translations", {"number": {"type": "integer"}, "question": _STRING, "gold": _STRING, "why": _STRING}
)
"""What a model must write. Bounds are not in it, as structured output enforces none: they are checked after."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _text(most: int) -> Any:
    return Field(min_length=1, max_length=most, pattern=r"\S")


class ProposedDraft(_Strict):
    """One draft as the model wrote it, with the right shape and nothing more."""

    question: Annotated[str, _text(QUESTION_CHARACTERS)]
    quote: Annotated[str, _text(QUOTE_CHARACTERS)]
    gold: Annotated[str, _text(GOLD_CHARACTERS)]
    type: Annotated[str, Field(pattern=rf"^{_TYPE.pattern}$", max_length=60)]
    severity: Annotated[int, Field(ge=1, le=3)]
    why: Annotated[str, Field(max_length=1_000)]


class ProposedTranslation(_Strict):
    """One translation as the model wrote it. ``number`` counts from 1."""

    number: Annotated[int, Field(ge=1)]
    question: Annotated[str, _text(QUESTION_CHARACTERS)]
    gold: Annotated[str, _text(GOLD_CHARACTERS)]
    why: Annotated[str, Field(max_length=1_000)]


class RejectedProposal(Record):
    """A proposal that does not become a draft, and why. ``about`` is its question, shortened."""

    about: str
    reason: str


@lru_cache(maxsize=4)
def instructions(task: str) -> str:
    """The text of a task: ``draft`` or ``translate``."""
    return files("monitors.goldset").joinpath("prompts", f"{task}.md").read_text(encoding="utf-8")


def prompt_sha256(task: str, layout: str) -> str:
    """Names what a model is asked: SHA-256 over instructions, the layout of the material, and the schema."""
    schema = DRAFTS_SCHEMA if task == "draft" else TRANSLATIONS_SCHEMA
    whole = "\0".join((instructions(task), layout, json.dumps(schema, sort_keys=True)))
    return hashlib.sha256(whole.encode()).hexdigest()


Proposal = TypeVar("Proposal", ProposedDraft, ProposedTranslation)


def read_drafts_reply(text: str) -> tuple[list[ProposedDraft], list[RejectedProposal]]:
    """The drafts in a reply. `ValueError` when it is not the object that was asked for."""
    return _read(text, "drafts", TypeAdapter(ProposedDraft))


def read_translations_reply(text: str) -> tuple[list[ProposedTranslation], list[RejectedProposal]]:
    """The translations in a reply. `ValueError` when it is not the object that was asked for."""
    return _read(text, "translations", TypeAdapter(ProposedTranslation))


def _read(text: str, key: str, shape: TypeAdapter[Proposal]) -> tuple[list[Proposal], list[RejectedProposal]]:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the model wrote {len(text):,} characters")
    value = read_json(text)
    rows: Any = value.get(key) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON is untyped
    if not isinstance(rows, list):
        raise ValueError(f'the reply is not an object with a list "{key}"')  # noqa: TRY004 - the reply is bad, not a type
    good: list[Proposal] = []
    bad: list[RejectedProposal] = []
    for row in cast("list[object]", rows):
        try:
            good.append(shape.validate_python(row))
        except ValidationError as error:
            bad.append(RejectedProposal(about=shortened(_question(row)), reason=_describe_error(error)))
    return good, bad


def shortened(text: str, most: int = 90) -> str:
    """A text in one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def severity_of(proposed: ProposedDraft) -> Severity:
    """What the model proposes; a person confirms it with their yes."""
    return Severity(proposed.severity)


def _question(row: object) -> str:
    asked: object = row.get("question") if isinstance(row, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON is untyped
    return asked if isinstance(asked, str) else "a proposal without a question"


def _describe_error(error: ValidationError) -> str:
    places = sorted(
        {".".join(map(str, detail["loc"])) or "the whole" for detail in error.errors(include_url=False)}
    )
    return f"{', '.join(places)} is missing, too long or of the wrong form"


SAME_QUESTION = 0.8
"""Overlap of letters from which two drafts of one clause ask the same; see `monitors.goldset.checks`."""

ID_DIGITS = 12

AROUND = 180
"""Characters of the document that are stored on either side of a quote: a sentence or two."""


class Document(Record):
    """A document that questions are drafted from. ``name`` is what people call it; ``sha256`` is over its bytes."""

    name: Text
    sha256: Sha256
    text: Text


class DraftDefaults(Record):
    """What the drafts' cases have in common."""

    count: Annotated[int, Field(ge=1, le=40)] = 5
    language: Language = Language.ENGLISH
    citation: str | None = None
    cluster: Identifier | None = None
    account_patterns: tuple[str, ...] = ()
    """Regular expressions for the target's own numbers: personal data."""


class DraftOrigin(Record):
    """Who drafted, asked what, when."""

    model: Text
    prompt_sha256: Sha256
    at: datetime


def draft_of(
    proposed: ProposedDraft,
    document: Document,
    wanted: DraftDefaults,
    origin: DraftOrigin,
    others: Sequence[GoldCase],
) -> GoldDraft | RejectedProposal:
    """A proposal as a draft, or why it is none. ``others`` are the cases and drafts that there are already."""
    place = find_quote(proposed.quote, document.text)
    reason = _quote_problem(proposed) if place is None else _problem(proposed, wanted, document.text[slice(*place)])
    if place is None or reason:
        return RejectedProposal(about=shortened(proposed.question), reason=reason)
    quote = _quote(document, place)
    case = _case(proposed, document, wanted, quote)
    mutant = next((one for one in others if _asks_the_same(one, case)), None)
    if mutant is not None:
        return RejectedProposal(about=shortened(proposed.question), reason=f"{mutant.id} asks the same")
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
    if len(proposed.quote.split()) < QUOTE_MIN_WORDS:
        return f'its quote "{proposed.quote}" has fewer than {QUOTE_MIN_WORDS} words'
    return f'its quote does not stand in the document: "{shortened(proposed.quote)}"'


def _problem(proposed: ProposedDraft, wanted: DraftDefaults, clause: str) -> str:
    unfounded = missing_from(proposed.gold, clause)
    if unfounded:
        return f"its gold states {', '.join(unfounded)}, which the quoted clause does not"
    found = identify(proposed.question)
    if found is not wanted.language:
        return f"it is in {found.value}, asked for was {wanted.language.value}"
    personal = find_disclosures(f"{proposed.question}\n{proposed.gold}", account_patterns=wanted.account_patterns)
    return f"it holds personal data ({personal[0].kind.value})" if personal else ""


def _case(proposed: ProposedDraft, document: Document, wanted: DraftDefaults, quote: Quote) -> GoldCase:
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


def translation_of(
    proposed: ProposedTranslation, original: GoldCase, language: Language
) -> GoldCase | RejectedProposal:
    """The translated case, or why it is none. The English gold stays as good as the translated one.

    Severity, type, citation, cluster and clause are the original's; both are joined by ``pair``.
    """
    question, gold = " ".join(proposed.question.split()), " ".join(proposed.gold.split())
    reason = translation_problem(question, gold, original, language)
    if reason:
        return RejectedProposal(about=shortened(proposed.question), reason=reason)
    alternatives = () if original.expected_refusal or gold == original.gold else (original.gold,)
    return original.model_copy(
        update={
            "id": f"{original.id}-{language.value}",
            "turns": (question,),
            "gold": gold,
            "alternatives": tuple(dict.fromkeys((*alternatives, *original.alternatives))),
            "must_say": (),  # its words are of the original's language
            "language": language,
            "pair": original.pair or original.id,
            "provenance": original.provenance.model_copy(
                update={"pipeline": Pipeline.BILINGUAL, "reviewed_by": None, "reviewed_at": None}
            ),
        }
    )


def translation_problem(question: str, gold: str, original: GoldCase, language: Language) -> str:
    """Why these words cannot stand for the original in ``language``; empty when they can."""
    changed = [*differences(original.question, question), *differences(original.gold, gold)]
    if changed:
        return f"against {original.id}, {', '.join(changed)}"
    found = identify(question)
    if found is not language:
        return f"its question reads as {found.value}, asked for was {language.value}"
    if find_disclosures(f"{question}\n{gold}") and not find_disclosures(f"{original.question}\n{original.gold}"):
        return "it adds personal data"
    return ""
