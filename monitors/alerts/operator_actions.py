"""Computes the effects of operator actions: acknowledge, mark as a false alarm, draft a gold case, resolve.

This module stores nothing. A drafted gold case is redacted and has a proposed severity. A person accepts or rejects
the draft.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, assert_never

from monitors.alerts.redact import CONTEXT_MARGIN_CHARACTERS, redact
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import ABOUT_AN_ANSWER, format_doubt
from monitors.facts.language import identify_language
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.exchanges import Origin
from monitors.records.grades import format_policy_row
from monitors.records.incidents import (
    ActionKind,
    ActionVia,
    AlertItem,
    Incident,
    IncidentKind,
    IncidentState,
    Redacted,
)
from monitors.records.operator_actions import (
    ActionChanges,
    ActionContext,
    ActionEffect,
    ActionOutcome,
    CaseDraft,
    HumanLabel,
    OperatorAction,
    Silence,
    StoredConversation,
)

MAX_TEXT_CHARACTERS: Final = 8_000
"""Maximum length of one question or answer in a draft, in characters. Real questions are shorter."""
DRAFT_FINGERPRINT_CHARACTERS: Final = 12
ID_CHARACTERS: Final = 24


def build_operator_action(
    kind: ActionKind, about: Sequence[Incident], *, at: datetime, by: str, via: ActionVia, note: str
) -> OperatorAction:
    """Build a person's action on incidents. The same action at the same time always gets the same id."""
    fingerprints = tuple(incident.fingerprint for incident in about)
    canonical = "\n".join([kind.value, by, at.isoformat(), *fingerprints]).encode()
    return OperatorAction(
        id=f"{via.value}-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
        kind=kind,
        at=at,
        by=by,
        via=via,
        fingerprints=fingerprints,
        note=note,
    )


def can_become_gold_case(item: AlertItem) -> bool:
    """Return whether a gold case can be drafted from the item.

    The result is true if the item is about an answer and has the question of a real user. The result is false for a
    question that a probe asked, because this question is already a gold case.
    """
    observation = item.observation
    return (
        item.incident.kind in ABOUT_AN_ANSWER and observation.origin is not Origin.PROBE and bool(observation.asked)
    )


def draft_gold_case(
    action: OperatorAction,
    item: AlertItem,
    conversations: Sequence[StoredConversation],
    account_patterns: Callable[[str], Sequence[str]],
) -> CaseDraft:
    """Draft a gold case from the stored conversation of ``item``, or from its excerpts.

    For an entry of the hallucination log, a person must write the right answer, because the log contains only the
    wrong answer.
    """
    observation, incident = item.observation, item.incident
    patterns = account_patterns(incident.target)
    conversation = next(
        (
            conversation
            for conversation in conversations
            if (conversation.run_id, conversation.case_id) == (observation.run_id, observation.case_id)
        ),
        None,
    )

    def redact_and_cut(text: str) -> Redacted:
        """Redact a text, then cut it.

        Cutting first could leave half an account number, which no pattern matches.
        """
        redacted = redact(text[: MAX_TEXT_CHARACTERS + CONTEXT_MARGIN_CHARACTERS], account_patterns=patterns)
        return redact(redacted[:MAX_TEXT_CHARACTERS], account_patterns=patterns)

    turns = (
        tuple(redact_and_cut(turn) for turn in conversation.turns)
        if conversation
        else tuple(filter(None, (observation.asked,)))
    )
    severity, why = _propose_severity_with_reason(item)
    return CaseDraft(
        id=f"{action.id}-{incident.fingerprint[:DRAFT_FINGERPRINT_CHARACTERS]}",
        made_at=action.at,
        by=action.by,
        target=incident.target,
        run_id=observation.run_id,
        source_id=observation.case_id,
        fingerprint=incident.fingerprint,
        origin=observation.origin,
        turns=turns,
        gold=None if incident.kind is IncidentKind.HALLUCINATION else observation.expected,
        bad_reply=(
            redact_and_cut(conversation.answer) if conversation and conversation.answer else observation.answered
        ),
        failure_kind=incident.failure_kind,
        language=identify_language(turns[-1]),
        suggested_severity=severity,
        severity_reason=why,
        finding=observation.reason,
        cut=conversation is None,
    )


