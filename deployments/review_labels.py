"""What a reviewer says becomes a label, and a draft for the gold set where it contradicts the judge. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime

from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.incidents import Redacted
from monitors.records.people import CaseDraft, HumanLabel
from monitors.records.reviews import AnswerVerdict, JudgedAnswer, LabelSource, SpotCheck

Redact = Callable[[str], Redacted]


def label_of(
    check: SpotCheck,
    verdict: AnswerVerdict,
    *,
    by: str,
    at: datetime,
    redact: Redact,
    failure_kind: FailureKind | None = None,
    note: str = "",
) -> HumanLabel:
    """The label of one answer by one person; the same person's second word on it has the same id."""
    answer = check.answer
    return HumanLabel(
        id=_id(answer, by),
        at=at,
        by=by,
        target=answer.target,
        run_id=answer.answer_id.run_id,
        case_id=answer.answer_id.case_id,
        repeat=answer.answer_id.repeat,
        failure_kind=failure_kind,
        reason=redact(answer.judge_reason),
        note=redact(note),
        source=LabelSource.REVIEW,
        answer=verdict,
        inclusion_probability=check.inclusion_probability,
    )


def contradicts(label: HumanLabel, answer: JudgedAnswer) -> bool:
    """Whether the person says the other thing than the judge. Unsure contradicts nobody."""
    return label.answer is not AnswerVerdict.UNSURE and (label.answer is AnswerVerdict.RIGHT) != answer.judge_passed


def draft_of(label: HumanLabel, answer: JudgedAnswer, redact: Redact) -> CaseDraft:
    """A draft for the gold set: where a judge and a person differ, a case is worth having.

    Of an answer that the person found right and nobody wrote a gold for, the answer itself is proposed as gold;
    a wrong answer is kept as what the case must fail on. Nothing of it is gold before it was reviewed. The id of a
    real conversation is left out: drafts live longer than conversations may.
    """
    right = label.answer is AnswerVerdict.RIGHT
    gold = redact(answer.gold) if answer.gold is not None else redact(answer.answer) if right else None
    judge = "passed" if answer.judge_passed else "failed"
    said = "right" if right else "wrong"
    note = f" ({label.note})" if label.note else ""
    return CaseDraft(
        id=label.id,
        made_at=label.at,
        by=label.by,
        target=answer.target,
        run_id=answer.answer_id.run_id,
        source_id=answer.answer_id.case_id if answer.origin is Origin.PROBE else None,
        origin=answer.origin,
        turns=tuple(redact(turn) for turn in answer.turns),
        gold=gold,
        bad_reply=None if right else redact(answer.answer),
        failure_kind=label.failure_kind or (None if right else answer.failure_kind),
        language=answer.language,
        suggested_severity=answer.severity,
        severity_reason="the severity of the case that was reviewed",
        finding=redact(f"{answer.lineage.model} {judge} it: {answer.judge_reason} A person found it {said}{note}"),
    )


def _id(answer: JudgedAnswer, by: str) -> str:
    where = answer.answer_id
    parts = (by, answer.target, where.run_id, where.case_id, str(where.repeat))
    return f"review-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
