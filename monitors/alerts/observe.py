"""What a run observed: each fault with its fingerprint.

Two observations with one fingerprint are the same fault. A run's failed cases become observations of those that a
person must hear of one by one; the run's verdict, the app's state, the judge and the monitor give observations of
their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from json.encoder import encode_basestring_ascii
from typing import Final, NamedTuple

from monitors.alerts.redact import excerpt, excerpt_but
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import DISPUTED_TITLE, FAILURE_TITLES, KIND_WORDS, some_of
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


def fingerprint(target: str, kind: IncidentKind, *parts: str) -> Sha256:
    """SHA-256 over target, kind and what distinguishes faults of that kind (case id and failure kind, say).

    Neither run nor commit nor the wording of an answer may be among ``parts``: the same fault must have the same
    fingerprint in every run. JSON keeps ``("a", "bc")`` and ``("ab", "c")`` apart.
    """
    canonical = f"[{', '.join(map(encode_basestring_ascii, (target, kind.value, *parts)))}]"  # as json.dumps has it
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


LOG_REASON_CHARACTERS: Final = 500


class ObservationContext(Record):
    """When and where something was seen: what every observation starts with."""

    target: str
    run_id: str
    seen_at: datetime
    commit: str | None = None
    account_patterns: tuple[str, ...] = ()
    owner: Capability = Capability.VERIFY
    address: str = ""
    """Where the target is configured to be, ``http://host:port``: no secret of the application's."""


def app_down(at: ObservationContext, *, detail: str, title: str = "") -> Observation:
    """The application does not answer: unreachable, or the run stopped early because nothing came back.

    ``title`` is the message's first line where the kind's own words claim too much.
    """
    return _observe(at, IncidentKind.APP_DOWN, Severity.PAGE, Blame.APP, detail, title=title)


def deploy_failed(at: ObservationContext, *, detail: str) -> Observation:
    """The deploy did not come up: a build or runtime error, paused, or not serving until the deadline."""
    return _observe(at, IncidentKind.DEPLOY_FAILURE, Severity.PAGE, Blame.APP, detail)


class FailedCases(Record):
    """What a gate's message says of its failed cases, worst first: as the fields of `Observation` have it."""

    examples: tuple[FailedCase, ...] = ()
    others: str = ""
    failed_cases: tuple[Identifier, ...] = ()
    right_answers: tuple[tuple[Identifier, Sha256], ...] = ()
    cases_with_alerts: tuple[Identifier, ...] = ()


def gate_failed(report: RunReport, at: ObservationContext, failed: FailedCases | None = None) -> Observation:
    """A run whose verdict is FAIL. Severity 3 with a veto (some severity-3 case failed), else 2.

    ``failed`` is what `gate_examples` makes of its results.
    """
    decisive = [reason for reason in report.reasons if reason.decisive]
    is_vetoed = any(reason.kind is ReasonKind.VETO for reason in decisive)
    severity = Severity.PAGE if is_vetoed else Severity.WRONG
    texts: list[str] = []
    for reason in decisive:
        text = reason.text
        if reason.kind is ReasonKind.COVERAGE and reason.case_ids:  # nothing else of the message names them
            text += f" (not graded: {some_of(reason.case_ids, UNGRADED_NAMED)})"
        texts.append(text)
    return _observe(
        at,
        IncidentKind.GATE_FAIL,
        severity,
        Blame.APP,
        "; ".join(texts) or "the gate gave no reason",
        failed=failed,
        verdict_reasons=tuple(dict.fromkeys(reason.kind.value for reason in decisive)),
    )


def judge_void(at: ObservationContext, *, detail: str) -> Observation:
    """The judge missed its canaries: its grades of this batch are void, which says nothing about the app."""
    return _observe(at, IncidentKind.JUDGE_VOID, Severity.WRONG, Blame.PROVIDER, detail)


def drift(
    at: ObservationContext,
    *,
    metric: str,
    detail: str,
    asked: Redacted | None = None,
    answered: Redacted | None = None,
) -> Observation:
    """A rate moved against its trailing window. ``metric`` names which; ``detail`` says how far and since when.

    ``asked`` and ``answered`` are those of an example.
    """
    return _observe(
        at, IncidentKind.DRIFT, Severity.WRONG, Blame.APP, detail, metric, asked=asked, answered=answered
    )


