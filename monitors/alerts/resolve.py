"""Resolves incidents after a run, and formats the text of the recovery message.

A run resolves an incident only if the run could have seen the fault and did not see it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Final

from monitors.alerts.redact import redact
from monitors.alerts.wording import ABOUT_THE_MONITOR, format_ids, has_own_title
from monitors.records.base import Blame, Identifier, Record, Sha256, UtcTime
from monitors.records.exchanges import Exchange
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import AlertItem, Capability, Incident, IncidentKind, NotifyReason, Observation
from monitors.records.runs import CaseResult

GRADED_OUTCOMES = frozenset({CaseOutcome.CORRECT, CaseOutcome.FAILED})


MAX_CLOCK_LEAD: Final = timedelta(minutes=10)
"""If a fault was last seen more than this time after the end of a run, the clock was probably set back.

The run can then still resolve the incident.
"""


class ResolutionScope(Record):
    """What one finished run has checked on one target, which determines the incidents that the run resolves.

    - ``graded`` are the cases that were answered and graded every time.
    - ``passed`` are the graded cases that were correct every time.
    - ``cleared`` are other kinds of faults that the run proved absent. For example, an answer proves that the
      application is not down.
    """

    target: Identifier
    run_id: Identifier
    began_at: UtcTime
    ended_at: UtcTime
    commit: Identifier | None = None
    graded: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    right_answers: tuple[tuple[Identifier, Sha256], ...] = ()
    """Hashes of the right answers of the cases that passed (`GoldCase.question_and_answer_sha256`)."""
    cleared: frozenset[IncidentKind] = frozenset()
    owner: Capability = Capability.VERIFY
    """The part of Lookout that ran. This part cannot resolve internal faults that another part reported."""
    text: str | None = None
    """The text of the recovery message, or ``None`` for the usual text."""
    reason: NotifyReason = NotifyReason.RECOVERED

    def narrow_to(
        self,
        *,
        text: str,
        cases: Collection[str] = (),
        cleared: Collection[IncidentKind] = (),
        reason: NotifyReason = NotifyReason.RECOVERED,
    ) -> ResolutionScope:
        """Return a scope that resolves only incidents of these ``cases`` and of the kinds in ``cleared``.

        ``text`` is the recovery message.
        """
        return ResolutionScope(
            target=self.target,
            run_id=self.run_id,
            began_at=self.began_at,
            ended_at=self.ended_at,
            commit=self.commit,
            graded=frozenset(cases),
            passed=frozenset(cases),
            right_answers=self.right_answers,
            cleared=frozenset(cleared),
            owner=self.owner,
            text=text,
            reason=reason,
        )

    def can_resolve(self, incident: Incident) -> bool:
        """Return whether this run proves that the fault has ended.

        The caller checks that the run did not see the fault. The result is true if the incident's case was graded,
        or if the incident's kind is in ``cleared``. The result is false in any of these cases:

        - The incident is already resolved, or is about another target.
        - The incident is an internal fault that another part of Lookout reported.
        - Another run has seen the fault since this run began.
        """
        if incident.target != self.target or incident.is_resolved:
            return False
        if incident.kind is IncidentKind.MONITOR_FAULT and incident.owner is not self.owner:
            return False
        seen_since = self.began_at <= incident.last_seen_at <= self.ended_at + MAX_CLOCK_LEAD
        if seen_since and incident.last_run_id != self.run_id:
            return False
        if incident.kind is IncidentKind.CASE_FAILURE:
            return incident.case_id in self.graded
        return incident.kind in self.cleared


def build_resolution_scope(
    results: Sequence[CaseResult],
    *,
    target: str,
    run_id: str,
    began_at: UtcTime,
    ended_at: UtcTime,
    commit: str | None = None,
    cleared: Iterable[IncidentKind] = (),
) -> ResolutionScope:
    """Build the scope of a finished run.

    One answer of the application also clears ``APP_DOWN`` and ``DEPLOY_FAILURE``. The caller passes all other
    cleared kinds in ``cleared``, for example ``GATE_FAIL`` after the verdict PASS.
    """
    answered = any(isinstance(result.result, Exchange) for result in results)
    cleared_by_answer = {IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE} if answered else set[IncidentKind]()
    ungraded = {r.case.id for r in results if r.assessment.outcome not in GRADED_OUTCOMES}
    graded = {r.case.id for r in results} - ungraded
    failed = {r.case.id for r in results if r.assessment.outcome is CaseOutcome.FAILED}
    return ResolutionScope(
        target=target,
        run_id=run_id,
        began_at=began_at,
        ended_at=ended_at,
        commit=commit,
        graded=frozenset(graded),
        passed=frozenset(graded - failed),
        right_answers=tuple(
            {r.case.id: r.case.question_and_answer_sha256 for r in results if r.case.id in graded - failed}.items()
        ),
        cleared=frozenset(cleared) | cleared_by_answer,
    )


CLEARED_WORDS: Final[dict[IncidentKind, str]] = {
    IncidentKind.CASE_FAILURE: "Lookout asked again. This fault did not occur.",
    IncidentKind.HALLUCINATION: "Closed, because the fault did not occur again.",
    IncidentKind.DEPLOY_FAILURE: "The application is available again.",
    IncidentKind.APP_DOWN: "The application answers again.",
    IncidentKind.DRIFT: "The drift test no longer finds a drift.",
    IncidentKind.JUDGE_VOID: "The judge grades the known answers correctly again.",
    IncidentKind.MONITOR_FAULT: "A run ended without this fault.",
    IncidentKind.DRILL: "The drill is over.",
}


ANSWERS_AGAIN: Final = "The application answered the questions of this run."
"""The reason in a recovery message after an outage that Lookout's own settings may have caused."""
LEFT_SUITE: Final = "This case is no longer in the suite, so Lookout cannot check it. The fault may still exist."

