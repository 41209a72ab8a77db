"""Compute the answers of ``lookout facts`` and the other pipes, one line at a time.

Each field of a line is checked: an error names the field and what is accepted. ``lookout grade`` uses the panel and
the gate's rule, as a run does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from deployments.cli.pipes import Fields, Unreadable
from monitors.alerts.redact import redact_with_findings
from monitors.domains.pack import INSURANCE, Domain, load_domain
from monitors.errors import ConfigError
from monitors.explain.first_look import find_shared_causes
from monitors.facts.citations import find_citations
from monitors.facts.language import find_case_language, identify_language
from monitors.facts.quantities.fact import Fact, FactKind
from monitors.facts.quantities.locales import validate_currency, validate_locale
from monitors.facts.quantities.scan import read_facts
from monitors.facts.refusals.detect import RefusalKind, read_refusal
from monitors.facts.source_files import compute_agreement
from monitors.facts.text import find_unread
from monitors.facts.tool_calls import ToolCall, find_repeated_calls
from monitors.gate.assess import assess_case
from monitors.graders.base import Grader, GraderSettings
from monitors.graders.panel import build_default_panel, grade_exchange
from monitors.records.base import Finding, Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from monitors.records.explanations import Value
from monitors.records.grades import Abstained, Aspect, CaseOutcome, Grade, Judged, Span
from monitors.records.sayings import parse_phrase_or_pattern

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""Half of a surrogate pair is not text; one character replaces it, so that positions stay right."""


def read_text(fields: Fields, name: str, default: str | None = None) -> str:
    """Read a text. Without a default it must be there; it may be empty."""
    value = fields.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        missing = "missing" if name not in fields else "not a text"
        raise Unreadable(f"{name}: {missing}; expected a JSON string")
    return replace_surrogates(value)


