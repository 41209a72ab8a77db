"""The life of an incident as a pure function: what was known, what was seen, the time → what changes, what is said.

    (nothing) ──seen──▶ OPEN ◀──worse── ACKNOWLEDGED
                        │  └──a person──▶   │
                        └──told and gone────┴──▶ RESOLVED ──seen──▶ OPEN, reason `regressed`

``last_notified_at`` is ``None`` while something about an incident is unsaid (it was silenced or inhibited); the
next time the fault is seen and may be told, it is. What is decided counts as said: the caller stores state and
message in one transaction, and delivery starts from what was stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from monitors.alerts.folding import EVENTS, fold, worst_by_fingerprint
from monitors.alerts.following import below_the_first_page
from monitors.alerts.inhibition import is_inhibited, targets_in_outage
from monitors.alerts.reasons import reason_to_tell
from monitors.alerts.recovery import close, recovered
from monitors.alerts.scope import Scope
from monitors.alerts.settings import AlertSettings
from monitors.alerts.silence import is_silenced
from monitors.records.base import Record
from monitors.records.incidents import AlertItem, Incident, IncidentState, NotifyReason, Observation
from monitors.records.silences import Silence


class Decision(Record):
    """``changed`` incidents to store, ``items`` to tell people; each item's incident is among the changed ones."""

    changed: tuple[Incident, ...] = ()
    items: tuple[AlertItem, ...] = ()


def decide(
    previous: Mapping[str, Incident],
    observations: Sequence[Observation],
    *,
    now: datetime,
    settings: AlertSettings,
    scope: Scope | None = None,
    silences: Sequence[Silence] = (),
) -> Decision:
    """Fold ``observations`` into the incidents known as ``previous``, by fingerprint.

    ``previous`` holds at least the target's incidents that are not resolved, and those with the observations'
    fingerprints whatever their state. Without ``scope`` (the run goes on) nothing is resolved. Deciding again
    with what it gave stored changes and says nothing, so a repeated task or a second worker pages nobody twice.
    """
    seen = worst_by_fingerprint(observations)
    endings = _endings(previous, seen, scope)
    after = _after(previous, seen, endings)
    news = {
        key: reason
        for key in seen
        if (reason := reason_to_tell(previous.get(key), after[key], now=now, reminder_interval=_interval(settings)))
    }
    outages = targets_in_outage(after.values())
    quiet = {key for key, i in after.items() if is_silenced(i, silences, now) or is_inhibited(i, outages)}
    items = [
        below_the_first_page(
            AlertItem(incident=_notified(after[key], now), observation=seen[key], reason=reason), previous.values()
        )
        for key, reason in news.items()
        if key not in quiet
    ]
    items += [
        item.model_copy(update={"incident": _notified(item.incident, now)})
        for key, item in endings.items()
        if key not in quiet and previous[key].last_notified_at is not None
    ]
    after |= {key: _unsaid(after[key]) for key, reason in news.items() if _is_kept(reason, key in quiet)}
    after |= _stale_events(previous, seen, now, settings)
    after |= {item.incident.fingerprint: item.incident for item in items}
    changed = tuple(incident for key, incident in after.items() if previous.get(key) != incident)
    return Decision(changed=changed, items=tuple(items))


def _interval(settings: AlertSettings) -> timedelta:
    return timedelta(hours=settings.reminder_interval_h)


def _endings(
    previous: Mapping[str, Incident], seen: Mapping[str, Observation], scope: Scope | None
) -> dict[str, AlertItem]:
    if scope is None:
        return {}
    return {key: recovered(i, scope) for key, i in previous.items() if key not in seen and scope.resolves(i)}


def _after(
    previous: Mapping[str, Incident], seen: Mapping[str, Observation], endings: Mapping[str, AlertItem]
) -> dict[str, Incident]:
    folded = {key: fold(previous.get(key), observation) for key, observation in seen.items()}
    return {**previous, **folded, **{key: item.incident for key, item in endings.items()}}


def _notified(incident: Incident, now: datetime) -> Incident:
    return incident.model_copy(update={"last_notified_at": now})


def _is_kept(reason: NotifyReason, quiet: bool) -> bool:
    """A reminder that was muted is not owed: what it would repeat was said."""
    return quiet and reason is not NotifyReason.REMINDER


def _unsaid(incident: Incident) -> Incident:
    return incident.model_copy(update={"last_notified_at": None})


def _stale_events(
    previous: Mapping[str, Incident], seen: Mapping[str, Observation], now: datetime, settings: AlertSettings
) -> dict[str, Incident]:
    age = timedelta(hours=settings.event_open_h)
    return {
        key: close(incident, now)
        for key, incident in previous.items()
        if key not in seen
        and incident.kind in EVENTS
        and incident.state is not IncidentState.RESOLVED
        and now - incident.last_seen_at >= age
    }
