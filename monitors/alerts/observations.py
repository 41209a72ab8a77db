"""What a run observed: each fault with its fingerprint.

Two observations with one fingerprint are the same fault. A run's failed cases become observations of those that a
person must hear of one by one; the run's verdict, the app's state, the judge and the monitor give observations of
their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from json.encoder import encode_basestring_ascii
from typing import Final

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
from monitors.records.runs import CaseResult, ReasonKind, RunReport, VerdictReason
from monitors.records.triage import TriageReference


def fingerprint(target: str, kind: IncidentKind, *parts: str) -> Sha256:
    """SHA-256 over target, kind and what distinguishes faults of that kind (case id and failure kind, say).

    Neither run nor commit nor the wording of an answer may be among ``parts``: the same fault must have the same
    fingerprint in every run. JSON keeps ``("a", "bc")`` and ``("ab", "c")`` apart.
    """
    canonical = f"[{', '.join(map(encode_basestring_ascii, (target, kind.value, *parts)))}]"  # as json.dumps has it
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _right_answers(results: Iterable[CaseResult]) -> tuple[tuple[Identifier, Sha256], ...]:
    return tuple({result.case.id: result.case.right_answer_sha256 for result in results}.items())


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
    return _titled(_observation(at, IncidentKind.APP_DOWN, Severity.PAGE, Blame.APP, detail), title)


def deploy_failed(at: ObservationContext, *, detail: str) -> Observation:
    """The deploy did not come up: a build or runtime error, paused, or not serving until the deadline."""
    return _observation(at, IncidentKind.DEPLOY_FAILURE, Severity.PAGE, Blame.APP, detail)


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
    vetoed = any(reason.kind is ReasonKind.VETO for reason in decisive)
    severity = Severity.PAGE if vetoed else Severity.WRONG
    seen = _observation(at, IncidentKind.GATE_FAIL, severity, Blame.APP, _why(decisive))
    kinds = tuple(dict.fromkeys(reason.kind.value for reason in decisive))
    return seen.model_copy(update={**dict(failed or FailedCases()), "verdict_reasons": kinds})


def judge_void(at: ObservationContext, *, detail: str) -> Observation:
    """The judge missed its canaries: its grades of this batch are void, which says nothing about the app."""
    return _observation(at, IncidentKind.JUDGE_VOID, Severity.WRONG, Blame.PROVIDER, detail)


def drift(at: ObservationContext, *, metric: str, detail: str) -> Observation:
    """A rate moved against its trailing window. ``metric`` names which; ``detail`` says how far and since when."""
    return _observation(at, IncidentKind.DRIFT, Severity.WRONG, Blame.APP, detail, metric)


def monitor_fault(at: ObservationContext, *, what: str, detail: str, title: str = "") -> Observation:
    """The monitor is in trouble. ``what`` is the fault's stable name (``WarehouseDamaged``, ``hung_run``).

    ``title`` is the message's first line where more can be said than the kind's own words.
    """
    fault = _observation(at, IncidentKind.MONITOR_FAULT, Severity.WRONG, Blame.MONITOR, detail, what)
    return _titled(fault, title)


def _titled(seen: Observation, title: str) -> Observation:
    return seen.model_copy(update={"title": excerpt(title, limit=LOG_REASON_CHARACTERS)}) if title else seen


def drill(at: ObservationContext, *, title: str, detail: str, failed: bool) -> Observation:
    """What came of a drill: ``title`` is the message's first line. Each drill is an incident of its own."""
    severity = Severity.PAGE if failed else Severity.ANNOYING
    seen = _observation(at, IncidentKind.DRILL, severity, Blame.MONITOR, detail, at.run_id, str(failed))
    return seen.model_copy(update={"title": excerpt(title, limit=LOG_REASON_CHARACTERS)})


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

    def short(text: str) -> Redacted:
        return excerpt(text, limit=settings.excerpt_characters, account_patterns=at.account_patterns)

    grounds = "; ".join(reasons) or "the app gave no reason"
    detail = grounds + _support(chunk_count, top_score, policy_ids) + (f"; {place}" if place else "")
    seen = _observation(at, IncidentKind.HALLUCINATION, Severity.PAGE, Blame.APP, detail, entry_id)
    shown = _LogEntryParts(
        asked=short(user_text) or None,
        expected=short("; ".join(unsupported_claims)) or None,
        answered=short(blocked_reply) or None,
        policy_row=LOG_ROW,
    )
    return seen.model_copy(update=dict(shown))


