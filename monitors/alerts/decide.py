"""Decides what an incident becomes and whether somebody is notified: stored state, observations, time → both.

    (nothing) ──seen──▶ OPEN ◀──worse── ACKNOWLEDGED
                        │  └──a person──▶   │
                        └──sent and gone────┴──▶ RESOLVED ──seen──▶ OPEN, reason `regressed`

``last_notified_at`` is ``None`` while an alert about the incident is withheld (it was silenced or inhibited). The
next observation that may send an alert sends it. An incident that was only printed to a terminal is owed to people:
once there is a channel to them, an alert with the reason `open_before` goes out, whether the fault is seen again or
not. Nobody is notified of the end of an incident they never heard of. A decision counts as sent: the caller stores
state and message in one transaction, and delivery starts from what was stored.

Silences mute an incident at a person's request. Inhibition mutes what an outage explains, so that an outage is one
alert and not fifty. The reason for an alert is a value, printed in the message and stored with it. A run that sends
alerts while it goes on opens one thread: later findings go below its first alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from monitors.alerts.redact import redact
from monitors.alerts.resolve import ResolutionScope, recover
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import GRAVE, some_of
from monitors.records.base import Record
from monitors.records.incidents import (
    Alert,
    AlertItem,
    Incident,
    IncidentKind,
    IncidentState,
    NotifyReason,
    Observation,
)
from monitors.records.operator_actions import Silence

MUTING: Final = frozenset({IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE})
"""While one of these is open, the application's quality is not news."""

MUTED: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})
"""What an outage explains, except grave failures: they send an alert all the same."""

EVENTS: Final = frozenset({IncidentKind.HALLUCINATION, IncidentKind.DRILL})
"""Kinds that happen once: one alert, no reminder, no regression, closed without an alert."""


class AlertDecision(Record):
    """``changed`` incidents to store, ``items`` to send; each item's incident is among the changed ones."""

    changed: tuple[Incident, ...] = ()
    items: tuple[AlertItem, ...] = ()


def decide(
    previous: Mapping[str, Incident],
    observations: Sequence[Observation],
    *,
    now: datetime,
    settings: AlertSettings,
    scope: ResolutionScope | None = None,
    silences: Sequence[Silence] = (),
    undelivered: Mapping[str, Alert] = MappingProxyType({}),
    under_way: bool = False,
) -> AlertDecision:
    """Fold ``observations`` into the ``previous`` incidents, by fingerprint, and decide who is notified of what.

    ``previous`` holds at least the target's incidents that are not resolved, and those with the observations'
    fingerprints whatever their state. Without ``scope`` (the run goes on) nothing is resolved. Deciding again with
    what it gave stored changes and sends nothing, so a repeated task or a second worker alerts nobody twice.
    ``undelivered`` are the last alerts about open incidents that reached nobody; while a run is ``under_way`` they
    wait for its end, which may resolve them, and reports them together.
    """
    # Two observations of one fault are one: the worst, the first among equals.
    worst: dict[str, Observation] = {}
    for observation in observations:
        if (other := worst.get(observation.fingerprint)) is None or observation.severity > other.severity:
            worst[observation.fingerprint] = observation

    # What each incident becomes.
    after = dict(previous)
    for key, observation in worst.items():
        before = previous.get(key)
        if before is None:
            after[key] = Incident.open(observation)
        elif not before.is_resolved:
            after[key] = before.continue_with(observation)
        elif observation.run_id != before.last_run_id and before.kind not in EVENTS:
            after[key] = before.reopen(observation)  # a run that repeats what was resolved since does not
    endings = {
        key: recover(incident, scope)
        for key, incident in previous.items()
        if scope is not None and key not in worst and scope.resolves(incident)
    }
    after |= {key: item.incident for key, item in endings.items()}

    # What mutes them: outages are known only now, one seen in this batch mutes and one that ended does not.
    outages = {i.target for i in after.values() if i.kind in MUTING and not i.is_resolved}
    muted = {
        key
        for key, i in after.items()
        if (i.kind in MUTED and i.failure_kind not in GRAVE and i.target in outages)
        or any(silence.covers(i, now) for silence in silences)
    }

    # What reached nobody, as long as nobody was notified or acknowledged it meanwhile.
    owed = {
        key: alert
        for key, alert in undelivered.items()
        if not under_way
        and (before := previous.get(key)) is not None
        and before.state is IncidentState.OPEN
        and before.last_notified_at is not None
        and before.last_notified_at <= alert.created_at
    }

    # What is sent: news of this batch, what was open before, what is over.
    items: list[AlertItem] = []
    for key, observation in worst.items():
        before, incident = previous.get(key), after[key]
        reason = reason_to_notify(before, incident, observation, now=now, settings=settings)
        if key in owed:
            reason = NotifyReason.OPEN_BEFORE
        if reason is None:
            continue
        if key in muted:
            if reason is not NotifyReason.REMINDER:  # what a reminder would repeat was sent already
                after[key] = incident.withhold()
            continue
        incident = incident.notify(now, observation.failed_cases)
        if incident.thread is None and reason is not NotifyReason.OPEN_BEFORE:
            incident = _place_below_first_alert(incident, previous)
        new_cases, milder = (), None
        if before is not None and reason is NotifyReason.WORSE:
            new_cases = before.new_cases(observation)
            milder = before.severity if before.severity < observation.severity else None
        items.append(
            AlertItem(
                incident=incident,
                observation=observation,
                reason=reason,
                new_cases=new_cases,
                severity_before=milder,
            )
        )
    for key, alert in owed.items():
        if key in worst or key in endings or key in muted:
            continue
        observation = _drop_right_cases(alert.item_of(key).observation, scope)
        if observation is not None:
            incident = after[key].notify(now, observation.failed_cases)
            items.append(AlertItem(incident=incident, observation=observation, reason=NotifyReason.OPEN_BEFORE))
    items += [
        item.notify(now)
        for key, item in endings.items()
        if key not in muted and key not in owed and previous[key].last_notified_at is not None
    ]

    # What happened once is closed after a while.
    event_age = timedelta(hours=settings.event_open_h)
    after |= {
        key: i.resolve(now)
        for key, i in previous.items()
        if key not in worst and i.kind in EVENTS and not i.is_resolved and now - i.last_seen_at >= event_age
    }
    after |= {item.incident.fingerprint: item.incident for item in items}
    changed = tuple(incident for key, incident in after.items() if previous.get(key) != incident)
    return AlertDecision(changed=changed, items=tuple(items))


