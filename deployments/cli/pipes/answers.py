"""Functions that compute the output line for one input line of ``lookout facts``, ``grade`` and the other pipes.

An invalid field raises an error with the name of the field and the accepted values. ``lookout grade`` uses the same
graders and rules as a run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from deployments.cli.pipes.commands import Fields, Unreadable
from monitors.alerts.redact import redact_with_findings
from monitors.domains.pack import INSURANCE, Domain, load_domain
from monitors.errors import ConfigError
from monitors.explain.first_look import find_shared_causes
from monitors.facts.citations import find_citations
from monitors.facts.language import find_case_language, identify_language
from monitors.facts.quantities.fact import Fact, FactKind
from monitors.facts.quantities.locales import validate_currency, validate_locale
from monitors.facts.quantities.scan import read_facts
from monitors.facts.refusals.detect import RefusalKind, classify_refusal
from monitors.facts.source_files import compute_agreement
from monitors.facts.text import find_unread_middle
from monitors.facts.tool_calls import ToolCall, find_repeated_call_indexes
from monitors.gate.assess import assess_case
from monitors.graders.base import Grader, GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.records.base import Finding, Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from monitors.records.explanations import Value
from monitors.records.grades import Abstained, Aspect, CaseOutcome, Grade, Judged
from monitors.records.sayings import parse_phrase_or_pattern

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""A translation table that replaces each half of a surrogate pair with U+FFFD, because a half is not valid text.

One character replaces one character, so positions in the text do not change.
"""


def read_text_field(fields: Fields, name: str, default: str | None = None) -> str:
    """Return a text field, which may be empty. If there is no default, the field is required."""
    value = fields.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        missing = "missing" if name not in fields else "not a text"
        raise Unreadable(f"{name}: {missing}; expected a JSON string")
    return replace_surrogates(value)


def replace_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair with U+FFFD."""
    return text if text.isascii() else text.translate(_SURROGATES)


def read_text_list_field(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the texts of a field that contains one text or a list of texts."""
    value = fields.get(name)
    if isinstance(value, list):
        texts = cast("list[Any]", value)
        if texts and all(isinstance(item, str) for item in texts):
            return tuple(replace_surrogates(item) for item in texts)
        raise Unreadable(f"{name}: expected a JSON string, or a list with at least one string")
    return (read_text_field(fields, name),)


def read_bool_field(fields: Fields, name: str) -> bool:
    """Return the value of a field that is ``true`` or ``false``. The default is false."""
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Unreadable(f"{name}: expected true or false")
    return value


def read_severity_field(fields: Fields) -> Severity:
    """Return the severity 1, 2 or 3. The default is 2."""
    value = fields.get("severity")
    if value is None:
        return Severity.MAJOR
    if isinstance(value, bool) or value not in (1, 2, 3):
        raise Unreadable("severity: expected 1 (minor), 2 (major) or 3 (critical)")
    return Severity(int(value))


def read_language_field(fields: Fields) -> Language | None:
    """Return the language, or ``None`` if the line does not contain a language."""
    value = fields.get("language")
    if value is None:
        return None
    accepted = [language.value for language in Language]
    if value not in accepted:
        raise Unreadable(f"language: expected one of {', '.join(accepted)}")
    return Language(value)


def read_locale_field(fields: Fields) -> str | None:
    """Return a locale such as ``de-DE``, or ``None`` if the line does not contain a locale."""
    return _read_validated_text_field(fields, "locale", validate_locale)


def read_currency_field(fields: Fields) -> str | None:
    """Return a currency as its ISO 4217 code, or ``None`` if the line does not contain a currency."""
    return _read_validated_text_field(fields, "currency", validate_currency)


def read_domain_packs_field(fields: Fields) -> Domain:
    """Load the domain packs in the line's field ``domains``. The default is the insurance pack."""
    packs = read_text_list_field(fields, "domains") if fields.get("domains") is not None else (INSURANCE,)
    if any("/" in pack for pack in packs):
        raise Unreadable("domains: expected names of packs that come with Lookout. A folder is not accepted here")
    try:
        return load_domain(packs)
    except ConfigError as error:
        raise Unreadable(f"domains: {error}") from None


def _read_validated_text_field(fields: Fields, name: str, check: Callable[[str], str]) -> str | None:
    if fields.get(name) is None:
        return None
    try:
        return check(read_text_field(fields, name))
    except ValueError as error:
        raise Unreadable(f"{name}: {error}") from None


