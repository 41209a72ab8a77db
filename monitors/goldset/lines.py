"""Parse one line of a suite into a case or its problems, and format a case as a line.

A problem names the key, the value and the accepted values. A case is written with its keys in reading order, and
without defaults.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from monitors.facts.language import LanguageEvidence, find_case_language, find_language_evidence
from monitors.goldset.issues import ISSUE_KEYS, build_case_fields_from_issue, is_issue, issue_keys_from_task
from monitors.records.base import Language, Record
from monitors.records.cases import (
    NEEDS_REVIEW,
    PIPELINE_MEANINGS,
    GoldCase,
    Pipeline,
    Provenance,
    ScriptedAnswer,
)
from monitors.records.triage import IssueSeverity, TriageReference

MAX_VALUE_CHARACTERS = 60
"""Characters of a bad value that a message repeats."""

_SEVERITIES = "1 (minor), 2 (major) or 3 (critical: alerts at once)"
ID_ACCEPTED = "letters, digits and _ @ : + - . (no slash, no two dots in a row, at most 200 characters)"
"""The form of an id, and of a suite's name."""
_TEXT = "a text that is not empty"


def _list_pipelines() -> Iterator[str]:
    """Yield every pipeline; the most common one with its meaning."""
    for pipeline in Pipeline:
        yield f"{pipeline} ({PIPELINE_MEANINGS[pipeline]})" if pipeline is Pipeline.MANUAL else pipeline.value


ACCEPTED: Final[Mapping[str, str]] = {
    "id": ID_ACCEPTED,
    "turns": f"a list with at least one message, each {_TEXT}",
    "question": _TEXT,
    "gold": f'{_TEXT}; other right answers go into "alternatives"',
    "alternatives": f"a list, each {_TEXT}",
    "expected_refusal": "true or false",
    "expected_citation": _TEXT,
    "alternative_citations": f"a list, each {_TEXT}",
    "must_say": f"a list, each {_TEXT}; /regular expression/ between slashes",
    "must_not_say": f"a list, each {_TEXT}; /regular expression/ between slashes",
    "severity": _SEVERITIES,
    "language": ", ".join(language.value for language in Language),
    "type": ID_ACCEPTED,
    "cluster": ID_ACCEPTED,
    "pair": ID_ACCEPTED,
    "month_is_30_days": "true or false",
    "relative_tolerance": "a number from 0 to below 1",
    "when_asked": 'a list of objects, as [{"asks": "version", "answer": "2.4"}]',
    "when_asked.asks": _TEXT,
    "when_asked.answer": _TEXT,
    "issue_url": "a text that is not empty",
    "issue_title": "a text that is not empty",
    "issue_body": "a text",
    "repository_files": "a list of paths",
    "reference": 'an object with what is known, as {"relevant_files": ["src/lock.py"]}',
    "reference.severity": ", ".join(IssueSeverity),
    "reference.root_cause": "a text that is not empty",
    "reference.relevant_files": "a list of paths",
    "reference.relevant_functions": "a list, each as path::Class.method",
    "reference.expected_keywords": "a list of words",
    "reference.shortest_path": "a number from 1",
    "reference.max_steps": "a number from 1",
    "provenance": 'an object with "pipeline", as {"pipeline": "manual"}',
    "provenance.pipeline": ", ".join(_list_pipelines()),
    "provenance.document": "a text",
    "provenance.field": "a text",
    "provenance.clause": "a text",
    "provenance.reviewed_by": "a text",
    "provenance.reviewed_at": "a time with its zone, as 2026-01-31T02:00:00Z",
}
"""The accepted values of each key, for error messages and the reference of a suite's keys."""

DEFAULT_FIELDS: Final[Mapping[str, Any]] = {"type": "general", "provenance": {"pipeline": Pipeline.MANUAL.value}}
"""Defaults of keys that a line omits; an omitted ``language`` is that of the question."""

_NESTED: Final[Mapping[str, type[Record]]] = {
    "provenance": Provenance,
    "reference": TriageReference,
    "when_asked": ScriptedAnswer,
}
"""Keys with an object as their value, or a list of objects, with keys of their own."""

CASE_KEYS = (*(name for name in GoldCase.model_fields if name != "triage"), "question", *ISSUE_KEYS)
"""Every key a line may have; ``question`` is short for one turn, an issue's keys make the case's ``triage``."""