def _propose_severity_with_reason(item: AlertItem) -> tuple[Severity, str]:
    """Return the severity of the finding, and a text that explains it."""
    observation = item.observation
    row = f": {format_policy_row(observation.policy_row)}" if observation.policy_row else ""
    doubt = f"; {format_doubt(observation)}" if observation.unconfirmed else ""
    return observation.severity, f"the failure has severity {int(observation.severity)}{row}{doubt}"


UNKNOWN_TEXT = "This installation does not know this message. Another installation probably sent it."
ACTION_FINGERPRINT_CHARACTERS = 12
"""Number of digits of the incident's fingerprint that follow the action's id in the id of a label or a silence.

12 hexadecimal digits are 48 bits.
"""

AccountPatterns = Callable[[str], Sequence[str]]
"""A function that returns a target's patterns of account numbers, which are used for redaction."""


def compute_action_changes(
    context: ActionContext, *, now: datetime, settings: AlertSettings, account_patterns: AccountPatterns
) -> ActionChanges:
    """Return the changes that ``context.action`` makes. The changes are not stored.

    If the action changes nothing, the outcome contains the reason.
    """
    action, incidents = context.action, _select_incidents(context)
    if not incidents:
        return _build_no_change(action, now, ActionEffect.UNKNOWN, UNKNOWN_TEXT)
    match action.kind:
        case ActionKind.ACKNOWLEDGE:
            return _compute_acknowledgement_changes(action, incidents, now)
        case ActionKind.RESOLVE:
            return _compute_resolution_changes(action, incidents, now)
        case ActionKind.FALSE_ALARM:
            return _compute_false_alarm_changes(context, incidents, now, settings)
        case ActionKind.ADD_TO_GOLD:
            return _draft_gold_cases(context, now, account_patterns)
        case _:
            assert_never(action.kind)


def _select_incidents(context: ActionContext) -> tuple[Incident, ...]:
    """Select the incidents of the action: those in the message with the button, or those named in the command."""
    if context.action.alert_id is None:
        return context.incidents
    shown = {item.incident.fingerprint for item in context.items}
    return tuple(incident for incident in context.incidents if incident.fingerprint in shown)


def _compute_acknowledgement_changes(
    action: OperatorAction, incidents: Sequence[Incident], now: datetime
) -> ActionChanges:
    unacknowledged = [incident for incident in incidents if incident.state is IncidentState.OPEN]
    if not unacknowledged:
        return _build_no_change(
            action, now, ActionEffect.NOTHING_TO_DO, _format_no_action_needed(incidents), incidents
        )
    changed = tuple(incident.acknowledge() for incident in unacknowledged)
    text = f"{plural(len(unacknowledged), 'incident')} acknowledged. No reminders unless a fault gets worse"
    return ActionChanges(outcome=_build_outcome(action, now, incidents, text), incidents=changed)


def _compute_resolution_changes(
    action: OperatorAction, incidents: Sequence[Incident], now: datetime
) -> ActionChanges:
    unresolved = [incident for incident in incidents if not incident.is_resolved]
    if not unresolved:
        return _build_no_change(
            action, now, ActionEffect.NOTHING_TO_DO, _format_no_action_needed(incidents), incidents
        )
    text = (
        f"{plural(len(unresolved), 'incident')} resolved by hand. If a run finds the fault again, Lookout sends an "
        "alert"
    )
    return ActionChanges(
        outcome=_build_outcome(action, now, incidents, text),
        incidents=tuple(incident.resolve(now) for incident in unresolved),
    )