def extract_facts(fields: Fields) -> Fields:
    """Return all quantities in ``text``, in the order in which they occur. Both English and Hindi are read.

    ``language``, ``locale`` (``de-DE``) and ``currency`` (ISO 4217) are optional; they determine how ambiguous
    numbers are read. In a text with more than a million characters, only the beginning and the end are read;
    ``unread`` is the span between them.
    """
    text = read_text_field(fields, "text")
    facts = read_facts(
        text,
        language=read_language_field(fields),
        locale=read_locale_field(fields),
        currency=read_currency_field(fields),
    )
    unread = find_unread_middle(text)
    return {"facts": [_format_fact(fact) for fact in facts]} | ({"unread": list(unread)} if unread else {})


def _format_fact(fact: Fact) -> Fields:
    fields: Fields = {
        "kind": fact.kind.value,
        "value": fact.value,
        "unit": fact.unit,
        "span": [fact.start, fact.end],
        "text": fact.text,
        "bound": fact.bound.value,
    }
    if fact.kind is FactKind.DURATION:
        fields |= {"original_value": fact.original_value, "original_unit": fact.original_unit}
    return fields


_UNTIMED = datetime(1970, 1, 1, tzinfo=UTC)
"""A placeholder for the time of each answer, because an input line has no time. Graders do not read this time."""
_NOTHING = "-"
"""A placeholder for an empty question or gold, because a case must have a question and a gold."""
_TRUTH = {Finding.YES: True, Finding.NO: False, Finding.UNGRADED: None}
_CORRECT = {CaseOutcome.CORRECT: True, CaseOutcome.FAILED: False}


@lru_cache(maxsize=8)
def _build_panel(locale: str | None, currency: str | None, domain: Domain) -> tuple[Grader, ...]:
    """Build the graders for a locale, a currency and a domain. Lines with the same values use the same graders."""
    return build_rule_panel(GraderSettings(locale=locale, currency=currency, citation_required=True), domain)


def grade_line(fields: Fields) -> Fields:
    """Grade the answer of one line. A value is ``null`` if no grader could decide."""
    case = _build_gold_case(fields)
    exchange = _build_exchange(case, read_text_field(fields, "answer"))
    grades = grade_exchange(
        _build_panel(read_locale_field(fields), read_currency_field(fields), read_domain_packs_field(fields)),
        case,
        exchange,
    )
    assessment = assess_case(case, exchange, grades)
    answer = exchange.graded_text
    refusal = _find_refusal_kind(case, answer)
    failed = [grade for grade in grades if isinstance(grade, Judged) and not grade.passed]
    disclosed = [span for grade in failed if grade.aspect is Aspect.DISCLOSURE for span in grade.evidence]
    return {
        "factual_match": _TRUTH[assessment.factual_match],
        "refused": None if refusal is None else refusal is RefusalKind.REFUSED,
        "refusal": refusal,
        "citation_present": bool(find_citations(answer)),
        "language": identify_language(answer).value,
        "pii": [{"kind": span.label, "span": [span.start, span.end]} for span in disclosed],
        "error_leak": any(grade.aspect is Aspect.ERROR_LEAK for grade in failed),
        "correct": _CORRECT.get(assessment.outcome),
        "grades": [_format_grade(grade) for grade in grades],
    }


def _build_gold_case(fields: Fields) -> GoldCase:
    gold, *alternatives = read_text_list_field(fields, "gold")
    question = read_text_field(fields, "question", "") or _NOTHING
    return GoldCase(
        id="line",
        turns=(question,),
        gold=gold or _NOTHING,
        alternatives=tuple(text for text in alternatives if text),
        expected_refusal=read_bool_field(fields, "expected_refusal"),
        expected_citation=read_text_field(fields, "expected_citation", "") or None,
        must_say=_read_phrases_field(fields, "must_say"),
        must_not_say=_read_phrases_field(fields, "must_not_say"),
        severity=read_severity_field(fields),
        language=read_language_field(fields) or find_case_language(question, gold),
        type="line",
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
    )


