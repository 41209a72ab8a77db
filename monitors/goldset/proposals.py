"""Check the questions and translations that a model proposes, and build drafts from the valid proposals.

This module does not call the model. A proposed question becomes a draft if its quote is in the document, and if
the quote contains the numbers of its answer. A proposed translation becomes a draft if it has the same numbers
as the original and is in the requested language.
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

from monitors.facts.disclosures.find import find_private_data_except_names
from monitors.facts.language import identify_language
from monitors.facts.similarity import (
    QUOTE_MIN_WORDS,
    build_character_ngrams,
    compute_jaccard_index,
    find_missing_quantities,
    find_quote,
    list_quantity_differences,
)
from monitors.goldset.lines import parse_strict_json
from monitors.records.base import Identifier, Language, Record, Severity, Sha256
from monitors.records.cases import GoldCase, GoldDraft, Pipeline, Provenance, Quote, Text

MAX_QUESTION_CHARACTERS: Final = 600
MAX_GOLD_CHARACTERS: Final = 600
MAX_QUOTE_CHARACTERS: Final = 1_200
"""Maximum number of characters of a proposed quote. A longer quote would contain more than one clause."""

MAX_REPLY_CHARACTERS: Final = 200_000
"""Maximum length of a model's whole reply, in characters. Forty long drafts fit into this length."""

_TYPE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+){0,3}")

TASK: Final = "Write {count} questions in {language}."
LANGUAGES: Final = {"en": "English", "hi": "Hindi (in Devanagari)", "hinglish": "Hinglish (Hindi in Latin letters)"}