def reason_to_notify(
    before: Incident | None, after: Incident, observation: Observation, *, now: datetime, settings: AlertSettings
) -> NotifyReason | None:
    """Return the reason to alert for ``after``, just observed, against ``before``; ``None`` when there is none.

    The clock matters for reminders only, and only how far it is from the last message, either way: a clock that
    jumps by less than the interval repeats nothing, and one that came back from far ahead does not mute.
    """
    if after.is_resolved:
        return None
    if before is None:
        return NotifyReason.FIRST_SEEN
    if before.is_resolved:
        return NotifyReason.REGRESSED if after.resolved_at is not None else NotifyReason.FIRST_SEEN
    if before.is_worse_in(observation):
        return NotifyReason.WORSE
    if after.state is IncidentState.ACKNOWLEDGED:
        return None
    if after.last_notified_at is None:  # its alert was withheld while it was silenced or inhibited
        if after.resolved_at is not None:
            return NotifyReason.REGRESSED
        return NotifyReason.FIRST_SEEN if after.thread is None else NotifyReason.WORSE
    interval = timedelta(hours=settings.reminder_interval_h)
    due = abs(now - after.last_notified_at) >= interval and after.kind not in EVENTS
    return NotifyReason.REMINDER if due else None


def _place_below_first_alert(incident: Incident, previous: Mapping[str, Incident]) -> Incident:
    """Give ``incident`` the thread of its run's earlier alert of the same kind, where there is one.

    Only what this run opened: a reminder's thread belongs to an older story. A grave failure goes below a grave
    first alert only: a leak is not reported in a thread about a wrong number. Without threads (a webhook, a
    terminal) nothing changes.
    """
    for first in previous.values():
        if (
            first.thread is not None
            and first.kind is incident.kind
            and first.target == incident.target
            and first.last_run_id == incident.last_run_id
            and first.occurrences == 1
            and (first.failure_kind in GRAVE or incident.failure_kind not in GRAVE)
            and not first.is_resolved
        ):
            return incident.place_in_thread(first.thread, first.channel)
    return incident


def _drop_right_cases(printed: Observation, scope: ResolutionScope | None) -> Observation | None:
    """``printed`` without the cases that the run of ``scope`` found right; ``None`` where those were all."""
    right = scope.passed if scope is not None else frozenset[str]()
    if right.isdisjoint(printed.failed_cases):
        return printed
    left = [case for case in printed.failed_cases if case not in right]
    if not left:
        return None
    return printed.without_cases(right, redact(f"Still failing, or not graded since: {some_of(left)}."))
