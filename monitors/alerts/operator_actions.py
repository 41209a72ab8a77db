"""What comes of a person's action, as a pure function: acknowledged, a false alarm, drafted as a case, resolved.

A drafted case is redacted and proposes a severity with its reason. A person makes it gold, or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, assert_never

from monitors.alerts.redact import EDGE_CHARACTERS, redact
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import ABOUT_AN_ANSWER, format_doubt
from monitors.facts.language import identify
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
    ActionEffect,
    ActionOutcome,
    ActionSubject,
    CaseDraft,
    HumanLabel,
    PersonAction,
    Settlement,
    Silence,
    StoredConversation,
)

LONGEST_TEXT: Final = 8_000
"""Characters of one turn or reply that a draft stores: more than any real question has."""
DRAFT_FINGERPRINT_CHARACTERS: Final = 12
ID_CHARACTERS: Final = 24


def new_action(
    kind: ActionKind, about: Sequence[Incident], *, at: datetime, by: str, via: ActionVia, note: str
) -> PersonAction:
    """An action of a person on incidents that they name; the same at the same time is the same action."""
    fingerprints = tuple(incident.fingerprint for incident in about)
    canonical = "\n".join([kind.value, by, at.isoformat(), *fingerprints]).encode()
    return PersonAction(
        id=f"{via.value}-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
        kind=kind,
        at=at,
        by=by,
        via=via,
        fingerprints=fingerprints,
        note=note,
    )


def is_wanted_as_gold(item: AlertItem) -> bool:
    """Whether a case can be drafted of it: a real user asked it. A probe's question is a gold case already."""
    observation = item.observation
    return (
        item.incident.kind in ABOUT_AN_ANSWER and observation.origin is not Origin.PROBE and bool(observation.asked)
    )


def draft_of(
    action: PersonAction,
    item: AlertItem,
    conversations: Sequence[StoredConversation],
    account_patterns: Callable[[str], Sequence[str]],
) -> CaseDraft:
    """Draft a case of ``item``; ``said`` is the whole conversation where it is stored, else excerpts must do.

    The log's own claims are what was unsupported, not what is right: there a person writes the gold.
    """
    observation, incident = item.observation, item.incident
    patterns = account_patterns(incident.target)
    whole = next(
        (
            conversation
            for conversation in conversations
            if (conversation.run_id, conversation.case_id) == (observation.run_id, observation.case_id)
        ),
        None,
    )

    def clean(text: str) -> Redacted:
        """Redacted before it is cut: half an account number is one that no pattern knows."""
        redacted = redact(text[: LONGEST_TEXT + EDGE_CHARACTERS], account_patterns=patterns)
        return redact(redacted[:LONGEST_TEXT], account_patterns=patterns)

    turns = tuple(clean(turn) for turn in whole.turns) if whole else tuple(filter(None, (observation.asked,)))
    severity, why = _proposed(item)
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
        bad_reply=(clean(whole.answer) if whole and whole.answer else observation.answered),
        failure_kind=incident.failure_kind,
        language=identify(turns[-1]),
        suggested_severity=severity,
        severity_reason=why,
        finding=observation.reason,
        cut=whole is None,
    )


def _proposed(item: AlertItem) -> tuple[Severity, str]:
    """The severity that the finding had, and the policy row that set it."""
    observation = item.observation
    row = f": {format_policy_row(observation.policy_row)}" if observation.policy_row else ""
    doubt = f"; {format_doubt(observation)}" if observation.unconfirmed else ""
    return observation.severity, f"the finding was severity {int(observation.severity)}{row}{doubt}"


UNKNOWN_TEXT = "This message is not in this Lookout's warehouse: it was sent by another installation."
ACTION_FINGERPRINT_CHARACTERS = 12
"""How much of a fingerprint goes into an id: 48 bits, beside the action's own id."""

AccountPatterns = Callable[[str], Sequence[str]]
"""A target's name → its own patterns of account numbers, for redaction."""


def settle(
    subject: ActionSubject, *, now: datetime, settings: AlertSettings, account_patterns: AccountPatterns
) -> Settlement:
    """Carry out ``matter.action`` on the incidents as they stand; an action with nothing left to do says so."""
    action, incidents = subject.action, _meant(subject)
    if not incidents:
        return _nothing(action, now, ActionEffect.UNKNOWN, UNKNOWN_TEXT)
    match action.kind:
        case ActionKind.ACKNOWLEDGE:
            return _acknowledge(action, incidents, now)
        case ActionKind.RESOLVE:
            return _resolve(action, incidents, now)
        case ActionKind.FALSE_ALARM:
            return _false_alarm(subject, incidents, now, settings)
        case ActionKind.ADD_TO_GOLD:
            return _add_to_gold(subject, now, account_patterns)
        case _:
            assert_never(action.kind)