def describe_unknown_key(key: str, accepted: tuple[str, ...] = CASE_KEYS) -> str:
    """Describe an unknown key with the nearest known one."""
    matches = get_close_matches(key, accepted, n=1)
    hint = f'did you mean "{matches[0]}"?' if matches else f"accepted: {', '.join(sorted(accepted))}"
    return f"unknown key {format_value(key)}; {hint}"


def describe_missing_key(key: str) -> str:
    """Describe a missing required key."""
    return f'"{key}" is missing; accepted: {ACCEPTED.get(key, _TEXT)}'


def describe_bad_value(key: str, value: object) -> str:
    """Describe a value that a key does not accept."""
    return f'"{key}" {format_value(value)} is not valid; accepted: {ACCEPTED.get(key, _TEXT)}'


def describe_review_gap(pipeline: Pipeline) -> str:
    """Describe a case that no person has accepted."""
    return (
        f'"provenance.reviewed_by" is missing; a person must review a case of the pipeline "{pipeline.value}"; '
        "accepted: the person's name, as `lookout gold review` writes it"
    )


def format_value(value: object) -> str:
    """Format a value for a one-line message: quoted, shortened, without line breaks."""
    text = _escape_unprintable(json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[: MAX_VALUE_CHARACTERS - 1] + "…"


def _escape_unprintable(text: str) -> str:
    """Write control characters and lone surrogates as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def describe_validation_error(error: ValidationError) -> list[str]:
    """Return every problem that pydantic found, each once."""
    return list(dict.fromkeys(_describe_detail(detail) for detail in error.errors(include_url=False)))


def _describe_detail(detail: ErrorDetails) -> str:
    names = _to_written_keys([part for part in detail["loc"] if isinstance(part, str)])
    key = ".".join(names)
    if detail["type"] == "missing":
        return describe_missing_key(key)
    if detail["type"] == "extra_forbidden":
        inner = _NESTED.get(names[0]) if len(names) > 1 else None
        return describe_unknown_key(names[-1], tuple(inner.model_fields) if inner else CASE_KEYS)
    place = "".join(f"[{part}]" for part in detail["loc"] if isinstance(part, int))
    problem = describe_bad_value(key, detail["input"])
    if detail["type"] == "value_error" and "ctx" in detail:
        problem = f'"{key}" cannot be {format_value(detail["input"])}: {detail["ctx"]["error"]}'
    return f"{problem} (entry {place})" if place else problem


def _to_written_keys(names: list[str]) -> list[str]:
    """Return the path of a key in the line: an issue's keys are in the line itself, not in ``triage``."""
    match names:
        case ["triage", "issue", name, *rest]:
            return [name if name == "repository_files" else f"issue_{name}", *rest]
        case ["triage", *rest]:
            return rest
        case _:
            return names


@dataclass(frozen=True)
class Unusable:
    """A line that is not a valid case, with all its problems. ``case_id`` is set if it could be read."""

    problems: tuple[str, ...]
    case_id: str | None = None
    is_issue: bool = False


class _NotJson(ValueError):
    pass


def parse_json(text: str) -> object:
    """Parse JSON strictly: no NaN or Infinity, no repeated key, no excessive nesting.

    Raises ``ValueError`` with the fault and, for broken JSON, its place (from 1).
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_keys)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise _NotJson(f"broken JSON at {place}: {error.msg}") from error
    except RecursionError as error:
        raise _NotJson("the JSON is nested too deeply for a case") from error


def parse_case_line(text: str) -> GoldCase | Unusable:
    """Parse one line. All problems of the line are reported, not only the first."""
    try:
        value = parse_json(text)
    except ValueError as error:
        return Unusable((str(error),))
    if not isinstance(value, dict):
        return Unusable((f"expected a case as a JSON object in braces, found {format_value(value)}",))
    return parse_case_object(cast("dict[str, Any]", value))


def parse_case_object(fields: dict[str, Any]) -> GoldCase | Unusable:
    """Make a case of a JSON object; ``question`` is short for a single turn. A record's own JSON is read too."""
    raw_id = fields.get("id")
    case_id = raw_id if isinstance(raw_id, str) else None
    from_issue = is_issue(fields)
    if from_issue:
        fields = build_case_fields_from_issue(fields)
    problems, prepared = _prepare_fields(fields)
    try:
        case = GoldCase.model_validate(prepared)
    except ValidationError as error:
        model_problems = [
            problem
            for problem in describe_validation_error(error)
            if not _is_repeat_of_question_problem(problem, problems)
        ]
        return Unusable((*problems, *model_problems), case_id, from_issue)
    source = case.provenance
    if source.pipeline in NEEDS_REVIEW and not (source.reviewed_by or "").strip():
        problems.append(describe_review_gap(source.pipeline))
    return Unusable(tuple(problems), case_id, from_issue) if problems else case


def _prepare_fields(fields: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return problems that pydantic would miss or describe badly, and the fields of `GoldCase`."""
    problems: list[str] = []
    prepared = {**DEFAULT_FIELDS, **fields}
    if "question" in fields and "turns" in fields:
        problems.append('a case must have "question" or "turns", not both')
        del prepared["question"]
    elif "question" in fields:
        question = prepared.pop("question")
        if not isinstance(question, str) or not question:
            problems.append(describe_bad_value("question", question))
        prepared["turns"] = [question]
    elif "turns" not in fields:
        problems.append(describe_missing_key("question") + ', or "turns" with several')
        prepared["turns"] = ["-"]
    for key, key_type in (("severity", int), ("expected_refusal", bool), ("month_is_30_days", bool)):
        if key in fields and type(fields[key]) is not key_type:
            problems.append(describe_bad_value(key, fields[key]))
            prepared[key] = key_type(1)
    if "language" not in fields:
        prepared["language"] = _guess_language(prepared["turns"], prepared.get("gold"))
    return problems, prepared


def _guess_language(turns: object, gold: object) -> Language:
    """Guess the language of the last turn; the gold helps with a short turn."""
    last: object = cast("list[object]", turns)[-1] if isinstance(turns, list) and turns else ""
    return (
        find_case_language(last, gold if isinstance(gold, str) else "")
        if isinstance(last, str)
        else Language.ENGLISH
    )


def has_language_key(line: str) -> bool:
    """Whether a line has the key ``language``, so that the language is not guessed."""
    return '"language"' in line


def resolve_guessed_languages(cases: Sequence[GoldCase], lines: Sequence[str]) -> list[GoldCase]:
    """Return the cases of a suite; missing languages are decided together.

    If most of them are neither English nor Hindi, a text of uncertain language ("Brot?") is in the commonest of the
    other languages too.
    """
    guessed = [not has_language_key(line) for line in lines]
    languages = [case.language for case, is_guess in zip(cases, guessed, strict=True) if is_guess]
    foreign = Counter(language for language in languages if not language.is_english_or_hindi)
    if 2 * foreign.total() <= len(languages):
        return list(cases)
    commonest = foreign.most_common(1)[0][0]
    return [
        case.with_language(commonest)
        if is_guess and find_language_evidence(f"{case.question}\n{case.gold}") is not LanguageEvidence.READ
        else case
        for case, is_guess in zip(cases, guessed, strict=True)
    ]


def _is_repeat_of_question_problem(problem: str, problems: list[str]) -> bool:
    return problem.startswith('"turns" ') and any(earlier.startswith('"question"') for earlier in problems)


def _refuse_constant(name: str) -> object:
    raise _NotJson(f"{name} is not a valid value; write a number, or remove the key")


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value in pairs:
        if key in fields:
            raise _NotJson(f"one object has the key {format_value(key)} twice; remove one")
        fields[key] = value
    return fields


def format_case_line(case: GoldCase) -> str:
    """Format a case as a JSON object without a line end. Parsing it gives the same case; Hindi stays readable."""
    plain: dict[str, Any] = case.model_dump(mode="json", exclude_defaults=True)
    turns = plain.pop("turns")
    question_fields = {"question": turns[0]} if len(turns) == 1 else {"turns": turns}
    ordered = {"id": plain.pop("id"), **question_fields, "gold": plain.pop("gold")}
    source = plain.pop("provenance")
    plain |= issue_keys_from_task(case.triage) if case.triage else {}
    plain.pop("triage", None)
    refusal = {"expected_refusal": plain.pop("expected_refusal", False)}
    return json.dumps({**ordered, **refusal, **plain, "provenance": source}, ensure_ascii=False, allow_nan=False)
