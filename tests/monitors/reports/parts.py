"""Builders of single records that fill in every field that a test does not need."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from monitors.records.base import Blame, Finding, Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Channel, Exchange, NoAnswer, NoAnswerReason, Timings
from monitors.records.grades import (
    Abstained,
    Aspect,
    Assessment,
    CaseOutcome,
    FailureKind,
    Grade,
    Judged,
    Span,
)
from monitors.records.runs import CaseResult

RUN_ID = "20261121T031105Z-suraksha-7f3a"
STARTED = datetime(2026, 11, 21, 3, 11, 5, tzinfo=UTC)

_PERSONAL = re.compile(r"(?<![\w.])[\w.]{1,40}@[\w.]{1,40}\.\w+|(?<!\d)\d{4} \d{4} \d{4}(?!\d)|\+91[ -]?\d{10}")


def redact(text: str) -> str:
    """Redact e-mail addresses, twelve digits in groups of four, and Indian phone numbers, as ``[redacted]``."""
    return _PERSONAL.sub("[redacted]", text)


def gold_case(case_id: str, question: str | tuple[str, ...], gold: str, **changes: Any) -> GoldCase:
    """Return a gold case of severity 1 in English."""
    fields: dict[str, Any] = {
        "severity": Severity.MINOR,
        "language": Language.ENGLISH,
        "type": "coverage_scope",
        "provenance": Provenance(pipeline=Pipeline.TEMPLATE),
        "cluster": "suraksha-gold",
    }
    turns = (question,) if isinstance(question, str) else question
    return GoldCase(id=case_id, turns=turns, gold=gold, **(fields | changes))


def exchange(case: GoldCase, text: str, *, at_s: float = 0, total_ms: float = 2_400, **changes: Any) -> Exchange:
    """Return a complete answer ``text`` to ``case``, as the user saw it.

    ``at_s`` is the time of the question in seconds, and ``total_ms`` is the duration of the answer.
    """
    fields: dict[str, Any] = {
        "visible_text": text,
        "timings": Timings(first_token_ms=total_ms / 4, total_ms=total_ms),
        "app_path": "primary",
        "app_version": "9c41e77",
        "concurrency": 2,
    }
    asked_at = STARTED + timedelta(seconds=at_s)
    return Exchange(run_id=RUN_ID, case_id=case.id, turns=case.turns, asked_at=asked_at, **(fields | changes))


def no_answer(case: GoldCase, reason: NoAnswerReason, blame: Blame, detail: str, **changes: Any) -> NoAnswer:
    """Return a result without a gradable answer."""
    fields: dict[str, Any] = {"asked_at": STARTED, "concurrency": 2} | changes
    return NoAnswer(
        run_id=RUN_ID, case_id=case.id, turns=case.turns, reason=reason, blame=blame, detail=detail, **fields
    )


def span(text: str, part: str, label: str, where: Any = Channel.VISIBLE) -> Span:
    """Return the span of the first occurrence of ``part`` in ``text``."""
    start = text.index(part)
    return Span(where=where, start=start, end=start + len(part), label=label)


def passed(grader: str, aspect: Aspect, reason: str, *evidence: Span) -> Judged:
    """Return the grade of a grader that passed the answer."""
    return Judged(grader=grader, version="1", aspect=aspect, passed=True, reason=reason, evidence=evidence)


def failed(grader: str, aspect: Aspect, kind: FailureKind, reason: str, *evidence: Span, **changes: Any) -> Judged:
    """Return the grade of a grader that failed the answer."""
    fields: dict[str, Any] = {"reason": reason, "evidence": evidence, "version": "1"} | changes
    return Judged(grader=grader, aspect=aspect, passed=False, failure_kind=kind, **fields)


def abstained(grader: str, aspect: Aspect, reason: str, blame: Blame = Blame.MONITOR) -> Abstained:
    """Return the grade of a grader that abstained."""
    return Abstained(grader=grader, version="1", aspect=aspect, reason=reason, blame=blame)


def case_result(
    case: GoldCase,
    came: Exchange | NoAnswer,
    outcome: CaseOutcome,
    reason: str,
    *grades: Grade,
    **changes: Any,
) -> CaseResult:
    """Return a case with its assessment. By default, its failure kinds are those of its failed grades."""
    kinds = tuple(dict.fromkeys(g.failure_kind for g in grades if isinstance(g, Judged) and g.failure_kind))
    fields: dict[str, Any] = {
        "failure_kinds": kinds if outcome is CaseOutcome.FAILED else (),
        "severity": case.severity,
        "policy_row": "case",
        "blame": None if outcome is CaseOutcome.CORRECT else Blame.APP,
        "factual_match": Finding.YES if outcome is CaseOutcome.CORRECT else Finding.NO,
        "app_path": came.app_path if isinstance(came, Exchange) else None,
    } | changes
    assessment = Assessment(
        run_id=RUN_ID,
        case_id=case.id,
        repeat=came.repeat,
        outcome=outcome,
        case_severity=case.severity,
        reason=reason,
        expected_refusal=case.expected_refusal,
        type=case.type,
        language=case.language,
        cluster=case.cluster,
        pair=case.pair,
        grades=grades,
        **fields,
    )
    return CaseResult(case=case, result=came, assessment=assessment)
