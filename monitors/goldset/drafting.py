"""What a model is asked when it drafts questions, and what is believed of its reply. No model is called here."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Final, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from monitors.goldset.read_line import read_json
from monitors.records.base import Record, Severity

QUESTION_CHARACTERS: Final = 600
GOLD_CHARACTERS: Final = 600
QUOTE_CHARACTERS: Final = 1_200
"""Longer ones are no question, no short answer and no clause."""

MOST_CHARACTERS: Final = 200_000
"""Of a whole reply: forty drafts of the longest kind."""

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


class Refused(Record):
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


def read_drafts_reply(text: str) -> tuple[list[ProposedDraft], list[Refused]]:
    """The drafts in a reply. `ValueError` when it is not the object that was asked for."""
    return _read(text, "drafts", TypeAdapter(ProposedDraft))


def read_translations_reply(text: str) -> tuple[list[ProposedTranslation], list[Refused]]:
    """The translations in a reply. `ValueError` when it is not the object that was asked for."""
    return _read(text, "translations", TypeAdapter(ProposedTranslation))


def _read(text: str, key: str, shape: TypeAdapter[Proposal]) -> tuple[list[Proposal], list[Refused]]:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the model wrote {len(text):,} characters")
    value = read_json(text)
    rows: Any = value.get(key) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON is untyped
    if not isinstance(rows, list):
        raise ValueError(f'the reply is not an object with a list "{key}"')  # noqa: TRY004 - the reply is bad, not a type
    good: list[Proposal] = []
    bad: list[Refused] = []
    for row in cast("list[object]", rows):
        try:
            good.append(shape.validate_python(row))
        except ValidationError as error:
            bad.append(Refused(about=shortened(_question(row)), reason=_in_words(error)))
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


def _in_words(error: ValidationError) -> str:
    places = sorted(
        {".".join(map(str, detail["loc"])) or "the whole" for detail in error.errors(include_url=False)}
    )
    return f"{', '.join(places)} is missing, too long or of the wrong form"
