"""Decide the new state of incidents and whether to send an alert, from stored state, observations and time.

    (nothing) ──seen──▶ OPEN ◀──worse── ACKNOWLEDGED
                        │  └──a person──▶   │
                        └──sent and gone────┴──▶ RESOLVED ──seen──▶ OPEN, reason `regressed`

``last_notified_at`` is ``None`` while an alert about the incident is withheld (silenced or inhibited). The next
observation that may send an alert sends it.

An alert that was only printed to a terminal did not notify a person. Once Slack is reachable, an alert with the
reason `open_before` is sent, even if the fault is not seen again. An incident that was only printed gets no
recovery alert. Alerts that Slack refused are sent once Slack works: open incidents of severity 3 as
`open_before`, all others, resolved ones included, in one summary with the reason `missed`. A decision counts as
sent: the caller stores state and message in one transaction, and delivery starts from the stored message.

A silence mutes an incident at a person's request. Inhibition mutes incidents that an outage explains, so that an
outage is one alert instead of fifty. The reason for an alert is shown in the message and stored with it. A run
that sends alerts before it ends opens one thread: later findings are replies to its first alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from monitors.alerts.redact import redact
from monitors.alerts.resolve import ResolutionScope, build_recovery
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import GRAVE_KINDS, format_ids
from monitors.records.base import Record, Severity
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

MUTING_KINDS: Final = frozenset({IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE})
"""While an incident of one of these kinds is open, alerts about the application's quality are muted."""

MUTABLE_KINDS: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})
"""Kinds that an outage mutes. Grave failures always send an alert."""

EVENT_KINDS: Final = frozenset({IncidentKind.HALLUCINATION, IncidentKind.DRILL})
"""Kinds that happen once: one alert, no reminder, no regression, resolved without an alert."""


class AlertDecision(Record):
    """``changed`` incidents to store, ``items`` to send; each item's incident is among the changed ones."""

    changed: tuple[Incident, ...] = ()
    items: tuple[AlertItem, ...] = ()


def decide_alerts(
    previous: Mapping[str, Incident],
    observations: Sequence[Observation],
    *,
    now: datetime,
    settings: AlertSettings,
    scope: ResolutionScope | None = None,
    silences: Sequence[Silence] = (),
    undelivered: Mapping[str, Alert] = MappingProxyType({}),
    refused: Mapping[str, Alert] = MappingProxyType({}),
    under_way: bool = False,
) -> AlertDecision:
    """Fold ``observations`` into the ``previous`` incidents, by fingerprint, and decide which alerts to send.

    ``previous`` holds at least the target's unresolved incidents, and the incidents with the observations'
    fingerprints in any state. Without ``scope`` (the run is not finished) no incident is resolved. Idempotent: a
    second decision after the result was stored changes and sends nothing, so a repeated task sends no alert
    twice.
    ``undelivered`` are the last alerts about open incidents that were only printed. ``refused`` are those about
    any incident that Slack refused. While a run is ``under_way``, both lists wait for its end, which may resolve
    them.
    """
    # Of several observations of one fault the worst counts, or the first of equally severe ones.
    worst: dict[str, Observation] = {}
    for observation in observations:
        if (
            worst_so_far := worst.get(observation.fingerprint)
        ) is None or observation.severity > worst_so_far.severity:
            worst[observation.fingerprint] = observation

    # The new state of each incident.
    after = dict(previous)
    for key, observation in worst.items():
        before = previous.get(key)
        if before is None:
            after[key] = Incident.open(observation)
        elif not before.is_resolved:
            after[key] = before.update_from(observation)
        elif observation.run_id != before.last_run_id and before.kind not in EVENT_KINDS:
            after[key] = before.reopen(observation)  # not by the run that saw the incident before it was resolved
    endings = {
        key: build_recovery(incident, scope)
        for key, incident in previous.items()
        if scope is not None and key not in worst and scope.can_resolve(incident)
    }
    after |= {key: item.incident for key, item in endings.items()}

    # Which are muted. Only now are the outages known: an outage in this batch mutes, an ended outage does not.
    outages = {i.target for i in after.values() if i.kind in MUTING_KINDS and not i.is_resolved}
    muted = {
        key
        for key, i in after.items()
        if (i.kind in MUTABLE_KINDS and i.failure_kind not in GRAVE_KINDS and i.target in outages)
        or any(silence.is_muting(i, now) for silence in silences)
    }

    # Alerts that notified no person, unless a later alert arrived or a person acknowledged the incident since.
    unreported = {
        key: alert
        for key, alert in {**undelivered, **refused}.items()
        if not under_way
        and (before := previous.get(key)) is not None
        and (before.state is IncidentState.OPEN or (before.is_resolved and key in refused and key not in worst))
        and before.last_notified_at is not None
        and before.last_notified_at <= alert.created_at
    }

    # What to send: new observations, incidents that were open before, recoveries.
    items: list[AlertItem] = []
    for key, observation in worst.items():
        before, incident = previous.get(key), after[key]
        reason = find_notify_reason(before, incident, observation, now=now, settings=settings)
        if key in unreported:
            reason = _choose_reason_for_undelivered_alert(incident, is_refused=key in refused)
        if reason is None:
            continue
        if key in muted:
            if reason is not NotifyReason.REMINDER:  # a reminder only repeats an alert that was already sent
                after[key] = incident.withhold_alert()
            continue
        incident = incident.record_alert(now, observation.failed_cases)
        if key in unreported:
            incident = incident.place_in_thread(None, None)
        elif incident.thread is None:
            incident = _place_in_thread_of_first_alert(incident, previous)
        new_cases, severity_before = (), None
        if before is not None and reason is NotifyReason.WORSE:
            new_cases = before.find_unreported_cases(observation)
            severity_before = before.severity if before.severity < observation.severity else None
        items.append(
            AlertItem(
                incident=incident,
                observation=observation,
                reason=reason,
                new_cases=new_cases,
                severity_before=severity_before,
            )
        )
    for key, alert in unreported.items():
        if key in worst or key in muted or (key in endings and key not in refused):
            continue
        incident, observation = after[key], alert.select_item(key).observation
        still_failing = observation if incident.is_resolved else _remove_passed_cases(observation, scope)
        if still_failing is not None:
            incident = incident.record_alert(now, still_failing.failed_cases).place_in_thread(None, None)
            reason = _choose_reason_for_undelivered_alert(incident, is_refused=key in refused)
            items.append(AlertItem(incident=incident, observation=still_failing, reason=reason))
    items += [
        item.record_alert(now)
        for key, item in endings.items()
        if key not in muted and key not in unreported and previous[key].last_notified_at is not None
    ]

    # Events are resolved after a while.
    event_age = timedelta(hours=settings.event_open_h)
    after |= {
        key: i.resolve(now)
        for key, i in previous.items()
        if key not in worst and i.kind in EVENT_KINDS and not i.is_resolved and now - i.last_seen_at >= event_age
    }
    after |= {item.incident.fingerprint: item.incident for item in items}
    changed = tuple(incident for key, incident in after.items() if previous.get(key) != incident)
    return AlertDecision(changed=changed, items=tuple(items))


