"""Decides how each incident changes, and which alerts to send.

    (nothing) ──seen──▶ OPEN ◀──worse── ACKNOWLEDGED
                        │  └──a person──▶   │
                        └──fault has ended──┴──▶ RESOLVED ──seen──▶ OPEN, reason `regressed`

The decision uses only the stored incidents, the new observations and the time. The caller stores the changed
incidents and the alerts in one transaction. From then on, an alert counts as sent, although a later step delivers
it.

Some alerts are withheld, which means that they are not sent for now:

- A silence mutes incidents at a person's request.
- An outage mutes alerts about the application's quality. An outage then sends one alert instead of fifty.

While an incident's alert is withheld, the incident's ``last_notified_at`` is ``None``. When the incident is no
longer muted, its next observation sends the alert.

Some alerts did not reach a person. They are sent again later:

- An alert that was only printed is sent with the reason `open_before`.
- An alert that Slack refused is sent with the reason `open_before` if its incident is open and has severity 3.
- All other alerts that Slack refused are sent in one summary with the reason `missed`.

If an incident's alert was only printed, no recovery alert is sent about the incident.
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
"""While an incident of one of these kinds is open, it mutes alerts about the application's quality."""

MUTABLE_KINDS: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})
"""Kinds of incidents that an outage mutes. An outage does not mute grave failures (`GRAVE_KINDS`)."""

EVENT_KINDS: Final = frozenset({IncidentKind.HALLUCINATION, IncidentKind.DRILL})
"""Kinds of incidents that are single events.

An incident of such a kind sends one alert, but no reminder and no recovery alert. It is resolved after
``event_open_h``.
"""


class AlertDecision(Record):
    """The incidents to store and the alert items to send. Each item's incident is also in ``changed``."""

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
    """Return the new and the changed incidents, and the alerts to send.

    - ``previous`` maps fingerprints to incidents. The caller must pass all unresolved incidents of the target, and
      every incident with the fingerprint of an observation.
    - ``scope`` is ``None`` while the run is not finished. In this case, only incidents of `EVENT_KINDS` can be
      resolved.
    - ``undelivered`` maps fingerprints of open incidents to alerts that were only printed.
    - ``refused`` maps fingerprints of incidents to alerts that Slack refused.
    - While a run is ``under_way``, the alerts in ``undelivered`` and ``refused`` are not sent, because the end of
      the run may resolve their incidents.

    If this function is called again with the stored result, it returns no changes and no alerts.
    """
    # If several observations are about one fault, the worst counts. If they are equally severe, the first counts.
    worst: dict[str, Observation] = {}
    for observation in observations:
        if (
            worst_so_far := worst.get(observation.fingerprint)
        ) is None or observation.severity > worst_so_far.severity:
            worst[observation.fingerprint] = observation

    # Compute the new state of each incident.
    after = dict(previous)
    for key, observation in worst.items():
        before = previous.get(key)
        if before is None:
            after[key] = Incident.open(observation)
        elif not before.is_resolved:
            after[key] = before.update_from(observation)
        elif observation.run_id != before.last_run_id and before.kind not in EVENT_KINDS:
            after[key] = before.reopen(observation)  # the run that last saw it cannot reopen it
    endings = {
        key: build_recovery(incident, scope)
        for key, incident in previous.items()
        if scope is not None and key not in worst and scope.can_resolve(incident)
    }
    after |= {key: item.incident for key, item in endings.items()}

    # Find which incidents are muted. The new states count: a new outage mutes, an outage that has ended does not.
    outages = {i.target for i in after.values() if i.kind in MUTING_KINDS and not i.is_resolved}
    muted = {
        key
        for key, i in after.items()
        if (i.kind in MUTABLE_KINDS and i.failure_kind not in GRAVE_KINDS and i.target in outages)
        or any(silence.is_muting(i, now) for silence in silences)
    }

    # Find alerts that notified nobody. A later alert or an acknowledgement makes them obsolete.
    unreported = {
        key: alert
        for key, alert in {**undelivered, **refused}.items()
        if not under_way
        and (before := previous.get(key)) is not None
        and (before.state is IncidentState.OPEN or (before.is_resolved and key in refused and key not in worst))
        and before.last_notified_at is not None
        and before.last_notified_at <= alert.created_at
    }

    # Decide what to send: new observations, incidents that were open before, and recoveries.
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
                after[key] = incident.record_withheld_alert()
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

    # Resolve events after some time.
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
    """Return why an alert about an incident must be sent. Return ``None`` if there is no reason.

    ``before`` and ``after`` are the incident before and after the observation. Only reminders depend on the clock.
    A reminder is also due if the time of the last alert is far in the future. In this case, the clock was set back,
    and without this rule, no reminders would be sent for a long time.
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
    if after.last_notified_at is None:  # its alert was withheld, because the incident was muted
        if after.resolved_at is not None:
            return NotifyReason.REGRESSED
        return NotifyReason.FIRST_SEEN if after.thread is None else NotifyReason.WORSE
    interval = timedelta(hours=settings.reminder_interval_h)
    due = abs(now - after.last_notified_at) >= interval and after.kind not in EVENT_KINDS
    return NotifyReason.REMINDER if due else None


def _choose_reason_for_undelivered_alert(incident: Incident, *, is_refused: bool) -> NotifyReason:
    """Return the reason for sending an alert that did not reach a person.

    The reason is ``MISSED`` if Slack refused the alert, except for an open incident of severity 3. Otherwise, the
    reason is ``OPEN_BEFORE``.
    """
    is_grave = incident.severity is Severity.CRITICAL and not incident.is_resolved
    return NotifyReason.MISSED if is_refused and not is_grave else NotifyReason.OPEN_BEFORE


def _place_in_thread_of_first_alert(incident: Incident, previous: Mapping[str, Incident]) -> Incident:
    """Add ``incident`` to the thread of its run's first alert about the same kind of incident, if there is one.

    A grave failure, such as a leak of personal data, is added only to the thread of another grave failure.
    Otherwise, it could be hidden in a thread about a wrong number.
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
    """Return ``observation`` without the cases that passed in the run of ``scope``.

    Return ``None`` if no case is left.
    """
    right = scope.passed if scope is not None else frozenset[str]()
    if right.isdisjoint(observation.failed_cases):
        return observation
    still_failing = [case for case in observation.failed_cases if case not in right]
    if not still_failing:
        return None
    return observation.remove_cases(
        right, redact(f"These cases still fail, or were not graded since: {format_ids(still_failing)}.")
    )
