"""Parse one line of a suite into a gold case or a list of problems, and format a case as a line.

A problem names the key, its value and the accepted values.
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

from monitors.facts.language import LanguageEvidence, classify_language_evidence, find_case_language
from monitors.goldset.issues import (
    ISSUE_KEYS,
    build_case_fields_from_issue,
    flatten_issue_to_line_keys,
    is_issue_row,
)
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
"""Maximum number of characters of an invalid value that a message shows."""

_SEVERITIES = "1 (minor), 2 (major) or 3 (critical: alerts at once)"
ID_ACCEPTED = "letters, digits and _ @ : + - . (no slash, no two dots in a row, at most 200 characters)"
"""The part of an error message that states which characters and which length an id or a suite's name may have."""
_TEXT = "a string that is not empty"


def _list_pipelines() -> Iterator[str]:
    """Yield the name of each pipeline. The name of the most common pipeline is followed by its meaning."""
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
    "relative_tolerance": "a number of at least 0 and less than 1",
    "when_asked": 'a list of objects, such as [{"asks": "version", "answer": "2.4"}]',
    "when_asked.asks": _TEXT,
    "when_asked.answer": _TEXT,
    "issue_url": "a string that is not empty",
    "issue_title": "a string that is not empty",
    "issue_body": "a text",
    "repository_files": "a list of paths",
    "reference": 'an object with the known facts, such as {"relevant_files": ["src/lock.py"]}',
    "reference.severity": ", ".join(IssueSeverity),
    "reference.root_cause": "a string that is not empty",
    "reference.relevant_files": "a list of paths",
    "reference.relevant_functions": "a list of functions, each as path::Class.method",
    "reference.expected_keywords": "a list of words",
    "reference.shortest_path": "a number of at least 1",
    "reference.max_steps": "a number of at least 1",
    "provenance": 'an object with "pipeline", such as {"pipeline": "manual"}',
    "provenance.pipeline": ", ".join(_list_pipelines()),
    "provenance.document": "a text",
    "provenance.field": "a text",
    "provenance.clause": "a text",
    "provenance.reviewed_by": "a text",
    "provenance.reviewed_at": "a time with a time zone, such as 2026-01-31T02:00:00Z",
}
"""The accepted values of each key, for error messages and the reference of a suite's keys."""

DEFAULT_FIELDS: Final[Mapping[str, Any]] = {"type": "general", "provenance": {"pipeline": Pipeline.MANUAL.value}}
"""The default values of the keys that a line may omit. The default of ``language`` is the question's language."""

_NESTED: Final[Mapping[str, type[Record]]] = {
    "provenance": Provenance,
    "reference": TriageReference,
    "when_asked": ScriptedAnswer,
}
"""The keys whose value is an object or a list of objects, and the record class for these objects."""

CASE_KEYS = (*(name for name in GoldCase.model_fields if name != "triage"), "question", *ISSUE_KEYS)
"""All keys that a line may have. ``question`` is a short form of ``turns`` with one turn."""


def describe_unknown_key(key: str, accepted: tuple[str, ...] = CASE_KEYS) -> str:
    """Describe an unknown key, and suggest the most similar known key."""
    matches = get_close_matches(key, accepted, n=1)
    hint = f'did you mean "{matches[0]}"?' if matches else f"accepted: {', '.join(sorted(accepted))}"
    return f"unknown key {format_value(key)}; {hint}"


def describe_missing_key(key: str) -> str:
    """Describe a missing required key."""
    return f'"{key}" is missing; accepted: {ACCEPTED.get(key, _TEXT)}'


def describe_bad_value(key: str, value: object) -> str:
    """Describe a value that a key does not accept."""
    return f'"{key}" {format_value(value)} is not valid; accepted: {ACCEPTED.get(key, _TEXT)}'


def describe_missing_review(pipeline: Pipeline) -> str:
    """Describe the problem that no person has accepted the case."""
    return (
        f'"provenance.reviewed_by" is missing. A person must review a case of the pipeline "{pipeline.value}". '
        "`lookout gold review` writes the person's name"
    )


def format_value(value: object) -> str:
    """Format a value for a one-line message: quoted, shortened, with control characters as escapes."""
    raw = json.dumps(value, ensure_ascii=False, default=repr)
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in raw)
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[: MAX_VALUE_CHARACTERS - 1] + "…"


def describe_validation_error(error: ValidationError) -> list[str]:
    """Return a sentence for each problem that pydantic found."""
    return list(dict.fromkeys(_describe_validation_problem(detail) for detail in error.errors(include_url=False)))


def _describe_validation_problem(detail: ErrorDetails) -> str:
    names = _build_written_key_path([part for part in detail["loc"] if isinstance(part, str)])
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


def _build_written_key_path(names: list[str]) -> list[str]:
    """Return the key as it is written in a line of a suite.

    In a line, the keys of an issue stand at the top level and not inside ``triage``.
    """
    match names:
        case ["triage", "issue", name, *rest]:
            return [name if name == "repository_files" else f"issue_{name}", *rest]
        case ["triage", *rest]:
            return rest
        case _:
            return names


@dataclass(frozen=True)
class Unusable:
    """A line that is not a valid case, with all its problems. ``case_id`` is the id, if it could be read."""

    problems: tuple[str, ...]
    case_id: str | None = None
    is_issue: bool = False


