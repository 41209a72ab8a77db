"""Builds observations. An observation is the record of a fault that a run found.

Each observation has a fingerprint. Two observations with the same fingerprint are the same fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from json.encoder import encode_basestring_ascii
from typing import Final, NamedTuple

from monitors.alerts.redact import build_redacted_excerpt, collect_case_texts, make_excerpt_with_unmasked_address
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import DISPUTED_TITLE, FAILURE_TITLES, KIND_WORDS, format_ids
from monitors.facts.triage_report import read_report
from monitors.plural import plural
from monitors.records.base import Blame, Identifier, Record, Severity, Sha256
from monitors.records.exchanges import Exchange, Origin
from monitors.records.grades import LOG_ROW, Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.incidents import (
    Capability,
    FailedCase,
    IncidentKind,
    Observation,
    Redacted,
)
from monitors.records.runs import CaseResult, ReasonKind, RunReport


def compute_fingerprint(target: str, kind: IncidentKind, *parts: str) -> Sha256:
    """Return the SHA-256 that identifies a fault.

    The fingerprint depends on target, kind and ``parts``, such as the case id.

    ``parts`` must not contain the run, the commit or the text of an answer, because the same fault must have the
    same fingerprint in every run.
    """
    canonical = f"[{', '.join(map(encode_basestring_ascii, (target, kind.value, *parts)))}]"  # as json.dumps has it
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


MAX_REASON_CHARACTERS: Final = 500


class ObservationContext(Record):
    """Where and when a fault was seen. Each observation contains these values."""

    target: str
    run_id: str
    seen_at: datetime
    commit: str | None = None
    account_patterns: tuple[str, ...] = ()
    owner: Capability = Capability.VERIFY
    address: str = ""
    """The target's configured address (``http://host:port``), which is not a secret."""


def build_app_down_observation(at: ObservationContext, *, detail: str, title: str = "") -> Observation:
    """Build the observation that the application does not answer.

    ``title`` replaces the words "App is down" if the application may be up.
    """
    return _build_observation(at, IncidentKind.APP_DOWN, Severity.CRITICAL, Blame.APP, detail, title=title)


def build_failed_deploy_observation(at: ObservationContext, *, detail: str) -> Observation:
    """Build the observation that a deploy failed, was paused, or was not served before the deadline."""
    return _build_observation(at, IncidentKind.DEPLOY_FAILURE, Severity.CRITICAL, Blame.APP, detail)


class FailedCases(Record):
    """The failed cases to show in the message about a failed gate, worst first.

    See `Observation` for the fields.
    """

    examples: tuple[FailedCase, ...] = ()
    others: str = ""
    failed_cases: tuple[Identifier, ...] = ()
    right_answers: tuple[tuple[Identifier, Sha256], ...] = ()
    cases_with_alerts: tuple[Identifier, ...] = ()


def build_failed_gate_observation(
    report: RunReport, at: ObservationContext, failed: FailedCases | None = None
) -> Observation:
    """Build the observation of a run with the verdict FAIL.

    The severity is 3 if a case of severity 3 failed, and otherwise 2. ``failed`` is the result of
    `select_failed_cases_for_message`.
    """
    decisive = [reason for reason in report.reasons if reason.decisive]
    is_vetoed = any(reason.kind is ReasonKind.VETO for reason in decisive)
    severity = Severity.CRITICAL if is_vetoed else Severity.MAJOR
    texts: list[str] = []
    for reason in decisive:
        text = reason.text
        if reason.kind is ReasonKind.COVERAGE and reason.case_ids:  # no other part of the message names these cases
            text += f" (not graded: {format_ids(reason.case_ids, MAX_UNGRADED_NAMED)})"
        texts.append(text)
    return _build_observation(
        at,
        IncidentKind.GATE_FAIL,
        severity,
        Blame.APP,
        "; ".join(texts) or "the gate gives no reason",
        failed=failed,
        verdict_reasons=tuple(dict.fromkeys(reason.kind.value for reason in decisive)),
    )


def build_void_judge_observation(at: ObservationContext, *, detail: str) -> Observation:
    """Build the observation that the judge graded known answers incorrectly, so that its grades do not count."""
    return _build_observation(at, IncidentKind.JUDGE_VOID, Severity.MAJOR, Blame.PROVIDER, detail)


