"""What is wrong with a line of a suite, in words that name the key, the value and what is accepted."""

from __future__ import annotations

import json
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline, Provenance

VALUE_SHOWN = 60
"""Characters of a bad value that a message repeats: enough to find it, little enough to read."""

_SEVERITIES = "1 (annoying), 2 (wrong) or 3 (page someone)"
ID_ACCEPTED = "letters, digits and _ @ : + - . (no slash, no two dots in a row, at most 200 characters)"
"""What an id, and a suite's name, may look like."""
_TEXT = "a text that is not empty"

_ACCEPTED: dict[str, str] = {
    "id": ID_ACCEPTED,
    "turns": f"a list with at least one message, each {_TEXT}",
    "question": _TEXT,
    "gold": _TEXT,
    "alternatives": f"a list, each {_TEXT}",
    "expected_refusal": "true or false",
    "expected_citation": f"{_TEXT}, or leave it out",
    "severity": _SEVERITIES,
    "language": ", ".join(language.value for language in Language),
    "type": ID_ACCEPTED,
    "cluster": ID_ACCEPTED,
    "pair": ID_ACCEPTED,
    "month_is_30_days": "true or false",
    "relative_tolerance": "a number from 0 to below 1",
    "provenance": 'an object with "pipeline", as {"pipeline": "template"}',
    "provenance.pipeline": ", ".join(pipeline.value for pipeline in Pipeline),
}

CASE_KEYS = (*GoldCase.model_fields, "question")
"""Every key a line may have; ``question`` is short for one turn."""


def unknown_key(key: str, known: tuple[str, ...] = CASE_KEYS) -> str:
    """A key that no case has, with the nearest that one has."""
    near = get_close_matches(key, known, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"accepted: {', '.join(sorted(known))}"
    return f"unknown key {shown(key)}; {hint}"


def missing_key(key: str) -> str:
    """A key that every case must have."""
    reason = "; every case has one from the day it is written" if key == "severity" else ""
    return f'"{key}" is missing{reason}; accepted: {_ACCEPTED.get(key, _TEXT)}'


def refused_value(key: str, value: object) -> str:
    """A value that the key cannot have."""
    return f'"{key}" cannot be {shown(value)}; accepted: {_ACCEPTED.get(key, _TEXT)}'


def unreviewed(pipeline: Pipeline) -> str:
    """A case that nobody has said yes to."""
    return (
        f'"provenance.reviewed_by" is missing: a case of the pipeline "{pipeline.value}" is no gold before a '
        "person has said yes; accepted: that person's name, as `lookout gold review` writes it"
    )


def shown(value: object) -> str:
    """A value as it may stand in a one-line message: quoted, cut, never breaking the line."""
    text = _escaped(json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + "…"


def _escaped(text: str) -> str:
    """Control characters and lone surrogates are written as escapes, everything readable stays."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def of_validation(error: ValidationError) -> list[str]:
    """Every problem that pydantic found, each once, in our words."""
    return list(dict.fromkeys(_of_detail(detail) for detail in error.errors(include_url=False)))


def _of_detail(detail: ErrorDetails) -> str:
    names = [part for part in detail["loc"] if isinstance(part, str)]
    key = ".".join(names)
    if detail["type"] == "missing":
        return missing_key(key)
    if detail["type"] == "extra_forbidden":
        inner = tuple(Provenance.model_fields) if names[0] == "provenance" and len(names) > 1 else CASE_KEYS
        return unknown_key(names[-1], inner)
    place = "".join(f"[{part}]" for part in detail["loc"] if isinstance(part, int))
    if place:
        return f"{refused_value(key, detail['input'])} (entry {place})"
    return refused_value(key, detail["input"])