class _LogEntryParts(Record):
    """What an entry of the log adds to an observation. ``expected`` are the claims that nothing supports."""

    asked: Redacted | None
    expected: Redacted | None
    answered: Redacted | None
    policy_row: str
    origin: Origin = Origin.LOG


def _support(chunk_count: int | None, top_score: float | None, policy_ids: Sequence[str]) -> str:
    known = [
        f"{chunk_count} chunks" if chunk_count is not None else "",
        f"top score {top_score:.2f}" if top_score is not None else "",
        f"policies {', '.join(policy_ids)}" if policy_ids else "",
    ]
    found = ", ".join(piece for piece in known if piece)
    return f" ({found})" if found else ""


def _why(decisive: Sequence[VerdictReason]) -> str:
    return "; ".join(map(_reason, decisive)) or "the gate gave no reason"


def _reason(reason: VerdictReason) -> str:
    """With the first cases that were not graded: nothing else of the message names them."""
    if reason.kind is not ReasonKind.COVERAGE or not reason.case_ids:
        return reason.text
    return f"{reason.text} (not graded: {some_of(reason.case_ids, UNGRADED_NAMED)})"


def _observation(
    at: ObservationContext, kind: IncidentKind, severity: Severity, blame: Blame, detail: str, *parts: str
) -> Observation:
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
        title=excerpt(KIND_WORDS[kind], limit=LOG_REASON_CHARACTERS),
        reason=excerpt_but(
            detail or KIND_WORDS[kind],
            at.address,
            limit=LOG_REASON_CHARACTERS,
            account_patterns=at.account_patterns,
        ),
        address=at.address,
    )


CASE_REASON_CHARACTERS: Final = 300
UNGRADED_NAMED: Final = 3


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

    Only failures the app is to blame for count, and answers that rules pass and a judge fails. A case that was
    asked several times is one observation, its worst. Texts are redacted and cut; ``account_patterns`` are the
    target's own regular expressions. ``flaky`` says by case id how often a case was right that was right only
    sometimes.
    """
    worst: dict[str, Observation] = {}
    for result in results:
        if not (_has_own_alert(result.assessment, settings) or _is_disputed(result.assessment, settings)):
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
    failed = sorted((r for r in results if _is_failure(r.assessment)), key=lambda r: -r.assessment.severity)
    worst = tuple({result.case.id: result for result in reversed(failed)}.values())[::-1]
    alone = tuple(r.case.id for r in worst if _has_own_alert(r.assessment, settings))
    mild = sorted((r for r in worst if r.case.id not in alone), key=lambda r: r.case.id in known)
    shown, rest = mild[: settings.group_limit], mild[settings.group_limit :]
    return FailedCases(
        examples=tuple(_named(result, settings, account_patterns) for result in shown),
        others=_others([r.case.id for r in rest], known),
        failed_cases=tuple(result.case.id for result in worst),
        right_answers=_right_answers(worst),
        cases_with_alerts=alone,
    )


def _named(result: CaseResult, settings: AlertSettings, account_patterns: Sequence[str]) -> FailedCase:
    kind = result.assessment.failure_kinds[0]

    def short(text: str, around: int | None = None) -> Redacted | None:
        limit = settings.excerpt_characters
        return excerpt(text, limit=limit, account_patterns=account_patterns, around=around) or None

    return FailedCase(
        case_id=result.case.id,
        severity=result.assessment.severity,
        title=excerpt(FAILURE_TITLES[kind], limit=CASE_REASON_CHARACTERS),
        asked=short(_asked(result)),
        expected=short(_expected(result)),
        answered=short(*_answer(result, kind)),
        is_report=result.case.triage is not None,
    )


def _others(ids: Sequence[str], known: Collection[str]) -> str:
    """``2 more cases failed: a, b.``, or ``Failed before too: a, b.`` where a message has named them all."""
    if not ids:
        return ""
    which = "Failed before too" if set(ids) <= set(known) else f"{plural(len(ids), 'more case')} failed"
    return f"{which}: {some_of(ids)}."


def _is_failure(assessment: Assessment) -> bool:
    return assessment.outcome is CaseOutcome.FAILED and assessment.blame is Blame.APP


def _has_own_alert(assessment: Assessment, settings: AlertSettings) -> bool:
    return _is_failure(assessment) and assessment.severity >= settings.page_severity


def _is_disputed(assessment: Assessment, settings: AlertSettings) -> bool:
    return assessment.is_disputed and assessment.severity >= settings.page_severity


DISPUTED: Final = "disputed"
"""What distinguishes an answer on which rules and judge disagree from a failure of the same case."""


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
    kind = next(iter(assessment.failure_kinds), None)

    def short(text: str, around: int | None = None, limit: int = limit) -> Redacted:
        return excerpt(text, limit=limit, account_patterns=account_patterns, around=around)

    return Observation(
        fingerprint=fingerprint(target, IncidentKind.CASE_FAILURE, case.id, kind.value if kind else DISPUTED),
        kind=IncidentKind.CASE_FAILURE,
        target=target,
        run_id=run_id,
        seen_at=seen_at,
        severity=assessment.severity,
        blame=Blame.APP,
        failure_kind=kind,
        case_id=case.id,
        right_answers=_right_answers([result]),
        policy_row=assessment.policy_row,
        commit=commit,
        title=short(FAILURE_TITLES[kind] if kind else DISPUTED_TITLE),
        asked=short(_asked(result)) or None,
        expected=short(_expected(result)) or None,
        answered=short(*_answer(result, kind)) or None,
        reason=short(_which_check(assessment, kind) if kind else assessment.reason, limit=CASE_REASON_CHARACTERS),
        unconfirmed=assessment.unconfirmed,
        origin=result.result.origin,
        is_report=case.triage is not None,
    )


def _asked(result: CaseResult) -> str:
    """The question, or an issue's title and text: its address says nothing to a reader."""
    task = result.case.triage
    if task is None:
        return result.case.question
    return f"{task.issue.title}: {task.issue.body}" if task.issue.body.strip() else task.issue.title