def _meant(subject: ActionSubject) -> tuple[Incident, ...]:
    """A button is about what its message shows; a command about the incidents that it names."""
    if subject.action.alert_id is None:
        return subject.incidents
    shown = {item.incident.fingerprint for item in subject.items}
    return tuple(incident for incident in subject.incidents if incident.fingerprint in shown)


def _acknowledge(action: PersonAction, incidents: Sequence[Incident], now: datetime) -> Settlement:
    unacknowledged = [incident for incident in incidents if incident.state is IncidentState.OPEN]
    if not unacknowledged:
        return _nothing(action, now, ActionEffect.NOTHING_TO_DO, _how_it_stands(incidents), incidents)
    changed = tuple(incident.acknowledge() for incident in unacknowledged)
    text = f"{plural(len(unacknowledged), 'incident')} acknowledged: no reminder until worse"
    return Settlement(outcome=_done(action, now, incidents, text), incidents=changed)


def _resolve(action: PersonAction, incidents: Sequence[Incident], now: datetime) -> Settlement:
    unresolved = [incident for incident in incidents if not incident.is_resolved]
    if not unresolved:
        return _nothing(action, now, ActionEffect.NOTHING_TO_DO, _how_it_stands(incidents), incidents)
    text = f"{plural(len(unresolved), 'incident')} resolved by hand; an alert says so when a run sees it again"
    return Settlement(
        outcome=_done(action, now, incidents, text),
        incidents=tuple(incident.resolve(now) for incident in unresolved),
    )


def _false_alarm(
    subject: ActionSubject, incidents: Sequence[Incident], now: datetime, settings: AlertSettings
) -> Settlement:
    """The finding was wrong: labelled so, resolved, and quiet for a while. Never for ever: graders get better."""
    action = subject.action
    silenced = {item.incident.fingerprint: item for item in subject.items}
    until = now + timedelta(hours=settings.false_alarm_quiet_h)
    text = f"{plural(len(incidents), 'finding')} labelled a false alarm, quiet until {until:%Y-%m-%d %H:%M} UTC"
    unresolved = (incident for incident in incidents if not incident.is_resolved)
    return Settlement(
        outcome=_done(action, now, incidents, text),
        incidents=tuple(incident.resolve(now) for incident in unresolved),
        labels=tuple(_label(action, incident, silenced.get(incident.fingerprint)) for incident in incidents),
        silences=tuple(_quiet(action, incident, now, until) for incident in incidents),
    )


def _label(action: PersonAction, incident: Incident, item: AlertItem | None) -> HumanLabel:
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


def _quiet(action: PersonAction, incident: Incident, now: datetime, until: datetime) -> Silence:
    return Silence(
        id=f"{action.id}-{incident.fingerprint[:ACTION_FINGERPRINT_CHARACTERS]}",
        author=action.by,
        comment=f"false alarm: {redact(action.note)}" if action.note else "false alarm",
        starts_at=now,
        ends_at=until,
        fingerprint=incident.fingerprint,
    )


def _add_to_gold(subject: ActionSubject, now: datetime, account_patterns: AccountPatterns) -> Settlement:
    action = subject.action
    wanted = [item for item in subject.items if is_wanted_as_gold(item)]
    if not wanted:
        text = "Nothing to draft: what a probe asked is a gold case already, and other messages have no question."
        return _nothing(action, now, ActionEffect.NOTHING_TO_DO, text)
    drafts = tuple(draft_of(action, item, subject.conversations, account_patterns) for item in wanted)
    text = f"{plural(len(drafts), 'case')} drafted, to be reviewed: nothing unreviewed is gold"
    about = [item.incident for item in wanted]
    return Settlement(outcome=_done(action, now, about, text), drafts=drafts)


def _how_it_stands(incidents: Sequence[Incident]) -> str:
    resolved = [incident.resolved_at for incident in incidents if incident.is_resolved and incident.resolved_at]
    if len(resolved) == len(incidents):
        return f"Nothing to do: it is resolved since {max(resolved):%Y-%m-%d %H:%M} UTC."
    return "Nothing to do: it is acknowledged already."


def _done(action: PersonAction, now: datetime, incidents: Sequence[Incident], text: str) -> ActionOutcome:
    about = tuple(incident.fingerprint for incident in incidents)
    return ActionOutcome(action_id=action.id, at=now, effect=ActionEffect.DONE, fingerprints=about, text=text)


def _nothing(
    action: PersonAction, now: datetime, effect: ActionEffect, text: str, incidents: Sequence[Incident] = ()
) -> Settlement:
    about = tuple(incident.fingerprint for incident in incidents)
    return Settlement(
        outcome=ActionOutcome(action_id=action.id, at=now, effect=effect, fingerprints=about, text=text)
    )