def replace_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs by U+FFFD, one for one."""
    return text if text.isascii() else text.translate(_SURROGATES)


def read_texts(fields: Fields, name: str) -> tuple[str, ...]:
    """Read a text or a list of texts, each of which is equally right."""
    value = fields.get(name)
    if isinstance(value, list):
        texts = cast("list[Any]", value)
        if texts and all(isinstance(item, str) for item in texts):
            return tuple(replace_surrogates(item) for item in texts)
        raise Unreadable(f"{name}: expected a JSON string, or a list with at least one string")
    return (read_text(fields, name),)


def read_flag(fields: Fields, name: str) -> bool:
    """Read ``true`` or ``false``; absent is false."""
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Unreadable(f"{name}: expected true or false")
    return value


def read_severity(fields: Fields) -> Severity:
    """Read a severity of 1, 2 or 3; absent is 2, a wrong answer."""
    value = fields.get("severity")
    if value is None:
        return Severity.MAJOR
    if isinstance(value, bool) or value not in (1, 2, 3):
        raise Unreadable("severity: expected 1 (minor), 2 (major) or 3 (critical: alerts at once)")
    return Severity(int(value))


def read_language(fields: Fields) -> Language | None:
    """Read one of the four languages, or ``None`` where the line names none."""
    value = fields.get("language")
    if value is None:
        return None
    accepted = [language.value for language in Language]
    if value not in accepted:
        raise Unreadable(f"language: expected one of {', '.join(accepted)}")
    return Language(value)


def read_locale(fields: Fields) -> str | None:
    """Read a locale such as ``de-DE``, or ``None`` where the line names none."""
    return _read_checked_text(fields, "locale", validate_locale)


def read_currency(fields: Fields) -> str | None:
    """Read an ISO 4217 code, or ``None`` where the line names none."""
    return _read_checked_text(fields, "currency", validate_currency)


def read_domain(fields: Fields) -> Domain:
    """Load the domain of the packs that the line names, or of the insurance pack."""
    packs = read_texts(fields, "domains") if fields.get("domains") is not None else (INSURANCE,)
    if any("/" in pack for pack in packs):
        raise Unreadable("domains: expected names of packs that come with Lookout; a line cannot name a folder")
    try:
        return load_domain(packs)
    except ConfigError as error:
        raise Unreadable(f"domains: {error}") from None


def _read_checked_text(fields: Fields, name: str, check: Callable[[str], str]) -> str | None:
    if fields.get(name) is None:
        return None
    try:
        return check(read_text(fields, name))
    except ValueError as error:
        raise Unreadable(f"{name}: {error}") from None


def extract_facts(fields: Fields) -> Fields:
    """Return all quantities of ``text`` in order of position; English and Hindi are read together.

    ``language``, ``locale`` (``de-DE``) and ``currency`` (ISO 4217) are optional; they settle what is ambiguous. Of
    a text beyond a million characters the two ends are read, and ``unread`` is the span between them.
    """
    text = read_text(fields, "text")
    facts = read_facts(
        text,
        language=read_language(fields),
        locale=read_locale(fields),
        currency=read_currency(fields),
    )
    unread = find_unread(text)
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
"""A line has no time; no grader reads it."""
_NOTHING = "-"
"""Stands for an empty question or gold: a case must have both, and nothing can be compared with it."""
_TRUTH = {Finding.YES: True, Finding.NO: False, Finding.UNGRADED: None}
_CORRECT = {CaseOutcome.CORRECT: True, CaseOutcome.FAILED: False}


@lru_cache(maxsize=8)
def _build_panel(locale: str | None, currency: str | None, domain: Domain) -> tuple[Grader, ...]:
    """Build the graders for a locale, currency and domain; many lines share one panel."""
    return build_default_panel(GraderSettings(locale=locale, currency=currency, citation_required=True), domain)


def grade_line(fields: Fields) -> Fields:
    """Grade the answer of one line. ``null`` means that every grader concerned abstained."""
    case = _build_case(fields)
    exchange = _build_exchange(case, read_text(fields, "answer"))
    grades = grade_exchange(
        _build_panel(read_locale(fields), read_currency(fields), read_domain(fields)), case, exchange
    )
    assessment = assess_case(case, exchange, grades)
    answer = exchange.graded_text
    refusal = _find_refusal_kind(case, answer)
    return {
        "factual_match": _TRUTH[assessment.factual_match],
        "refused": None if refusal is None else refusal is RefusalKind.REFUSED,
        "refusal": refusal,
        "citation_present": bool(find_citations(answer)),
        "language": identify_language(answer).value,
        "pii": _list_disclosures(grades),
        "error_leak": any(
            isinstance(grade, Judged) and grade.aspect is Aspect.ERROR_LEAK and not grade.passed for grade in grades
        ),
        "correct": _CORRECT.get(assessment.outcome),
        "grades": [_format_grade(grade) for grade in grades],
    }


def _build_case(fields: Fields) -> GoldCase:
    gold, *alternatives = read_texts(fields, "gold")
    question = read_text(fields, "question", "") or _NOTHING
    return GoldCase(
        id="line",
        turns=(question,),
        gold=gold or _NOTHING,
        alternatives=tuple(text for text in alternatives if text),
        expected_refusal=read_flag(fields, "expected_refusal"),
        expected_citation=read_text(fields, "expected_citation", "") or None,
        must_say=_read_sayings(fields, "must_say"),
        must_not_say=_read_sayings(fields, "must_not_say"),
        severity=read_severity(fields),
        language=read_language(fields) or find_case_language(question, gold),
        type="line",
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
    )


def _read_sayings(fields: Fields, name: str) -> tuple[str, ...]:
    """Read phrases and patterns; absent or an empty list means none."""
    if fields.get(name) in (None, []):
        return ()
    written = read_texts(fields, name)
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
    """Return whether the answer refuses; ``None`` where the rules are unsure or do not read its language."""
    refusal = read_refusal(answer, " ".join(case.turns), expected=case.expected_refusal)
    unread = not case.language.is_english_or_hindi and refusal.language != "de" and not refusal.refused
    return None if unread else refusal.kind


def _list_disclosures(grades: tuple[Grade, ...]) -> list[Fields]:
    failed = (g for g in grades if isinstance(g, Judged) and g.aspect is Aspect.DISCLOSURE and not g.passed)
    return [{"kind": span.label, "span": [span.start, span.end]} for grade in failed for span in grade.evidence]


def _format_grade(grade: Grade) -> Fields:
    match grade:
        case Abstained():
            verdict: Fields = {"passed": None, "failure_kind": None, "reason": grade.reason, "evidence": []}
        case Judged():
            kind = grade.failure_kind.value if grade.failure_kind else None
            evidence = [_format_span(span) for span in grade.evidence]
            verdict = {"passed": grade.passed, "failure_kind": kind, "reason": grade.reason, "evidence": evidence}
    return {"grader": grade.grader, "aspect": grade.aspect.value} | verdict


def _format_span(span: Span) -> Fields:
    return {"where": str(span.where), "span": [span.start, span.end], "label": span.label}


def redact_line(fields: Fields) -> Fields:
    """Redact personal data and secrets in ``text``, and list them with positions in the original text.

    Of a text beyond a million characters the middle is withheld, with a mark in its place; ``unread`` is its span.
    """
    redaction = redact_with_findings(read_text(fields, "text"))
    findings = [{"kind": finding.kind.value, "span": [finding.start, finding.end]} for finding in redaction.found]
    unread = {"unread": list(redaction.unread)} if redaction.unread else {}
    return {"text": redaction.text, "found": findings} | unread


def score_named_files(fields: Fields) -> Fields:
    """Score how well the files in ``named`` agree with those in ``gold``; each file counts once.

    Nothing named has a precision of 0. Without a gold file nothing can be said: all three are ``null``.
    """
    scores = compute_agreement(_read_paths(fields, "named"), _read_paths(fields, "gold"))
    has_gold = bool(scores.found or scores.missed)
    return {
        "precision": scores.precision if has_gold else None,
        "recall": scores.recall if has_gold else None,
        "f1": scores.f1 if has_gold else None,
    }


def _read_paths(fields: Fields, name: str) -> list[str]:
    value = _read_list(fields, name, "file names")
    if not all(isinstance(path, str) for path in value):
        raise Unreadable(f"{name}: expected a list of file names, each a JSON string")
    return [replace_surrogates(path) for path in value]


def _read_list(fields: Fields, name: str, content: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list):
        missing = "missing" if name not in fields else "not a list"
        raise Unreadable(f"{name}: {missing}; expected a list of {content}")
    return cast("list[Any]", value)


def count_calls(fields: Fields) -> Fields:
    """Count the calls, the reference's calls, and calls that repeat an earlier one with the same arguments."""
    calls, reference = _read_calls(fields, "calls"), _read_calls(fields, "reference")
    return {"calls": len(calls), "reference": len(reference), "repeats": len(find_repeated_calls(calls))}


