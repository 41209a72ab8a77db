"""One line of a suite: text in, a case or what is wrong with it out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from monitors.goldset.line_problems import missing_key, of_validation, refused_value, shown, unreviewed
from monitors.records.cases import NEEDS_REVIEW, GoldCase


@dataclass(frozen=True)
class Unusable:
    """A line that gives no case, and all that is wrong with it. ``case_id`` when it could be read."""

    problems: tuple[str, ...]
    case_id: str | None = None


class _NotJson(ValueError):
    pass


def read_json(text: str) -> object:
    """Parse JSON strictly: no NaN or Infinity, no key twice, no bottomless nesting.

    Raises ``ValueError`` whose text says what and, for broken JSON, where (from 1).
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise _NotJson(f"broken JSON at {place}: {error.msg}") from error
    except RecursionError as error:
        raise _NotJson("the JSON is nested too deeply to be a case") from error


def case_from_line(text: str) -> GoldCase | Unusable:
    """Read one line. Every problem of the line is told, not the first alone."""
    try:
        value = read_json(text)
    except ValueError as error:
        return Unusable((str(error),))
    if not isinstance(value, dict):
        return Unusable((f"a case is a JSON object in braces, this is {shown(value)}",))
    return case_from_object(cast("dict[str, Any]", value))


def case_from_object(fields: dict[str, Any]) -> GoldCase | Unusable:
    """Make a case of a JSON object; ``question`` is short for a single turn."""
    given_id = fields.get("id")
    case_id = given_id if isinstance(given_id, str) else None
    own, prepared = _prepared(fields)
    try:
        case = GoldCase.model_validate(prepared)
    except ValidationError as error:
        theirs = [problem for problem in of_validation(error) if not _said_before(problem, own)]
        return Unusable((*own, *theirs), case_id)
    source = case.provenance
    if source.pipeline in NEEDS_REVIEW and not (source.reviewed_by or "").strip():
        own.append(unreviewed(source.pipeline))
    return Unusable(tuple(own), case_id) if own else case


def _prepared(fields: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Problems that pydantic would not see or not name well, and the fields as `GoldCase` knows them."""
    problems: list[str] = []
    prepared = dict(fields)
    if "question" in fields and "turns" in fields:
        problems.append('a case has "question" or "turns", not both')
        del prepared["question"]
    elif "question" in fields:
        question = prepared.pop("question")
        if not isinstance(question, str) or not question:
            problems.append(refused_value("question", question))
        prepared["turns"] = [question]
    elif "turns" not in fields:
        problems.append(missing_key("question") + ', or "turns" with several')
        prepared["turns"] = ["-"]
    for key, wanted in (("severity", int), ("expected_refusal", bool), ("month_is_30_days", bool)):
        if key in fields and type(fields[key]) is not wanted:
            problems.append(refused_value(key, fields[key]))
            prepared[key] = wanted(1)
    return problems, prepared


def _said_before(problem: str, own: list[str]) -> bool:
    return problem.startswith('"turns" cannot be') and any(said.startswith('"question"') for said in own)


def _refuse_constant(name: str) -> object:
    raise _NotJson(f"{name} is not a value that a case can have; write a number, or leave the key out")


def _refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _NotJson(f"the key {shown(key)} stands twice in one object")
        found[key] = value
    return found
