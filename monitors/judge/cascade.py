"""What reaches the judge: only what the graders without a model leave open, and nothing that fails by rule."""

from __future__ import annotations

import hashlib
from typing import Final

from monitors.facts.citations import find_citations
from monitors.judge.precheck import precheck
from monitors.judge.prompt import subject_of
from monitors.judge.ruling import JudgeCase
from monitors.records.base import Finding
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, Assessment, CaseOutcome, FailureKind, Judged

PRECHECK: Final = "precheck"
PRECHECK_VERSION: Final = "1"


def is_open(assessment: Assessment) -> bool:
    """Whether the plain graders left the facts untold and nothing else settled the case.

    A case that failed on safety, or whose citation is missing, has failed already: a judge would add money and no
    news. One for which nothing came back has nothing to judge.
    """
    return assessment.outcome is CaseOutcome.UNTOLD and assessment.factual_match is Finding.UNTOLD


def fails_by_rule(case: GoldCase, exchange: Exchange) -> Judged | None:
    """The failing grade of an answer that is none: empty, an opening, the question again, words to a judge."""
    accepted = (case.gold, *case.alternatives)
    texts = (exchange.graded_text, _without_sources(exchange.graded_text))
    found = next((f for f in (precheck(t, case.question, accepted=accepted) for t in texts) if f.trivial), None)
    if found is None:
        return None
    return Judged(
        grader=PRECHECK,
        version=PRECHECK_VERSION,
        aspect=Aspect.FACTUAL_MATCH,
        passed=False,
        failure_kind=FailureKind.MISSING_FACT,
        reason=found.reason,
    )


def _without_sources(text: str) -> str:
    """A source behind "Solution" does not make it an answer."""
    if "[" not in text:
        return text
    for source in reversed(find_citations(text)):
        text = f"{text[: source.start]} {text[source.end :]}"
    return text


def judge_case(case: GoldCase, exchange: Exchange) -> JudgeCase:
    """A gold case with its answer, for the judge. Its severity is the case's: nothing in an answer changes it."""
    return JudgeCase(
        id=request_id(exchange.run_id, case.id, str(exchange.repeat)),
        subject=subject_of(case, exchange),
        severity=case.severity,
    )


def request_id(*parts: str) -> str:
    """A name that providers accept, the same for the same parts: theirs are stricter than ours."""
    return f"k{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:40]}"


def is_replaced(grade: Judged | Abstained, by: Judged | Abstained) -> bool:
    """Whether ``grade`` is an earlier word of the same grader on the same question: a case judged again has one."""
    return (grade.grader, grade.aspect) == (by.grader, by.aspect)