def monitor_fault(at: ObservationContext, *, what: str, detail: str, title: str = "") -> Observation:
    """The monitor is in trouble. ``what`` is the fault's stable name (``WarehouseDamaged``, ``hung_run``).

    ``title`` is the message's first line where more can be said than the kind's own words.
    """
    return _observe(at, IncidentKind.MONITOR_FAULT, Severity.WRONG, Blame.MONITOR, detail, what, title=title)


def drill(at: ObservationContext, *, title: str, detail: str, failed: bool) -> Observation:
    """What came of a drill: ``title`` is the message's first line. Each drill is an incident of its own."""
    severity = Severity.PAGE if failed else Severity.ANNOYING
    return _observe(at, IncidentKind.DRILL, severity, Blame.MONITOR, detail, at.run_id, str(failed), title=title)


def hallucination(
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
    """One entry of the application's own hallucination log.

    ``entry_id`` is what makes the entry this one wherever its file is moved to (a hash of the line, say): each
    sends one alert. ``place`` says in words where it stands.
    """

    def shorten(text: str) -> Redacted | None:
        limit = settings.excerpt_characters
        return excerpt(text, limit=limit, account_patterns=at.account_patterns) or None

    support = [
        f"{chunk_count} chunks" if chunk_count is not None else "",
        f"top score {top_score:.2f}" if top_score is not None else "",
        f"policies {', '.join(policy_ids)}" if policy_ids else "",
    ]
    detail = "; ".join(reasons) or "the app gave no reason"
    if any(support):
        detail += f" ({', '.join(piece for piece in support if piece)})"
    return _observe(
        at,
        IncidentKind.HALLUCINATION,
        Severity.PAGE,
        Blame.APP,
        f"{detail}; {place}" if place else detail,
        entry_id,
        asked=shorten(user_text),
        expected=shorten("; ".join(unsupported_claims)),
        answered=shorten(blocked_reply),
        policy_row=LOG_ROW,
        origin=Origin.LOG,
    )


def _observe(
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
    """An observation that is about no case; ``parts`` distinguish faults of one kind."""
    cases = failed or FailedCases()
    return Observation(
        fingerprint=fingerprint(at.target, kind, *parts),
        kind=kind,
        target=at.target,
        run_id=at.run_id,
        seen_at=at.seen_at,
        severity=severity,
        blame=blame,
        commit=at.commit,
        owner=at.owner,
        title=excerpt(title or KIND_WORDS[kind], limit=LOG_REASON_CHARACTERS),
        reason=excerpt_but(
            detail or KIND_WORDS[kind],
            at.address,
            limit=LOG_REASON_CHARACTERS,
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


CASE_REASON_CHARACTERS: Final = 300
UNGRADED_NAMED: Final = 3


def observe_cases(
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

    Only failures the app is to blame for count, and answers that rules pass and a judge fails. A case that was
    asked several times is one observation, its worst. Texts are redacted and cut; ``account_patterns`` are the
    target's own regular expressions. ``flaky`` says by case id how often a case was right that was right only
    sometimes.
    """
    worst: dict[str, Observation] = {}
    for result in results:
        case, assessment = result.case, result.assessment
        is_disputed = assessment.is_disputed and assessment.severity >= settings.page_severity
        if not (is_disputed or _has_own_alert(assessment, settings)):
            continue
        kind = next(iter(assessment.failure_kinds), None)
        check = assessment.reason
        if kind is not None:
            grade = next(_failing_grades(assessment, kind), None)
            is_reasoned = grade is not None and bool(grade.reason.strip())
            check = f"{grade.grader}: {grade.reason}" if grade and is_reasoned else check or kind.value
        texts = _excerpts_of(result, kind, settings.excerpt_characters, account_patterns)
        title = FAILURE_TITLES[kind] if kind else DISPUTED_TITLE
        observation = Observation(
            fingerprint=fingerprint(target, IncidentKind.CASE_FAILURE, case.id, kind.value if kind else DISPUTED),
            kind=IncidentKind.CASE_FAILURE,
            target=target,
            run_id=run_id,
            seen_at=seen_at,
            severity=assessment.severity,
            blame=Blame.APP,
            failure_kind=kind,
            case_id=case.id,
            right_answers=((case.id, case.right_answer_sha256),),
            policy_row=assessment.policy_row,
            commit=commit,
            title=excerpt(title, limit=settings.excerpt_characters, account_patterns=account_patterns),
            asked=texts.asked,
            expected=texts.expected,
            answered=texts.answered,
            reason=excerpt(check, limit=CASE_REASON_CHARACTERS, account_patterns=account_patterns),
            unconfirmed=assessment.unconfirmed,
            flaky=flaky.get(case.id, "") if flaky else "",
            origin=result.result.origin,
            is_report=case.triage is not None,
        )
        other = worst.get(observation.fingerprint)
        if other is None or observation.severity > other.severity:
            worst[observation.fingerprint] = observation
    return tuple(worst.values())


def gate_examples(
    results: Sequence[CaseResult],
    *,
    settings: AlertSettings,
    account_patterns: Sequence[str] = (),
    known: Collection[str] = (),
) -> FailedCases:
    """The failed cases: the worst in full that have no message of their own, and in words which others failed.

    As many as ``settings.group_limit``, those first that are not ``known`` from an earlier message, then the worst,
    then in the order of ``results``; a case that was asked several times is named once. A gate that fails over a
    wrong price has to say which price.
    """
    failures = [
        r for r in results if r.assessment.outcome is CaseOutcome.FAILED and r.assessment.blame is Blame.APP
    ]
    failures.sort(key=lambda r: -r.assessment.severity)
    worst = tuple({result.case.id: result for result in reversed(failures)}.values())[::-1]
    with_alerts = tuple(r.case.id for r in worst if _has_own_alert(r.assessment, settings))
    mild = sorted((r for r in worst if r.case.id not in with_alerts), key=lambda r: r.case.id in known)
    examples: list[FailedCase] = []
    for result in mild[: settings.group_limit]:
        kind = result.assessment.failure_kinds[0]
        texts = _excerpts_of(result, kind, settings.excerpt_characters, account_patterns)
        examples.append(
            FailedCase(
                case_id=result.case.id,
                severity=result.assessment.severity,
                title=excerpt(FAILURE_TITLES[kind], limit=CASE_REASON_CHARACTERS),
                asked=texts.asked,
                expected=texts.expected,
                answered=texts.answered,
                is_report=result.case.triage is not None,
            )
        )
    # The others in words: ``2 more cases failed: a, b.``, or that they failed before where a message has named all.
    others, rest = "", [result.case.id for result in mild[settings.group_limit :]]
    if rest:
        count = "Failed before too" if set(rest) <= set(known) else f"{plural(len(rest), 'more case')} failed"
        others = f"{count}: {some_of(rest)}."
    return FailedCases(
        examples=tuple(examples),
        others=others,
        failed_cases=tuple(result.case.id for result in worst),
        right_answers=tuple((result.case.id, result.case.right_answer_sha256) for result in worst),
        cases_with_alerts=with_alerts,
    )


def _has_own_alert(assessment: Assessment, settings: AlertSettings) -> bool:
    is_failure = assessment.outcome is CaseOutcome.FAILED and assessment.blame is Blame.APP
    return is_failure and assessment.severity >= settings.page_severity


DISPUTED: Final = "disputed"
"""What distinguishes an answer on which rules and judge disagree from a failure of the same case."""


EMPTY_REPORT: Final = "(empty)"
_ANYWHERE: Final = frozenset({FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION, FailureKind.ERROR_LEAK})
"""What is wrong in these ways may stand anywhere in an agent's report."""


class _Excerpts(NamedTuple):
    asked: Redacted | None
    expected: Redacted | None
    answered: Redacted | None


def _excerpts_of(
    result: CaseResult, kind: FailureKind | None, limit: int, account_patterns: Sequence[str]
) -> _Excerpts:
    """What was asked, expected and answered, redacted and cut; the answer near the evidence that it is wrong.

    Of a report on an issue: the issue's title and text (its address says nothing to a reader), what is known about
    it, and the root cause that the report gives.
    """
    case, response = result.case, result.result
    answered = response.graded_text if isinstance(response, Exchange) else response.partial_text
    around: int | None = None
    if isinstance(response, Exchange) and kind is not None:
        spans = (span for grade in _failing_grades(result.assessment, kind) for span in grade.evidence)
        around = next((span.start for span in spans if span.where == response.graded_channel), None)

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
        if kind not in _ANYWHERE:
            answered, around = read_report(answered).root_cause or answered.strip() or EMPTY_REPORT, None

    return _Excerpts(
        asked=excerpt(asked, limit=limit, account_patterns=account_patterns) or None,
        expected=excerpt(expected, limit=limit, account_patterns=account_patterns) or None,
        answered=excerpt(answered, limit=limit, account_patterns=account_patterns, around=around) or None,
    )


def _failing_grades(assessment: Assessment, kind: FailureKind) -> Iterator[Judged]:
    for grade in assessment.grades:
        if isinstance(grade, Judged) and grade.failure_kind is kind:
            yield grade