def _read_phrases_field(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the phrases and patterns of a field. A missing field, or an empty list, means that there are none."""
    if fields.get(name) in (None, []):
        return ()
    written = read_text_list_field(fields, name)
    try:
        for text in written:
            parse_phrase_or_pattern(text)
    except ValueError as error:
        raise Unreadable(f"{name}: {error}") from None
    return written


def _build_exchange(case: GoldCase, answer: str) -> Exchange:
    return Exchange(
        run_id="pipe",
        case_id=case.id,
        turns=case.turns,
        visible_text=answer,
        asked_at=_UNTIMED,
        timings=Timings(total_ms=0),
    )


def _find_refusal_kind(case: GoldCase, answer: str) -> RefusalKind | None:
    """Return the `RefusalKind` of the answer: it refuses, answers, or does both.

    Returns ``None`` if the rules are unsure or cannot read the language.
    """
    refusal = classify_refusal(answer, " ".join(case.turns), expected=case.expected_refusal)
    unread = not case.language.is_english_hindi_or_hinglish and refusal.language != "de" and not refusal.refused
    return None if unread else refusal.kind


def _format_grade(grade: Grade) -> Fields:
    match grade:
        case Abstained():
            verdict: Fields = {"passed": None, "failure_kind": None, "reason": grade.reason, "evidence": []}
        case Judged():
            kind = grade.failure_kind.value if grade.failure_kind else None
            evidence = [
                {"where": str(span.where), "span": [span.start, span.end], "label": span.label}
                for span in grade.evidence
            ]
            verdict = {"passed": grade.passed, "failure_kind": kind, "reason": grade.reason, "evidence": evidence}
    return {"grader": grade.grader, "aspect": grade.aspect.value} | verdict


def redact_line(fields: Fields) -> Fields:
    """Mask personal data and secrets in ``text``, and list them with their positions in the original text.

    In a text with more than a million characters, a placeholder replaces the middle; ``unread`` is the span of the
    middle.
    """
    redaction = redact_with_findings(read_text_field(fields, "text"))
    findings = [{"kind": finding.kind.value, "span": [finding.start, finding.end]} for finding in redaction.found]
    unread = {"unread": list(redaction.unread)} if redaction.unread else {}
    return {"text": redaction.text, "found": findings} | unread


def compute_file_precision_and_recall(fields: Fields) -> Fields:
    """Compute precision, recall and F1 of the files in ``named``, compared with ``gold``. Duplicates are ignored.

    If ``named`` is empty, the precision is 0. If ``gold`` is empty, all three values are ``null``.
    """
    scores = compute_agreement(_read_file_names_field(fields, "named"), _read_file_names_field(fields, "gold"))
    has_gold = bool(scores.found or scores.missed)
    return {
        "precision": scores.precision if has_gold else None,
        "recall": scores.recall if has_gold else None,
        "f1": scores.f1 if has_gold else None,
    }


def _read_file_names_field(fields: Fields, name: str) -> list[str]:
    value = _read_list_field(fields, name, "file names")
    if not all(isinstance(path, str) for path in value):
        raise Unreadable(f"{name}: expected a list of file names, each a JSON string")
    return [replace_surrogates(path) for path in value]


def _read_list_field(fields: Fields, name: str, content: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list):
        missing = "missing" if name not in fields else "not a list"
        raise Unreadable(f"{name}: {missing}; expected a list of {content}")
    return cast("list[Any]", value)


def count_tool_calls_and_repeats(fields: Fields) -> Fields:
    """Count the tool calls of an agent and of the reference, and the agent's exact repeats of earlier calls."""
    calls, reference = _read_tool_calls_field(fields, "calls"), _read_tool_calls_field(fields, "reference")
    return {"calls": len(calls), "reference": len(reference), "repeats": len(find_repeated_call_indexes(calls))}


def _read_tool_calls_field(fields: Fields, name: str) -> list[ToolCall]:
    return [
        _parse_tool_call(name, at, value)
        for at, value in enumerate(_read_list_field(fields, name, "calls"), start=1)
    ]


def _parse_tool_call(name: str, at: int, value: Any) -> ToolCall:
    called = cast("Fields", value).get("name") if isinstance(value, dict) else None
    if not isinstance(called, str) or not called:
        raise Unreadable(f'{name}, call {at}: expected {{"name": "…", "arguments": …}}')
    return ToolCall(name=replace_surrogates(called), arguments=value.get("arguments"))


FAILED = "failed"
"""The name of the field that states whether the case failed. All other fields are attributes of the case."""


def find_attributes_shared_by_failures(fields: Fields) -> Fields:
    """Return the attributes that the failed cases share, strongest first. The list may be empty."""
    rows = [
        _parse_attributes_and_outcome(at, value)
        for at, value in enumerate(_read_list_field(fields, "cases", "cases"), start=1)
    ]
    look = find_shared_causes([attributes for attributes, _ in rows], [failed for _, failed in rows])
    return {"causes": [cause.conditions for cause in look.causes]}


def _parse_attributes_and_outcome(at: int, value: Any) -> tuple[dict[str, Value], bool]:
    if not isinstance(value, dict):
        raise Unreadable(f'cases, case {at}: expected a JSON object with attributes and the field "{FAILED}"')
    case = cast("Fields", value)
    failed = case.get(FAILED)
    if not isinstance(failed, bool):
        raise Unreadable(f"cases, case {at}, {FAILED}: expected true or false. Omit cases without a grade")
    attributes = {
        replace_surrogates(name): _parse_case_attribute(at, name, attribute)
        for name, attribute in case.items()
        if name != FAILED
    }
    return attributes, failed


def _parse_case_attribute(at: int, name: str, value: Any) -> Value:
    if isinstance(value, str):
        return replace_surrogates(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise Unreadable(
        f"cases, case {at}, {replace_surrogates(name)}: expected a string, a number, true, false or null"
    )
