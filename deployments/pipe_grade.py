"""What ``lookout grade`` answers to one line: the panel and the gate's rule, as in a run."""

from __future__ import annotations

from datetime import UTC, datetime

from deployments.pipe_fields import flag_of, language_of, severity_of, text_of, texts_of
from deployments.pipe_lines import Fields
from monitors.facts.citations import find_citations
from monitors.facts.language import identify
from monitors.facts.refusals import read_refusal
from monitors.gate.assess import assess
from monitors.graders.panel import default_panel, grade_exchange
from monitors.graders.settings import GraderSettings
from monitors.records.base import Finding
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Abstained, Aspect, CaseOutcome, Grade, Judged, Span

_PANEL = default_panel(GraderSettings())
_UNTIMED = datetime(1970, 1, 1, tzinfo=UTC)
"""A line has no time; no grader looks at it."""
_NOTHING = "-"
"""Stands for an empty question or gold: a case must have both, and nothing can be compared with it."""
_TRUTH = {Finding.YES: True, Finding.NO: False, Finding.UNTOLD: None}
_CORRECT = {CaseOutcome.CORRECT: True, CaseOutcome.FAILED: False}


def graded(fields: Fields) -> Fields:
    """Grade one answer. ``null`` means that every grader concerned abstained."""
    case = _case(fields)
    exchange = _exchange(case, text_of(fields, "answer"))
    grades = grade_exchange(_PANEL, case, exchange)
    assessment = assess(case, exchange, grades)
    answer = exchange.graded_text
    return {
        "factual_match": _TRUTH[assessment.factual_match],
        "refused": read_refusal(answer).refused,
        "citation_present": bool(find_citations(answer)),
        "language": identify(answer).value,
        "pii": _disclosed(grades),
        "error_leak": any(_failed(grade, Aspect.ERROR_LEAK) for grade in grades),
        "correct": _CORRECT.get(assessment.outcome),
        "grades": [_shown(grade) for grade in grades],
    }


def _case(fields: Fields) -> GoldCase:
    gold, *alternatives = texts_of(fields, "gold")
    question = text_of(fields, "question", "") or _NOTHING
    return GoldCase(
        id="line",
        turns=(question,),
        gold=gold or _NOTHING,
        alternatives=tuple(text for text in alternatives if text),
        expected_refusal=flag_of(fields, "expected_refusal"),
        expected_citation=text_of(fields, "expected_citation", "") or None,
        severity=severity_of(fields),
        language=language_of(fields) or identify(question),
        type="line",
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
    )


def _exchange(case: GoldCase, answer: str) -> Exchange:
    return Exchange(
        run_id="pipe",
        case_id=case.id,
        turns=case.turns,
        visible_text=answer,
        asked_at=_UNTIMED,
        timings=Timings(total_ms=0),
    )


def _failed(grade: Grade, aspect: Aspect) -> bool:
    return isinstance(grade, Judged) and grade.aspect is aspect and not grade.passed


def _disclosed(grades: tuple[Grade, ...]) -> list[Fields]:
    found = (g for g in grades if isinstance(g, Judged) and g.aspect is Aspect.DISCLOSURE and not g.passed)
    return [{"kind": span.label, "span": [span.start, span.end]} for grade in found for span in grade.evidence]


def _shown(grade: Grade) -> Fields:
    match grade:
        case Abstained():
            verdict: Fields = {"passed": None, "failure_kind": None, "reason": grade.reason, "evidence": []}
        case Judged():
            kind = grade.failure_kind.value if grade.failure_kind else None
            evidence = [_evidence(span) for span in grade.evidence]
            verdict = {"passed": grade.passed, "failure_kind": kind, "reason": grade.reason, "evidence": evidence}
    return {"grader": grade.grader, "aspect": grade.aspect.value} | verdict


def _evidence(span: Span) -> Fields:
    return {"where": str(span.where), "span": [span.start, span.end], "label": span.label}
