"""What comes of a person's action, as a pure function: acknowledged, a false alarm, drafted as a case, resolved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import assert_never

from monitors.alerts.gold_draft import draft_of, is_wanted_as_gold
from monitors.alerts.recovery import close
from monitors.alerts.redact import redact
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import counted
from monitors.records.incidents import AlertItem, Incident, IncidentState
from monitors.records.marks import ActionKind
from monitors.records.people import (
    ActionEffect,
    ActionOutcome,
    HumanLabel,
    Matter,
    PersonAction,
    Settlement,
)
from monitors.records.silences import Silence

UNKNOWN_TEXT = "This message is not in this Lookout's warehouse: it was sent by another installation."
FEW_CHARACTERS = 12
"""Of a fingerprint inside an id: 48 bits, beside the action's own id."""

AccountPatterns = Callable[[str], Sequence[str]]
"""A target's name → its own patterns of account numbers, for redaction."""


def settle(
    matter: Matter, *, now: datetime, settings: AlertSettings, account_patterns: AccountPatterns
) -> Settlement:
    """Carry out ``matter.action`` on the incidents as they stand; an action with nothing left to do says so."""
    action, incidents = matter.action, _meant(matter)
    if not incidents:
        return _nothing(action, now, ActionEffect.UNKNOWN, UNKNOWN_TEXT)
    match action.kind:
        case ActionKind.ACKNOWLEDGE:
            return _acknowledge(action, incidents, now)
        case ActionKind.RESOLVE:
            return _resolve(action, incidents, now)
        case ActionKind.FALSE_ALARM:
            return _false_alarm(matter, incidents, now, settings)
        case ActionKind.ADD_TO_GOLD:
            return _add_to_gold(matter, now, account_patterns)
        case _:
            assert_never(action.kind)


def _meant(matter: Matter) -> tuple[Incident, ...]:
    """A button is about what its message shows; a command about the incidents that it names."""
    if matter.action.alert_id is None:
        return matter.incidents
    shown = {item.incident.fingerprint for item in matter.items}
    return tuple(incident for incident in matter.incidents if incident.fingerprint in shown)


def _acknowledge(action: PersonAction, incidents: Sequence[Incident], now: datetime) -> Settlement:
    still = [incident for incident in incidents if incident.state is IncidentState.OPEN]
    if not still:
        return _nothing(action, now, ActionEffect.NOTHING_TO_DO, _how_it_stands(incidents), incidents)
    changed = tuple(one.model_copy(update={"state": IncidentState.ACKNOWLEDGED}) for one in still)
    text = f"{counted(len(still), 'incident')} acknowledged: no reminder until worse"
    return Settlement(outcome=_done(action, now, incidents, text), incidents=changed)


def _resolve(action: PersonAction, incidents: Sequence[Incident], now: datetime) -> Settlement:
    still = [incident for incident in incidents if incident.state is not IncidentState.RESOLVED]
    if not still:
        return _nothing(action, now, ActionEffect.NOTHING_TO_DO, _how_it_stands(incidents), incidents)
    text = f"{counted(len(still), 'incident')} resolved by hand: seen again, it is told as regressed"
    return Settlement(
        outcome=_done(action, now, incidents, text), incidents=tuple(close(one, now) for one in still)
    )


def _false_alarm(
    matter: Matter, incidents: Sequence[Incident], now: datetime, settings: AlertSettings
) -> Settlement:
    """The finding was wrong: said so for good, resolved, and quiet for a while. Never for ever: graders mend."""
    action = matter.action
    told = {item.incident.fingerprint: item for item in matter.items}
    until = now + timedelta(hours=settings.false_alarm_quiet_h)
    text = f"{counted(len(incidents), 'finding')} labelled a false alarm, quiet until {until:%Y-%m-%d %H:%M} UTC"
    still = (one for one in incidents if one.state is not IncidentState.RESOLVED)
    return Settlement(
        outcome=_done(action, now, incidents, text),
        incidents=tuple(close(one, now) for one in still),
        labels=tuple(_label(action, one, told.get(one.fingerprint)) for one in incidents),
        silences=tuple(_quiet(action, one, now, until) for one in incidents),
    )


def _label(action: PersonAction, incident: Incident, item: AlertItem | None) -> HumanLabel:
    return HumanLabel(
        id=f"{action.id}-{incident.fingerprint[:FEW_CHARACTERS]}",
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
        id=f"{action.id}-{incident.fingerprint[:FEW_CHARACTERS]}",
        author=action.by,
        comment=f"false alarm: {redact(action.note)}" if action.note else "false alarm",
        starts_at=now,
        ends_at=until,
        fingerprint=incident.fingerprint,
    )


def _add_to_gold(matter: Matter, now: datetime, account_patterns: AccountPatterns) -> Settlement:
    action = matter.action
    wanted = [item for item in matter.items if is_wanted_as_gold(item)]
    if not wanted:
        text = "Nothing to draft: what a probe asked is a gold case already, and other messages have no question."
        return _nothing(action, now, ActionEffect.NOTHING_TO_DO, text)
    drafts = tuple(draft_of(action, item, matter.said, account_patterns) for item in wanted)
    text = f"{counted(len(drafts), 'case')} drafted, to be reviewed: nothing unreviewed is gold"
    about = [item.incident for item in wanted]
    return Settlement(outcome=_done(action, now, about, text), drafts=drafts)


def _how_it_stands(incidents: Sequence[Incident]) -> str:
    resolved = [one.resolved_at for one in incidents if one.state is IncidentState.RESOLVED and one.resolved_at]
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