def _expected(result: CaseResult) -> str:
    case = result.case
    if case.triage is not None:
        return _known(case.triage.reference) or case.gold
    text = f"A refusal: {case.gold}" if case.expected_refusal else case.gold
    return f"{text} [cites {case.expected_citation}]" if case.expected_citation else text


def _known(reference: TriageReference) -> str:
    """What is known about an issue, in one line: ``the lock is never released; in a.py, b.py; severity high``."""
    parts = (
        reference.root_cause,
        f"in {', '.join(reference.relevant_files)}" if reference.relevant_files else "",
        f"severity {reference.severity}" if reference.severity else "",
    )
    return "; ".join(part for part in parts if part)


def _answer(result: CaseResult, kind: FailureKind | None) -> tuple[str, int | None]:
    """What came back, and where in it the evidence stands.

    Of a report on an issue it is the root cause that it gives, unless what is wrong may stand anywhere in it.
    """
    came = result.result
    text = came.graded_text if isinstance(came, Exchange) else came.partial_text
    if result.case.triage is None or kind in _ANYWHERE:
        return text, _evidence_start(result, kind)
    return read_report(text).root_cause or text.strip() or EMPTY_REPORT, None


EMPTY_REPORT: Final = "(empty)"
_ANYWHERE: Final = frozenset({FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION, FailureKind.ERROR_LEAK})


def _failing(assessment: Assessment, kind: FailureKind) -> Iterator[Judged]:
    for grade in assessment.grades:
        if isinstance(grade, Judged) and grade.failure_kind is kind:
            yield grade


def _which_check(assessment: Assessment, kind: FailureKind) -> str:
    grade = next(_failing(assessment, kind), None)
    return f"{grade.grader}: {grade.reason}" if grade and grade.reason.strip() else assessment.reason or kind.value


def _evidence_start(result: CaseResult, kind: FailureKind | None) -> int | None:
    came = result.result
    if not isinstance(came, Exchange) or kind is None:
        return None
    spans = (span for grade in _failing(result.assessment, kind) for span in grade.evidence)
    return next((span.start for span in spans if span.where == came.graded_channel), None)
