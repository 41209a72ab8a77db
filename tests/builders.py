"""Build records for tests, with default values for the fields that a test does not set."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from monitors.gate.assess import assess_case
from monitors.records.base import Blame, Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason, Timings
from monitors.records.grades import Abstained, Aspect, Assessment, FailureKind, Judged
from monitors.records.runs import CaseResult
from monitors.records.targets import Target

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TARGET = Target(name="demo", url="http://127.0.0.1:7860")


def gold_case(case_id: str = "case-1", **changes: Any) -> GoldCase:
    """Build a case of severity 1 that expects an answer."""
    values: dict[str, Any] = {
        "id": case_id,
        "turns": ("What is the waiting period?",),
        "gold": "24 months",
        "severity": Severity.MINOR,
        "language": Language.ENGLISH,
        "type": "waiting_period",
        "provenance": Provenance(pipeline=Pipeline.TEMPLATE),
    }
    return GoldCase(**(values | changes))


def exchange(case: GoldCase, text: str = "24 months [Source: Gold, clause 1]", **changes: Any) -> Exchange:
    """Build an exchange with a complete answer to ``case``."""
    values: dict[str, Any] = {
        "run_id": "run-1",
        "case_id": case.id,
        "turns": case.turns,
        "visible_text": text,
        "asked_at": NOON,
        "timings": Timings(first_token_ms=200, total_ms=1000),
    }
    return Exchange(**(values | changes))


def no_answer(case: GoldCase, blame: Blame = Blame.APP, **changes: Any) -> NoAnswer:
    """Build the record for a ``case`` without a gradable reply."""
    values: dict[str, Any] = {
        "run_id": "run-1",
        "case_id": case.id,
        "turns": case.turns,
        "reason": NoAnswerReason.ANSWER_TIMEOUT,
        "blame": blame,
        "detail": "no answer within 30 s",
        "asked_at": NOON,
    }
    return NoAnswer(**(values | changes))


def judged(aspect: Aspect, failure: FailureKind | None = None, **changes: Any) -> Judged:
    """Build a passing grade, or a failing grade if ``failure`` is given."""
    values: dict[str, Any] = {
        "grader": f"{aspect}-grader",
        "version": "1",
        "aspect": aspect,
        "passed": failure is None,
        "failure_kind": failure,
        "reason": f"{aspect}: {failure or 'fine'}",
    }
    return Judged(**(values | changes))


def abstained(aspect: Aspect, blame: Blame = Blame.MONITOR) -> Abstained:
    """Build the result of a grader that could not decide."""
    return Abstained(
        grader=f"{aspect}-grader", version="1", aspect=aspect, reason="nothing to compare", blame=blame
    )


def grades(*failures: tuple[Aspect, FailureKind]) -> tuple[Judged, ...]:
    """Build the grades of a full panel of graders. Only those in ``failures`` fail."""
    failed = dict(failures)
    aspects = (Aspect.FACTUAL_MATCH, Aspect.REFUSAL, Aspect.CITATION, Aspect.DISCLOSURE, Aspect.ERROR_LEAK)
    return tuple(judged(aspect, failed.get(aspect)) for aspect in aspects)


def assessment(case: GoldCase, *failures: tuple[Aspect, FailureKind]) -> Assessment:
    """Build the assessment of an answered ``case`` with the given failures."""
    return assess_case(case, exchange(case), grades(*failures))


def case_result(case: GoldCase, *failures: tuple[Aspect, FailureKind]) -> CaseResult:
    """Build the result of an answered ``case``: its assessment and its exchange."""
    return CaseResult(case=case, result=exchange(case), assessment=assessment(case, *failures))