def _compute_false_alarm_changes(
    context: ActionContext, incidents: Sequence[Incident], now: datetime, settings: AlertSettings
) -> ActionChanges:
    """Return the changes that label the findings as wrong, and that resolve and silence their incidents.

    The silences end after ``settings.false_alarm_quiet_h``. The grader or the case should be fixed before then.
    """
    action = context.action
    silenced = {item.incident.fingerprint: item for item in context.items}
    until = now + timedelta(hours=settings.false_alarm_quiet_h)
    text = (
        f"{plural(len(incidents), 'finding')} marked as a false alarm. Lookout sends no alerts about this until "
        f"{until:%Y-%m-%d %H:%M} UTC"
    )
    unresolved = (incident for incident in incidents if not incident.is_resolved)
    return ActionChanges(
        outcome=_build_outcome(action, now, incidents, text),
        incidents=tuple(incident.resolve(now) for incident in unresolved),
        labels=tuple(
            _build_human_label(action, incident, silenced.get(incident.fingerprint)) for incident in incidents
        ),
        silences=tuple(_build_silence(action, incident, now, until) for incident in incidents),
    )


def _build_human_label(action: OperatorAction, incident: Incident, item: AlertItem | None) -> HumanLabel:
    return HumanLabel(
        id=f"{action.id}-{incident.fingerprint[:ACTION_FINGERPRINT_CHARACTERS]}",
        at=action.at,
        by=action.by,
        target=incident.target,
        run_id=item.observation.run_id if item else incident.last_run_id,
        case_id=incident.case_id,
        failure_kind=incident.failure_kind,
        fingerprint=incident.fingerprint,
        finding_right=False,
        reason=item.observation.reason if item else incident.title,
        note=redact(action.note),
    )


def _build_silence(action: OperatorAction, incident: Incident, now: datetime, until: datetime) -> Silence:
    return Silence(
        id=f"{action.id}-{incident.fingerprint[:ACTION_FINGERPRINT_CHARACTERS]}",
        author=action.by,
        comment=f"false alarm: {redact(action.note)}" if action.note else "false alarm",
        starts_at=now,
        ends_at=until,
        fingerprint=incident.fingerprint,
    )


def _draft_gold_cases(context: ActionContext, now: datetime, account_patterns: AccountPatterns) -> ActionChanges:
    action = context.action
    wanted = [item for item in context.items if can_become_gold_case(item)]
    if not wanted:
        text = "Nothing to draft: the question is already a gold case, or the message has no question."
        return _build_no_change(action, now, ActionEffect.NOTHING_TO_DO, text)
    drafts = tuple(draft_gold_case(action, item, context.conversations, account_patterns) for item in wanted)
    text = f"{plural(len(drafts), 'case')} drafted. A person must review a case before it joins the suite"
    about = [item.incident for item in wanted]
    return ActionChanges(outcome=_build_outcome(action, now, about, text), drafts=drafts)


def _format_no_action_needed(incidents: Sequence[Incident]) -> str:
    resolved = [incident.resolved_at for incident in incidents if incident.is_resolved and incident.resolved_at]
    if len(resolved) == len(incidents):
        return f"No action needed: the incident was resolved at {max(resolved):%Y-%m-%d %H:%M} UTC."
    return "No action needed: the incident is already acknowledged."


def _build_outcome(
    action: OperatorAction, now: datetime, incidents: Sequence[Incident], text: str
) -> ActionOutcome:
    about = tuple(incident.fingerprint for incident in incidents)
    return ActionOutcome(action_id=action.id, at=now, effect=ActionEffect.DONE, fingerprints=about, text=text)


def _build_no_change(
    action: OperatorAction, now: datetime, effect: ActionEffect, text: str, incidents: Sequence[Incident] = ()
) -> ActionChanges:
    about = tuple(incident.fingerprint for incident in incidents)
    return ActionChanges(
        outcome=ActionOutcome(action_id=action.id, at=now, effect=effect, fingerprints=about, text=text)
    )
