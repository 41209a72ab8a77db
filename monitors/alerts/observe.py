"""A run's failed cases → observations: which of them a person must hear of one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from monitors.alerts.excerpt import excerpt
from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import FAILURE_WORDS
from monitors.records.base import Blame
from monitors.records.exchanges import Exchange
from monitors.records.grades import Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.incidents import IncidentKind, Observation, Redacted
from monitors.records.runs import CaseResult

REASON_CHARACTERS: Final = 300


def observations(
    results: Sequence[CaseResult],
    *,
    target: str,
    run_id: str,
    seen_at: datetime,
    settings: AlertSettings,
    commit: str | None = None,
    account_patterns: Sequence[str] = (),
    flaky: Mapping[str, str] | None = None,
) -> tuple[Observation, ...]:
    """Observations of every failed case from ``settings.page_severity`` on, in the order of ``results``.

    Only failures the app is to blame for count. A case that was asked several times is one observation, its
    worst. Texts are redacted and cut; ``account_patterns`` are the target's own regular expressions. ``flaky`` says
    by case id how often a case was right that was right only sometimes.
    """
    worst: dict[str, Observation] = {}
    for result in results:
        if not _is_told_alone(result.assessment, settings):
            continue
        seen = _observe(
            result,
            target=target,
            run_id=run_id,
            seen_at=seen_at,
            commit=commit,
            limit=settings.excerpt_characters,
            account_patterns=account_patterns,
        )
        if flaky and result.case.id in flaky:
            seen = seen.model_copy(update={"flaky": flaky[result.case.id]})
        known = worst.get(seen.fingerprint)
        if known is None or seen.severity > known.severity:
            worst[seen.fingerprint] = seen
    return tuple(worst.values())


def _is_told_alone(assessment: Assessment, settings: AlertSettings) -> bool:
    return (
        assessment.outcome is CaseOutcome.FAILED
        and assessment.blame is Blame.APP
        and assessment.severity >= settings.page_severity
    )


def _observe(
    result: CaseResult,
    *,
    target: str,
    run_id: str,
    seen_at: datetime,
    commit: str | None,
    limit: int,
    account_patterns: Sequence[str],
) -> Observation:
    case, assessment = result.case, result.assessment
    kind = assessment.failure_kinds[0]

    def short(text: str, around: int | None = None, limit: int = limit) -> Redacted:
        return excerpt(text, limit=limit, account_patterns=account_patterns, around=around)

    return Observation(
        fingerprint=fingerprint(target, IncidentKind.CASE_FAILURE, case.id, kind.value),
        kind=IncidentKind.CASE_FAILURE,
        target=target,
        run_id=run_id,
        seen_at=seen_at,
        severity=assessment.severity,
        blame=Blame.APP,
        failure_kind=kind,
        case_id=case.id,
        policy_row=assessment.policy_row,
        commit=commit,
        title=short(FAILURE_WORDS[kind]),
        asked=short(case.question) or None,
        expected=short(_expected(result)) or None,
        answered=short(_answer(result), _evidence_start(result, kind)) or None,
        reason=short(_which_check(assessment, kind), limit=REASON_CHARACTERS),
        unconfirmed=assessment.unconfirmed,
        origin=result.result.origin,
    )


def _expected(result: CaseResult) -> str:
    case = result.case
    words = f"A refusal: {case.gold}" if case.expected_refusal else case.gold
    return f"{words} [cites {case.expected_citation}]" if case.expected_citation else words


def _answer(result: CaseResult) -> str:
    came = result.result
    return came.graded_text if isinstance(came, Exchange) else came.partial_text


def _failing(assessment: Assessment, kind: FailureKind) -> Iterator[Judged]:
    for grade in assessment.grades:
        if isinstance(grade, Judged) and grade.failure_kind is kind:
            yield grade


def _which_check(assessment: Assessment, kind: FailureKind) -> str:
    grade = next(_failing(assessment, kind), None)
    return f"{grade.grader}: {grade.reason}" if grade and grade.reason.strip() else assessment.reason or kind.value


def _evidence_start(result: CaseResult, kind: FailureKind) -> int | None:
    came = result.result
    if not isinstance(came, Exchange):
        return None
    spans = (span for grade in _failing(result.assessment, kind) for span in grade.evidence)
    return next((span.start for span in spans if span.where == came.graded_channel), None)
