"""Items to tell → messages: grouped, so that five hundred failures are one message and not five hundred."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from monitors.records.incidents import Alert, AlertItem, IncidentKind, Link, NotifyReason

ID_CHARACTERS: Final = 8
"""Base-32 characters of an alert's id: 40 bits, a collision in a year of 10,000 alerts is below 1 in 20,000."""

OPENING: Final = frozenset({NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED})
"""Reasons that share a message, which begins a thread unless this run has begun one already."""


class _Group(NamedTuple):
    kind: IncidentKind
    reason: NotifyReason
    thread: str
    channel: str


def compose(
    items: Sequence[AlertItem],
    *,
    target: str,
    run_id: str,
    now: datetime,
    commit: str | None = None,
    flat: str | None = None,
    weighted: str | None = None,
    links: Sequence[Link] = (),
) -> tuple[Alert, ...]:
    """Group ``items`` by kind and reason class (and thread, for what is said in one), worst message first.

    First sightings and regressions of one kind share a message; what is worse, reminded or recovered goes to the
    thread it belongs to. The id follows from run and content, so that two workers with the same news compose the
    same message. Within a message the worst comes first, then what is new, then by case.
    """
    groups: dict[_Group, list[AlertItem]] = {}
    for item in items:
        groups.setdefault(_group_of(item), []).append(item)
    alerts = [
        Alert(
            id=_alert_id(target, run_id, group, members),
            kind=group.kind,
            target=target,
            run_id=run_id,
            created_at=now,
            severity=max(item.incident.severity for item in members),
            reason=reason_of(members),
            items=tuple(sorted(members, key=urgency)),
            commit=commit,
            flat=flat,
            weighted=weighted,
            links=tuple(links),
        )
        for group, members in groups.items()
    ]
    return tuple(sorted(alerts, key=lambda alert: (-alert.severity, alert.kind.value, alert.id)))


def thread_of(alert: Alert) -> str | None:
    """The thread an alert belongs to: ``None`` for one that begins its own, or whose first message has none."""
    return alert.items[0].incident.thread


def channel_of(alert: Alert) -> str | None:
    """The channel that `thread_of` is in; ``None`` where the sender's default holds."""
    return alert.items[0].incident.channel


def _group_of(item: AlertItem) -> _Group:
    reason = NotifyReason.FIRST_SEEN if item.reason in OPENING else item.reason
    return _Group(item.incident.kind, reason, item.incident.thread or "", item.incident.channel or "")


def reason_of(members: Sequence[AlertItem]) -> NotifyReason:
    """The reason of a group; one that opens is ``regressed`` only when nothing in it is new."""
    reasons = {item.reason for item in members}
    return NotifyReason.FIRST_SEEN if NotifyReason.FIRST_SEEN in reasons else members[0].reason


def urgency(item: AlertItem) -> tuple[int, bool, str, str]:
    """How items are sorted within a message: the worst first, then what is new, then by case."""
    return (
        -item.incident.severity,
        item.reason is not NotifyReason.FIRST_SEEN,
        item.incident.case_id or "",
        item.incident.fingerprint,
    )


def _alert_id(target: str, run_id: str, group: _Group, members: Sequence[AlertItem]) -> str:
    fingerprints = sorted(item.incident.fingerprint for item in members)
    canonical = json.dumps([target, run_id, *group, fingerprints]).encode()
    digest = base64.b32encode(hashlib.sha256(canonical).digest()).decode("ascii")
    return f"LK-{digest[:ID_CHARACTERS]}"