def build_drift_observation(
    at: ObservationContext,
    *,
    metric: str,
    detail: str,
    asked: Redacted | None = None,
    answered: Redacted | None = None,
) -> Observation:
    """Build the observation that the rate ``metric`` has changed. ``detail`` states since when and by how much.

    ``asked`` and ``answered`` are the question and answer of an example.
    """
    return _build_observation(
        at, IncidentKind.DRIFT, Severity.MAJOR, Blame.APP, detail, metric, asked=asked, answered=answered
    )


def build_monitor_fault_observation(
    at: ObservationContext, *, fault_name: str, detail: str, title: str = ""
) -> Observation:
    """Build the observation of an internal fault of Lookout.

    ``fault_name`` identifies the fault, for example ``hung_run``. ``title`` is the first line of the message if it
    is more precise than "Lookout itself has a fault".
    """
    return _build_observation(
        at, IncidentKind.MONITOR_FAULT, Severity.MAJOR, Blame.MONITOR, detail, fault_name, title=title
    )


def build_drill_observation(at: ObservationContext, *, title: str, detail: str, failed: bool) -> Observation:
    """Build the observation with a drill's result. ``title`` is the first line of the message."""
    severity = Severity.CRITICAL if failed else Severity.MINOR
    return _build_observation(
        at, IncidentKind.DRILL, severity, Blame.MONITOR, detail, at.run_id, str(failed), title=title
    )


def build_hallucination_observation(
    at: ObservationContext,
    *,
    entry_id: str,
    user_text: str,
    blocked_reply: str,
    reasons: Sequence[str],
    unsupported_claims: Sequence[str],
    settings: AlertSettings,
    chunk_count: int | None = None,
    top_score: float | None = None,
    policy_ids: Sequence[str] = (),
    place: str = "",
) -> Observation:
    """Build the observation of one entry of the application's own hallucination log.

    ``entry_id`` must stay the same if the log file is moved, because only one alert must be sent for each entry.
    ``place`` is the position of the entry in the log.
    """

    def shorten(text: str) -> Redacted | None:
        limit = settings.excerpt_characters
        return build_redacted_excerpt(text, limit=limit, account_patterns=at.account_patterns) or None

    support = [
        plural(chunk_count, "chunk") if chunk_count is not None else "",
        f"top score {top_score:.2f}" if top_score is not None else "",
        f"policy IDs: {', '.join(policy_ids)}" if policy_ids else "",
    ]
    detail = "; ".join(reasons) or "the app gives no reason"
    if any(support):
        detail += f" ({', '.join(piece for piece in support if piece)})"
    return _build_observation(
        at,
        IncidentKind.HALLUCINATION,
        Severity.CRITICAL,
        Blame.APP,
        f"{detail}; {place}" if place else detail,
        entry_id,
        asked=shorten(user_text),
        expected=shorten("; ".join(unsupported_claims)),
        answered=shorten(blocked_reply),
        policy_row=LOG_ROW,
        origin=Origin.LOG,
    )


def _build_observation(
    at: ObservationContext,
    kind: IncidentKind,
    severity: Severity,
    blame: Blame,
    detail: str,
    *parts: str,
    title: str = "",
    failed: FailedCases | None = None,
    verdict_reasons: tuple[str, ...] = (),
    asked: Redacted | None = None,
    expected: Redacted | None = None,
    answered: Redacted | None = None,
    policy_row: str | None = None,
    origin: Origin = Origin.PROBE,
) -> Observation:
    """Build an observation that is not about a case. ``parts`` distinguishes faults of the same kind."""
    cases = failed or FailedCases()
    return Observation(
        fingerprint=compute_fingerprint(at.target, kind, *parts),
        kind=kind,
        target=at.target,
        run_id=at.run_id,
        seen_at=at.seen_at,
        severity=severity,
        blame=blame,
        commit=at.commit,
        owner=at.owner,
        title=build_redacted_excerpt(title or KIND_WORDS[kind], limit=MAX_REASON_CHARACTERS),
        reason=make_excerpt_with_unmasked_address(
            detail or KIND_WORDS[kind],
            at.address,
            limit=MAX_REASON_CHARACTERS,
            account_patterns=at.account_patterns,
        ),
        address=at.address,
        asked=asked,
        expected=expected,
        answered=answered,
        policy_row=policy_row,
        origin=origin,
        examples=cases.examples,
        others=cases.others,
        failed_cases=cases.failed_cases,
        right_answers=cases.right_answers,
        cases_with_alerts=cases.cases_with_alerts,
        verdict_reasons=verdict_reasons,
    )