class _NotJson(ValueError):
    pass


def parse_strict_json(text: str) -> object:
    """Parse JSON, but reject NaN, Infinity, repeated keys and deep nesting.

    Raises ``ValueError`` with the fault.
    """
    try:
        return json.loads(text, parse_constant=_reject_json_constant, object_pairs_hook=_reject_repeated_keys)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise _NotJson(f"broken JSON at {place}: {error.msg}") from error
    except RecursionError as error:
        raise _NotJson("the JSON is nested too deeply for a case") from error


def parse_case_line(text: str) -> GoldCase | Unusable:
    """Parse one line of a suite into a case, or return all its problems."""
    try:
        value = parse_strict_json(text)
    except ValueError as error:
        return Unusable((str(error),))
    if not isinstance(value, dict):
        return Unusable((f"expected a case as a JSON object in braces, found {format_value(value)}",))
    return parse_case_object(cast("dict[str, Any]", value))


def parse_case_object(fields: dict[str, Any]) -> GoldCase | Unusable:
    """Build a case from the keys and values of a line, or return all its problems."""
    raw_id = fields.get("id")
    case_id = raw_id if isinstance(raw_id, str) else None
    from_issue = is_issue_row(fields)
    if from_issue:
        fields = build_case_fields_from_issue(fields)
    problems, prepared = _check_and_prepare_case_fields(fields)
    try:
        case = GoldCase.model_validate(prepared)
    except ValidationError as error:
        model_problems = [
            problem
            for problem in describe_validation_error(error)
            # an invalid "question" was reported before; do not report it again as "turns"
            if not (problem.startswith('"turns" ') and any(p.startswith('"question"') for p in problems))
        ]
        return Unusable((*problems, *model_problems), case_id, from_issue)
    source = case.provenance
    if source.pipeline in NEEDS_REVIEW and not (source.reviewed_by or "").strip():
        problems.append(describe_missing_review(source.pipeline))
    return Unusable(tuple(problems), case_id, from_issue) if problems else case


def _check_and_prepare_case_fields(fields: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the fields for `GoldCase`, and the problems that pydantic would not describe well."""
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
        problems.append(describe_missing_key("question") + ', or "turns" with several messages')
        prepared["turns"] = ["-"]
    for key, key_type in (("severity", int), ("expected_refusal", bool), ("month_is_30_days", bool)):
        if key in fields and type(fields[key]) is not key_type:
            problems.append(describe_bad_value(key, fields[key]))
            prepared[key] = key_type(1)
    if "language" not in fields:
        prepared["language"] = _guess_case_language(prepared["turns"], prepared.get("gold"))
    return problems, prepared


def _guess_case_language(turns: object, gold: object) -> Language:
    """Guess the language of a case from its last question. If this question is short, the gold is also used."""
    last: object = cast("list[object]", turns)[-1] if isinstance(turns, list) and turns else ""
    return (
        find_case_language(last, gold if isinstance(gold, str) else "")
        if isinstance(last, str)
        else Language.ENGLISH
    )


def has_language_key(line: str) -> bool:
    """Return whether a line has the key ``language``. Without this key, the language is guessed."""
    return '"language"' in line


def refine_guessed_languages(cases: Sequence[GoldCase], lines: Sequence[str]) -> list[GoldCase]:
    """Return the cases of a suite, with better guesses for the languages that the lines do not state.

    If most guessed languages are neither English nor Hindi, short texts such as "Brot?" get the most common of the
    other languages.
    """
    guessed = [not has_language_key(line) for line in lines]
    languages = [case.language for case, is_guess in zip(cases, guessed, strict=True) if is_guess]
    foreign = Counter(language for language in languages if not language.is_english_hindi_or_hinglish)
    if 2 * foreign.total() <= len(languages):
        return list(cases)
    commonest = foreign.most_common(1)[0][0]
    return [
        case.with_language(commonest)
        if is_guess and classify_language_evidence(f"{case.question}\n{case.gold}") is not LanguageEvidence.READ
        else case
        for case, is_guess in zip(cases, guessed, strict=True)
    ]


def _reject_json_constant(name: str) -> object:
    raise _NotJson(f"{name} is not a valid value; write a number, or remove the key")


def _reject_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value in pairs:
        if key in fields:
            raise _NotJson(f"one object has the key {format_value(key)} twice; remove one")
        fields[key] = value
    return fields


def format_case_line(case: GoldCase) -> str:
    """Format a case as one line of a suite, without the line end. Keys with default values are omitted."""
    plain: dict[str, Any] = case.model_dump(mode="json", exclude_defaults=True)
    turns = plain.pop("turns")
    question_fields = {"question": turns[0]} if len(turns) == 1 else {"turns": turns}
    ordered = {"id": plain.pop("id"), **question_fields, "gold": plain.pop("gold")}
    source = plain.pop("provenance")
    plain |= flatten_issue_to_line_keys(case.triage) if case.triage else {}
    plain.pop("triage", None)
    refusal = {"expected_refusal": plain.pop("expected_refusal", False)}
    return json.dumps({**ordered, **refusal, **plain, "provenance": source}, ensure_ascii=False, allow_nan=False)
