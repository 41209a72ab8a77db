"""Groups alert items into messages. For example, 500 new failures of one kind become one message.

Each message also gets references to the alerts about its cases, to the run that saw the incident, and to the
evidence.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from monitors.alerts.observe import compute_fingerprint
from monitors.alerts.wording import ABOUT_THE_MONITOR
from monitors.records.grades import FailureKind
from monitors.records.incidents import (
    OPENING_REASONS,
    SUMMARY_REASONS,
    Alert,
    AlertItem,
    CaseAlert,
    IncidentKind,
    Link,
    NotifyReason,
    RunSummary,
    choose_alert_reason,
)

ID_CHARACTERS: Final = 8
"""Number of characters of the hash in an alert's id.

8 base-32 characters are 40 bits. With 10,000 alerts a year, the probability that two alerts get the same id is
below 1 in 20,000.
"""


def group_items_into_alerts(
    items: Sequence[AlertItem],
    *,
    target: str,
    run_id: str,
    now: datetime,
    summary: RunSummary = RunSummary(),  # noqa: B008 - frozen
) -> tuple[Alert, ...]:
    """Group ``items`` into as few messages as possible, the worst message first.

    - Failures of one kind that are new or have come back share a message.
    - Reminders, worse failures and recoveries go to the thread of their incident.
    - Earlier alerts that did not reach a person are combined into summaries: one about the application and one
      about the monitor.

    The id of a message is computed from the run and the content. Therefore, two workers with the same items build
    messages with the same ids. Within a message, the worst items come first. Among equally severe items, new items
    come first.
    """
    groups: dict[tuple[IncidentKind | None, NotifyReason, str, str, bool], list[AlertItem]] = {}
    for item in items:
        incident, reason = item.incident, item.reason
        subject = IncidentKind.MONITOR_FAULT if incident.kind in ABOUT_THE_MONITOR else None
        thread, channel = incident.thread or "", incident.channel or ""
        if reason is NotifyReason.OPEN_BEFORE:
            key = subject, reason, "", "", item.observation.run_id != run_id
        elif reason in SUMMARY_REASONS:
            key = subject, reason, "", "", False
        elif reason.is_ending:
            key = subject, reason, thread, channel, False
        else:
            shared = NotifyReason.FIRST_SEEN if reason in OPENING_REASONS else reason
            key = incident.kind, shared, thread, channel, False
        groups.setdefault(key, []).append(item)

    alerts: list[Alert] = []
    for (*place, _), members in groups.items():
        # The alert's id depends on these values and on their order. If they change, old alerts are sent again.
        fingerprints = sorted(item.incident.fingerprint for item in members)
        canonical = json.dumps([target, run_id, *place, fingerprints]).encode()
        digest = base64.b32encode(hashlib.sha256(canonical).digest()).decode("ascii")
        ordered = sorted(members, key=lambda item: item.urgency)
        alert = Alert(
            id=f"LK-{digest[:ID_CHARACTERS]}",
            kind=ordered[0].incident.kind,
            target=target,
            run_id=run_id,
            created_at=now,
            severity=ordered[0].incident.severity,
            reason=choose_alert_reason(members),
            items=tuple(ordered),
        )
        alerts.append(alert.with_summary(summary))
    return tuple(sorted(alerts, key=lambda alert: (-alert.severity, alert.kind.value, alert.id)))


def add_links_and_case_alerts(
    alerts: Sequence[Alert], *, undelivered: Mapping[str, Alert], sent: Mapping[str, str], evidence: str
) -> tuple[Alert, ...]:
    """Return the messages with references to the alerts of a gate's cases, to an earlier run and to the evidence.

    ``undelivered`` maps fingerprints of open incidents to alerts that did not reach a person. ``sent`` maps
    fingerprints of open incidents to the ids of their last alerts. ``evidence`` is the path of the folder on this
    machine that contains the run's evidence.
    """
    alert_ids = {**sent, **{key: alert.id for alert in alerts for key in alert.fingerprints}}
    referring: list[Alert] = []
    for alert in alerts:
        # If one earlier run saw all faults, the message has the scores and links of that run.
        runs = {item.observation.run_id: item.incident.fingerprint for item in alert.items}
        is_missed = alert.reason is NotifyReason.MISSED
        if is_missed or (alert.reason is NotifyReason.OPEN_BEFORE and alert.run_id not in runs):
            is_of_one_run = len(runs) == 1 and not is_missed
            earlier = undelivered[next(iter(runs.values()))] if is_of_one_run else RunSummary()
            summary = RunSummary(
                commit=alert.commit,
                flat=earlier.flat,
                weighted=earlier.weighted,
                links=earlier.links,
                under_way=alert.under_way,
                production=alert.production,
            )
            alert = alert.with_summary(summary)  # noqa: PLW2901 - the same message
        # If a message is sent before the run's report exists, it names the folder of the evidence.
        if alert.under_way and not alert.links:
            show = Link(label="Evidence", href=f"lookout alerts show {alert.id}")
            alert = alert.with_summary(  # noqa: PLW2901 - as above
                RunSummary(links=(show, Link(label="in", href=evidence)), under_way=True).fill_empty_fields_from(
                    alert
                )
            )
        # A gate's message contains the ids of the alerts about its severe cases.
        own_alerts: dict[str, str] = {}
        for case in sorted({case for item in alert.items for case in item.observation.cases_with_alerts}):
            for kind in FailureKind:
                key = compute_fingerprint(alert.target, IncidentKind.CASE_FAILURE, case, kind.value)
                if key in alert_ids:
                    own_alerts[case] = alert_ids[key]
        referring.append(
            alert.with_case_alerts(CaseAlert(case_id=case, alert_id=own_alerts[case]) for case in own_alerts)
        )
    return tuple(referring)