def _read_calls(fields: Fields, name: str) -> list[ToolCall]:
    return [_read_call(name, at, value) for at, value in enumerate(_read_list(fields, name, "calls"), start=1)]


def _read_call(name: str, at: int, value: Any) -> ToolCall:
    called = cast("Fields", value).get("name") if isinstance(value, dict) else None
    if not isinstance(called, str) or not called:
        raise Unreadable(f'{name}, call {at}: expected {{"name": "…", "arguments": …}}')
    return ToolCall(name=replace_surrogates(called), arguments=value.get("arguments"))


FAILED = "failed"
"""The key of a case that says whether it failed; all others are attributes."""


def find_common_causes(fields: Fields) -> Fields:
    """Return what the failed cases have in common, the most surprising first; may be empty."""
    rows = [_read_case(at, value) for at, value in enumerate(_read_list(fields, "cases", "cases"), start=1)]
    look = find_shared_causes([attributes for attributes, _ in rows], [failed for _, failed in rows])
    return {"causes": [cause.conditions for cause in look.causes]}


def _read_case(at: int, value: Any) -> tuple[dict[str, Value], bool]:
    if not isinstance(value, dict):
        raise Unreadable(f"cases, case {at}: expected a JSON object with attributes and the result")
    case = cast("Fields", value)
    failed = case.get(FAILED)
    if not isinstance(failed, bool):
        raise Unreadable(f"cases, case {at}, {FAILED}: expected true or false; omit cases without a grade")
    attributes = {
        replace_surrogates(name): _read_attribute(at, name, attribute)
        for name, attribute in case.items()
        if name != FAILED
    }
    return attributes, failed


def _read_attribute(at: int, name: str, value: Any) -> Value:
    if isinstance(value, str):
        return replace_surrogates(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise Unreadable(
        f"cases, case {at}, {replace_surrogates(name)}: expected a string, a number, true, false or null"
    )