def _build_object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _build_list_schema(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    return _build_object_schema({name: {"type": "array", "items": _build_object_schema(properties)}})


_STRING: Final = {"type": "string"}
DRAFTS_SCHEMA: Final = _build_list_schema(
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
TRANSLATIONS_SCHEMA: Final = _build_list_schema(
    "translations", {"number": {"type": "integer"}, "question": _STRING, "gold": _STRING, "why": _STRING}
)
"""The JSON schema of a model's reply.

The schema has no length limits, because Lookout checks the lengths itself.
"""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _build_text_field(max_characters: int) -> Any:
    return Field(min_length=1, max_length=max_characters, pattern=r"\S")


class ProposedDraft(_Strict):
    """One question that the model proposes, with its answer and its quote. Only its JSON form has been checked."""

    question: Annotated[str, _build_text_field(MAX_QUESTION_CHARACTERS)]
    quote: Annotated[str, _build_text_field(MAX_QUOTE_CHARACTERS)]
    gold: Annotated[str, _build_text_field(MAX_GOLD_CHARACTERS)]
    type: Annotated[str, Field(pattern=rf"^{_TYPE.pattern}$", max_length=60)]
    severity: Annotated[int, Field(ge=1, le=3)]
    why: Annotated[str, Field(max_length=1_000)]


class ProposedTranslation(_Strict):
    """One translation that the model proposes.

    ``number`` is the position (from 1) of the original case in its batch.
    """

    number: Annotated[int, Field(ge=1)]
    question: Annotated[str, _build_text_field(MAX_QUESTION_CHARACTERS)]
    gold: Annotated[str, _build_text_field(MAX_GOLD_CHARACTERS)]
    why: Annotated[str, Field(max_length=1_000)]


class RejectedProposal(Record):
    """A rejected proposal and the reason. ``about`` is its question, shortened."""

    about: str
    reason: str


@lru_cache(maxsize=4)
def load_prompt(task: str) -> str:
    """Load the prompt of a task: ``draft`` or ``translate``."""
    return files("monitors.goldset").joinpath("prompts", f"{task}.md").read_text(encoding="utf-8")


def hash_prompt(task: str, layout: str) -> str:
    """Return the SHA-256 hash of everything that the model receives: the prompt, the layout and the schema."""
    schema = DRAFTS_SCHEMA if task == "draft" else TRANSLATIONS_SCHEMA
    content = "\0".join((load_prompt(task), layout, json.dumps(schema, sort_keys=True)))
    return hashlib.sha256(content.encode()).hexdigest()


Proposal = TypeVar("Proposal", ProposedDraft, ProposedTranslation)


def parse_valid_and_rejected_drafts(text: str) -> tuple[list[ProposedDraft], list[RejectedProposal]]:
    """Return the valid and the rejected questions in a reply.

    Raises `ValueError` if the reply is too long, or is not JSON with the list ``drafts``.
    """
    return _parse_proposals(text, "drafts", TypeAdapter(ProposedDraft))


def parse_valid_and_rejected_translations(text: str) -> tuple[list[ProposedTranslation], list[RejectedProposal]]:
    """Return the valid and the rejected translations in a reply.

    Raises `ValueError` if the reply is too long, or is not JSON with the list ``translations``.
    """
    return _parse_proposals(text, "translations", TypeAdapter(ProposedTranslation))


def _parse_proposals(
    text: str, key: str, shape: TypeAdapter[Proposal]
) -> tuple[list[Proposal], list[RejectedProposal]]:
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ValueError(f"the model wrote {len(text):,} characters; the maximum is {MAX_REPLY_CHARACTERS:,}")
    value = parse_strict_json(text)
    rows: Any = value.get(key) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON is untyped
    if not isinstance(rows, list):
        raise ValueError(f'expected an object with a list "{key}"')  # noqa: TRY004 - the reply is bad, not a type
    good: list[Proposal] = []
    bad: list[RejectedProposal] = []
    for row in cast("list[object]", rows):
        try:
            good.append(shape.validate_python(row))
        except ValidationError as error:
            question: object = row.get("question") if isinstance(row, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON is untyped
            about = shorten_to_one_line(question) if isinstance(question, str) else "a proposal without a question"
            bad.append(RejectedProposal(about=about, reason=_describe_form_problem(error)))
    return good, bad


def shorten_to_one_line(text: str, max_characters: int = 90) -> str:
    """Return a text in one line of at most ``max_characters`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"


def _describe_form_problem(error: ValidationError) -> str:
    places = sorted(
        {".".join(map(str, detail["loc"])) or "the whole proposal" for detail in error.errors(include_url=False)}
    )
    return f"missing, too long or of the wrong form: {', '.join(places)}"


MIN_SAME_QUESTION_OVERLAP = 0.8
"""Two drafts count as the same question if they have this share of n-grams (Jaccard index) in common."""

ID_DIGITS = 12

CONTEXT_CHARACTERS = 180
"""Number of characters of the document that are stored before and after a quote."""


class Document(Record):
    """A document from which a model drafts questions. ``sha256`` is the hash of its bytes."""

    name: Text
    sha256: Sha256
    text: Text


class DraftDefaults(Record):
    """Settings that all drafts from one document share."""

    count: Annotated[int, Field(ge=1, le=40)] = 5
    language: Language = Language.ENGLISH
    citation: str | None = None
    cluster: Identifier | None = None
    account_patterns: tuple[str, ...] = ()
    """Regular expressions for account numbers of the target, which count as personal data."""


class DraftOrigin(Record):
    """How a draft was produced: the model, the prompt and the time."""

    model: Text
    prompt_sha256: Sha256
    at: datetime


def build_or_reject_draft(
    proposed: ProposedDraft,
    document: Document,
    defaults: DraftDefaults,
    origin: DraftOrigin,
    existing_cases: Sequence[GoldCase],
) -> GoldDraft | RejectedProposal:
    """Build a draft from a proposal, or reject the proposal.

    ``existing_cases`` contains all earlier cases and drafts.
    """
    span = find_quote(proposed.quote, document.text)
    reason = (
        _describe_quote_problem(proposed)
        if span is None
        else _find_reason_to_reject_proposal(proposed, defaults, document.text[slice(*span)])
    )
    if span is None or reason:
        return RejectedProposal(about=shorten_to_one_line(proposed.question), reason=reason)
    quote = _build_quote(document, span)
    case = _build_case_from_proposal(proposed, document, defaults, quote)
    duplicate = next((existing for existing in existing_cases if _is_nearly_same_question(existing, case)), None)
    if duplicate is not None:
        return RejectedProposal(
            about=shorten_to_one_line(proposed.question), reason=(f"{duplicate.id} already asks this question")
        )
    return GoldDraft(
        id=case.id,
        made_at=origin.at,
        model=origin.model,
        prompt_sha256=origin.prompt_sha256,
        case=case,
        quote=quote,
        why=proposed.why,
    )


def _build_quote(document: Document, span: tuple[int, int]) -> Quote:
    start, end = span
    return Quote(
        document=document.name,
        document_sha256=document.sha256,
        text=document.text[start:end],
        start=start,
        end=end,
        before=document.text[max(0, start - CONTEXT_CHARACTERS) : start],
        after=document.text[end : end + CONTEXT_CHARACTERS],
    )


def _describe_quote_problem(proposed: ProposedDraft) -> str:
    if len(proposed.quote.split()) < QUOTE_MIN_WORDS:
        return f'the quote "{proposed.quote}" has fewer than {QUOTE_MIN_WORDS} words'
    return f'the quote is not in the document: "{shorten_to_one_line(proposed.quote)}"'


def _find_reason_to_reject_proposal(proposed: ProposedDraft, defaults: DraftDefaults, clause: str) -> str:
    unfounded = find_missing_quantities(proposed.gold, clause)
    if unfounded:
        return f"the gold states {', '.join(unfounded)}, but the quoted clause does not"
    language = identify_language(proposed.question)
    if language is not defaults.language:
        return f"the question is in {language.value}; expected {defaults.language.value}"
    personal = find_private_data_except_names(f"{proposed.question}\n{proposed.gold}", defaults.account_patterns)
    return f"the proposal contains personal data ({personal[0].kind.value})" if personal else ""


def _build_case_from_proposal(
    proposed: ProposedDraft, document: Document, defaults: DraftDefaults, quote: Quote
) -> GoldCase:
    question = " ".join(proposed.question.split())
    digest = hashlib.sha256(f"{document.sha256}\0{question}".encode()).hexdigest()[:ID_DIGITS]
    return GoldCase(
        id=f"draft-{digest}",
        turns=(question,),
        gold=" ".join(proposed.gold.split()),
        severity=Severity(proposed.severity),
        language=defaults.language,
        type=proposed.type,
        expected_citation=defaults.citation,
        cluster=defaults.cluster,
        provenance=Provenance(pipeline=Pipeline.DRAFT, document=document.name, clause=" ".join(quote.text.split())),
    )


def _is_nearly_same_question(first: GoldCase, second: GoldCase) -> bool:
    """Return whether two cases ask nearly the same question about the same document."""
    if first.language is not second.language or first.provenance.document != second.provenance.document:
        return False
    return (
        compute_jaccard_index(build_character_ngrams(first.question), build_character_ngrams(second.question))
        >= MIN_SAME_QUESTION_OVERLAP
    )


def build_or_reject_translated_case(
    proposed: ProposedTranslation, original: GoldCase, language: Language
) -> GoldCase | RejectedProposal:
    """Build the translated case from a proposal, or reject the proposal."""
    question, gold = " ".join(proposed.question.split()), " ".join(proposed.gold.split())
    reason = find_reason_to_reject_translation(question, gold, original, language)
    if reason:
        return RejectedProposal(about=shorten_to_one_line(proposed.question), reason=reason)
    return original.derive_translation(question, gold, language)


def find_reason_to_reject_translation(question: str, gold: str, original: GoldCase, language: Language) -> str:
    """Return the reason why ``question`` and ``gold`` are not a translation of the original into ``language``.

    The result is empty for a valid translation.
    """
    changed = [
        *list_quantity_differences(original.question, question),
        *list_quantity_differences(original.gold, gold),
    ]
    if changed:
        return f"compared with {original.id}, {', '.join(changed)}"
    detected = identify_language(question)
    if detected is not language:
        return f"the question is in {detected.value}; expected {language.value}"
    if find_private_data_except_names(f"{question}\n{gold}") and not find_private_data_except_names(
        f"{original.question}\n{original.gold}"
    ):
        return "the translation adds personal data"
    return ""