MAX_CASE_REASON_CHARACTERS: Final = 300
MAX_UNGRADED_NAMED: Final = 3


def build_severe_failure_observations(
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
    """Build an observation for each failed case of severity ``settings.alert_severity`` or higher.

    A case counts as failed if the application caused the failure, or if the rules pass the answer and a judge fails
    it. If a case was asked several times, the worst result counts. Texts are redacted and shortened. ``flaky`` maps
    the id of each flaky case to a text about its results.
    """
    worst: dict[str, Observation] = {}
    for result in results:
        case, assessment = result.case, result.assessment
        is_disputed = assessment.is_disputed and assessment.severity >= settings.alert_severity
        if not (is_disputed or _needs_own_alert(assessment, settings)):
            continue
        kind = next(iter(assessment.failure_kinds), None)
        check = assessment.reason
        if kind is not None:
            grade = next(_select_grades_of_kind(assessment, kind), None)
            is_reasoned = grade is not None and bool(grade.reason.strip())
            check = f"{grade.grader}: {grade.reason}" if grade and is_reasoned else check or kind.value
        texts = _build_excerpts(result, kind, settings.excerpt_characters, account_patterns)
        title = FAILURE_TITLES[kind] if kind else DISPUTED_TITLE
        observation = Observation(
            fingerprint=compute_fingerprint(
                target, IncidentKind.CASE_FAILURE, case.id, kind.value if kind else DISPUTED
            ),
            kind=IncidentKind.CASE_FAILURE,
            target=target,
            run_id=run_id,
            seen_at=seen_at,
            severity=assessment.severity,
            blame=Blame.APP,
            failure_kind=kind,
            case_id=case.id,
            right_answers=((case.id, case.question_and_answer_sha256),),
            policy_row=assessment.policy_row,
            commit=commit,
            title=build_redacted_excerpt(
                title, limit=settings.excerpt_characters, account_patterns=account_patterns
            ),
            asked=texts.asked,
            expected=texts.expected,
            answered=texts.answered,
            reason=build_redacted_excerpt(
                check, limit=MAX_CASE_REASON_CHARACTERS, account_patterns=account_patterns
            ),
            unconfirmed=assessment.unconfirmed,
            flaky=flaky.get(case.id, "") if flaky else "",
            origin=result.result.origin,
            is_report=case.triage is not None,
        )
        worst_so_far = worst.get(observation.fingerprint)
        if worst_so_far is None or observation.severity > worst_so_far.severity:
            worst[observation.fingerprint] = observation
    return tuple(worst.values())


def select_failed_cases_for_message(
    results: Sequence[CaseResult],
    *,
    settings: AlertSettings,
    account_patterns: Sequence[str] = (),
    named_before: Collection[str] = (),
) -> FailedCases:
    """Select the failed cases for the message about a failed gate: some with their texts, all others by their ids.

    At most ``settings.group_limit`` cases are selected with their texts. Cases that have their own alert are never
    among them. ``named_before`` contains the ids of the cases in earlier messages. All other cases are selected
    first.
    """
    failures = [
        r for r in results if r.assessment.outcome is CaseOutcome.FAILED and r.assessment.blame is Blame.APP
    ]
    failures.sort(key=lambda r: -r.assessment.severity)
    worst = tuple({result.case.id: result for result in reversed(failures)}.values())[::-1]
    with_alerts = tuple(r.case.id for r in worst if _needs_own_alert(r.assessment, settings))
    without_alert = sorted(
        (r for r in worst if r.case.id not in with_alerts), key=lambda r: r.case.id in named_before
    )
    examples: list[FailedCase] = []
    for result in without_alert[: settings.group_limit]:
        kind = result.assessment.failure_kinds[0]
        texts = _build_excerpts(result, kind, settings.excerpt_characters, account_patterns)
        examples.append(
            FailedCase(
                case_id=result.case.id,
                severity=result.assessment.severity,
                title=build_redacted_excerpt(FAILURE_TITLES[kind], limit=MAX_CASE_REASON_CHARACTERS),
                asked=texts.asked,
                expected=texts.expected,
                answered=texts.answered,
                is_report=result.case.triage is not None,
            )
        )
    # The other cases: ``2 more cases failed: a, b.``. If an earlier message named all of them, a note says so.
    others, unshown = "", [result.case.id for result in without_alert[settings.group_limit :]]
    if unshown:
        count = (
            "Failed before too"
            if set(unshown) <= set(named_before)
            else f"{plural(len(unshown), 'more case')} failed"
        )
        others = f"{count}: {format_ids(unshown)}."
    return FailedCases(
        examples=tuple(examples),
        others=others,
        failed_cases=tuple(result.case.id for result in worst),
        right_answers=tuple((result.case.id, result.case.question_and_answer_sha256) for result in worst),
        cases_with_alerts=with_alerts,
    )


def _needs_own_alert(assessment: Assessment, settings: AlertSettings) -> bool:
    is_failure = assessment.outcome is CaseOutcome.FAILED and assessment.blame is Blame.APP
    return is_failure and assessment.severity >= settings.alert_severity


DISPUTED: Final = "disputed"
"""Stands in a fingerprint in place of the failure kind, if the rules pass an answer and a judge fails it."""


EMPTY_REPORT: Final = "(empty)"
_KINDS_ANYWHERE_IN_REPORT: Final = frozenset(
    {FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION, FailureKind.ERROR_LEAK}
)
"""Failure kinds that can occur anywhere in an agent's report. All other kinds are about the report's root cause."""


class _Excerpts(NamedTuple):
    asked: Redacted | None
    expected: Redacted | None
    answered: Redacted | None


def _build_excerpts(
    result: CaseResult, kind: FailureKind | None, limit: int, account_patterns: Sequence[str]
) -> _Excerpts:
    """Return excerpts of the question, the expected answer and the answer, redacted and shortened.

    The excerpt of the answer shows the evidence of the failure. For an agent's report on an issue, the texts are
    the issue, the reference and the root cause in the report.
    """
    case, response = result.case, result.result
    answered = response.graded_text if isinstance(response, Exchange) else response.partial_text
    evidence_at: int | None = None
    if isinstance(response, Exchange) and kind is not None:
        spans = (span for grade in _select_grades_of_kind(result.assessment, kind) for span in grade.evidence)
        evidence_at = next((span.start for span in spans if span.where == response.graded_channel), None)

    if case.triage is None:
        asked = case.question
        expected = f"A refusal: {case.gold}" if case.expected_refusal else case.gold
        if case.expected_citation:
            expected += f" [cites {case.expected_citation}]"
    else:
        issue, reference = case.triage.issue, case.triage.reference
        asked = f"{issue.title}: {issue.body}" if issue.body.strip() else issue.title
        parts = (
            reference.root_cause,
            f"in {', '.join(reference.relevant_files)}" if reference.relevant_files else "",
            f"severity {reference.severity}" if reference.severity else "",
        )
        expected = "; ".join(part for part in parts if part) or case.gold
        if kind not in _KINDS_ANYWHERE_IN_REPORT:
            answered, evidence_at = read_report(answered).root_cause or answered.strip() or EMPTY_REPORT, None

    shorten = partial(
        build_redacted_excerpt, limit=limit, account_patterns=account_patterns, suite=collect_case_texts([case])
    )
    return _Excerpts(
        asked=shorten(asked) or None,
        expected=shorten(expected) or None,
        answered=shorten(answered, evidence_at=evidence_at) or None,
    )


def _select_grades_of_kind(assessment: Assessment, kind: FailureKind) -> Iterator[Judged]:
    for grade in assessment.grades:
        if isinstance(grade, Judged) and grade.failure_kind is kind:
            yield grade