TARGET_REMOVED: Final = (
    "This target is no longer in the configuration, so Lookout cannot check it. The fault may still exist."
)


def build_recovery(incident: Incident, scope: ResolutionScope) -> AlertItem:
    """Build the recovery item of ``incident``. The caller decides whether the item sends an alert."""
    observation = Observation(
        fingerprint=incident.fingerprint,
        kind=incident.kind,
        target=incident.target,
        run_id=scope.run_id,
        seen_at=scope.ended_at,
        severity=incident.severity,
        blame=Blame.MONITOR if incident.kind in ABOUT_THE_MONITOR else Blame.APP,
        failure_kind=incident.failure_kind,
        case_id=incident.case_id,
        commit=scope.commit,
        title=incident.title,
        reason=redact(_format_recovery_reason(incident, scope)),
    )
    resolved = incident.resolve(scope.ended_at)
    return AlertItem(incident=resolved, observation=observation, reason=scope.reason)


def _format_recovery_reason(incident: Incident, scope: ResolutionScope) -> str:
    if scope.text is not None:
        return scope.text
    if incident.kind is IncidentKind.GATE_FAIL:
        failed = dict.fromkeys((*incident.notified_cases, *incident.failed_cases))
        right = [case for case in failed if case in scope.passed]
        now_right = f" ({format_ids(right)} {'is' if len(right) == 1 else 'are'} now correct)" if right else ""
        edited = [case for case in right if _has_changed_gold(incident, case, scope)]
        changed = (
            f" The expected answer of {format_ids(edited)} has changed, so the bot may still give the same answer."
            if edited
            else ""
        )
        return f"The gate passes again{now_right}.{changed}"
    if incident.kind is IncidentKind.APP_DOWN and has_own_title(incident):
        return ANSWERS_AGAIN
    if incident.kind is not IncidentKind.CASE_FAILURE:
        return CLEARED_WORDS[incident.kind]
    if incident.case_id in scope.passed:
        if _has_changed_gold(incident, incident.case_id, scope):
            return ANOTHER_GOLD
        return "Lookout asked again. The answer is now correct."
    return CLEARED_WORDS[incident.kind] + " The case still fails for another reason."


ANOTHER_GOLD: Final = (
    "The answer is now correct, but the expected answer in the suite has changed. The bot may still give the same "
    "answer as before."
)


def _has_changed_gold(incident: Incident, case_id: str, scope: ResolutionScope) -> bool:
    before, now = dict(incident.right_answers).get(case_id), dict(scope.right_answers).get(case_id)
    return before is not None and now is not None and before != now