def find_notify_reason(
    before: Incident | None, after: Incident, observation: Observation, *, now: datetime, settings: AlertSettings
) -> NotifyReason | None:
    """Return the reason to alert about ``after``, which was ``before``; ``None`` without a reason.

    Only reminders depend on the clock, by the distance to the last message in either direction. A clock that
    jumps by less than the interval repeats nothing, and a clock that was set back from far ahead does not mute.
    """
    if after.is_resolved:
        return None
    if before is None:
        return NotifyReason.FIRST_SEEN
    if before.is_resolved:
        return NotifyReason.REGRESSED if after.resolved_at is not None else NotifyReason.FIRST_SEEN
    if before.is_worsened_by(observation):
        return NotifyReason.WORSE
    if after.state is IncidentState.ACKNOWLEDGED:
        return None
    if after.last_notified_at is None:  # its alert was withheld while the incident was silenced or inhibited
        if after.resolved_at is not None:
            return NotifyReason.REGRESSED
        return NotifyReason.FIRST_SEEN if after.thread is None else NotifyReason.WORSE
    interval = timedelta(hours=settings.reminder_interval_h)
    due = abs(now - after.last_notified_at) >= interval and after.kind not in EVENT_KINDS
    return NotifyReason.REMINDER if due else None


def _choose_reason_for_undelivered_alert(incident: Incident, *, is_refused: bool) -> NotifyReason:
    """Choose the reason of an alert that reached no person; open incidents of severity 3 are not in the summary."""
    is_grave = incident.severity is Severity.CRITICAL and not incident.is_resolved
    return NotifyReason.MISSED if is_refused and not is_grave else NotifyReason.OPEN_BEFORE


def _place_in_thread_of_first_alert(incident: Incident, previous: Mapping[str, Incident]) -> Incident:
    """Put ``incident`` in the thread of its run's earlier alert of the same kind, if such a thread exists.

    Only threads that this run opened count, not the threads of reminders. A grave failure is a reply only to a
    grave first alert: a leak is not reported in a thread about a wrong number. Without threads (a webhook, a
    terminal) the incident is unchanged.
    """
    for first in previous.values():
        if (
            first.thread is not None
            and first.kind is incident.kind
            and first.target == incident.target
            and first.last_run_id == incident.last_run_id
            and first.occurrences == 1
            and (first.failure_kind in GRAVE_KINDS or incident.failure_kind not in GRAVE_KINDS)
            and not first.is_resolved
        ):
            return incident.place_in_thread(first.thread, first.channel)
    return incident


def _remove_passed_cases(observation: Observation, scope: ResolutionScope | None) -> Observation | None:
    """Return ``observation`` without the cases that the run of ``scope`` graded right; ``None`` if none is left."""
    right = scope.passed if scope is not None else frozenset[str]()
    if right.isdisjoint(observation.failed_cases):
        return observation
    still_failing = [case for case in observation.failed_cases if case not in right]
    if not still_failing:
        return None
    return observation.remove_cases(
        right, redact(f"Still failing, or not graded since: {format_ids(still_failing)}.")
    )
