"""``hallucinations.jsonl``: one line per failed answer, in the fields that applications log their own in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitors.records.base import Record, Severity, UtcTime
from monitors.records.exchanges import Channel, Exchange
from monitors.records.grades import CaseOutcome, FailureKind, Judged
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.case_view import answer_text
from monitors.reports.masking import Redact, masked_part, masks_of, redaction_of, secrets_of
from monitors.reports.ordering import with_outcome

_CLAIMS = frozenset({FailureKind.WRONG_FACT, FailureKind.UNSUPPORTED_CLAIM, FailureKind.SHOULD_HAVE_REFUSED})


class HallucinationLine(Record):
    """One line. The first six fields are the shared ones, the others say where it comes from.

    All texts are redacted. ``unsupported_claims`` are the stretches of the answer that a grade on its facts points
    at; ``policy_ids`` is the case's cluster. What a probe from outside cannot know (``chunk_count``,
    ``top_score``) is left out.
    """

    ts: UtcTime
    user_text: str
    blocked_reply: str
    reasons: tuple[str, ...]
    unsupported_claims: tuple[str, ...]
    policy_ids: tuple[str, ...]
    run_id: str
    case_id: str
    repeat: int
    target: str
    commit: str | None
    severity: Severity
    failure_kinds: tuple[FailureKind, ...]


def hallucination_lines(report: RunReport, cases: Sequence[CaseResult], *, redact: Redact) -> Iterator[str]:
    """The lines, worst first, each ending in a newline."""
    for result in with_outcome(cases, CaseOutcome.FAILED):
        yield _line(report, result, redact).model_dump_json() + "\n"


def _line(report: RunReport, result: CaseResult, redact: Redact) -> HallucinationLine:
    found, safe = result.assessment, redaction_of(result, redact)
    failing = [grade for grade in found.grades if isinstance(grade, Judged) and not grade.passed]
    reasons = tuple(f"{grade.failure_kind}: {safe(grade.reason)}" for grade in failing)
    return HallucinationLine(
        ts=result.result.asked_at,
        user_text=safe(result.case.question),
        blocked_reply=safe(answer_text(result)),
        reasons=reasons or (safe(found.reason),),
        unsupported_claims=_claims(result, failing, redact),
        policy_ids=(found.cluster,) if found.cluster else (),
        run_id=report.run_id,
        case_id=result.case.id,
        repeat=result.result.repeat,
        target=report.target.name,
        commit=report.commit,
        severity=found.severity,
        failure_kinds=found.failure_kinds,
    )


def _claims(result: CaseResult, failing: Sequence[Judged], redact: Redact) -> tuple[str, ...]:
    came = result.result
    if not isinstance(came, Exchange):
        return ()
    texts = {Channel.VISIBLE: came.visible_text, Channel.WIRE: came.wire.text if came.wire else ""}
    secrets = secrets_of(result)
    masks = {where: masks_of(text, secrets, redact) for where, text in texts.items()}
    claims = [
        masked_part(texts[span.where], masks[span.where], span.start, span.end)
        for grade in failing
        if grade.failure_kind in _CLAIMS
        for span in grade.evidence
        if span.where != "gold" and span.start < len(texts[span.where])
    ]
    return tuple(dict.fromkeys(claims))
