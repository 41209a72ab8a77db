"""Groups alert items into messages, so that five hundred failures are one message and not five hundred.

Also composes the nightly digest, one message a day that says how things stand, even when nothing is wrong. A run's
first alert grows: it is shown again with all that the run has found since, so that a run is one message and not a
flood.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from monitors.alerts.message import short_commit, utc
from monitors.alerts.wording import (
    ABOUT_THE_MONITOR,
    RECOVERED_MARK,
    SEVERITY_MARKS,
    TRAFFIC_CASE,
    UNKNOWN_MARK,
    format_fault,
)
from monitors.plural import plural
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import (
    Alert,
    AlertItem,
    Incident,
    IncidentKind,
    IncidentState,
    Link,
    NotifyReason,
    Redacted,
)

LISTED = 10
"""Open incidents named one by one; the rest is counted."""


class DigestFigure(Record):
    """One figure of the nightly run with its words: ``severity-3 rate``, ``0.3 % [0.1, 0.8]``."""

    label: str
    value: str


class Digest(Record):
    """What one nightly run found. ``incidents`` are open now; ``recovered`` were resolved since the last one.

    ``note`` is anything the reader must know of the nightly run itself: that the budget cut it short, say.
    ``unknown`` says in two or three words what the run could not establish: then it is no good news that nothing is
    open.
    """

    id: Identifier
    target: Identifier
    run_id: Identifier
    made_at: UtcTime
    figures: tuple[DigestFigure, ...] = ()
    incidents: tuple[Incident, ...] = ()
    recovered: int = 0
    note: Redacted | None = None
    unknown: str = ""
    links: tuple[Link, ...] = ()

    @property
    def open_incidents(self) -> tuple[Incident, ...]:
        """The unresolved ones, worst first, then oldest."""
        still = [one for one in self.incidents if one.state is not IncidentState.RESOLVED]
        return tuple(sorted(still, key=lambda one: (-one.severity, one.opened_at, one.fingerprint)))


def digest_headline(digest: Digest) -> str:
    """``🔴 3 open, 1 of them SEV 3 · suraksha-demo · night of 2026-03-01``."""
    still = digest.open_incidents
    where = f"{digest.target} · night of {digest.made_at:%Y-%m-%d}"
    doubt = f", {digest.unknown}" if digest.unknown else ""
    if not still:
        return f"{UNKNOWN_MARK if doubt else RECOVERED_MARK} Nothing open{doubt} · {where}"
    worst = still[0].severity
    grave = sum(one.severity is worst for one in still)
    return f"{SEVERITY_MARKS[worst]} {len(still):,} open, {grave:,} of them SEV {int(worst)}{doubt} · {where}"


def digest_lines(digest: Digest) -> tuple[str, ...]:
    """One line per open incident, the worst first; the last one counts what is not named."""
    still = digest.open_incidents
    lines = [_line(one, digest.made_at) for one in still[:LISTED]]
    if len(still) > LISTED:
        lines.append(f"… and {plural(len(still) - LISTED, 'more', 'more')}")
    return tuple(lines)


def _line(incident: Incident, now: datetime) -> str:
    days = max(0, (now - incident.opened_at).days)
    commit = incident.first_commit
    since = f"deploy {short_commit(commit)}" if commit else utc(incident.opened_at)
    word = "found" if (incident.case_id or "").startswith(TRAFFIC_CASE) and not commit else "since"
    pieces = [
        f"{SEVERITY_MARKS[incident.severity]} {format_fault(incident)}",
        incident.case_id or "",
        f"{plural(days, 'day') if days else 'new'}, {word} {since}",
        "acknowledged" if incident.state is IncidentState.ACKNOWLEDGED else "",
    ]
    return " · ".join(piece for piece in pieces if piece)


ID_CHARACTERS: Final = 8
"""Base-32 characters of an alert's id: 40 bits, a collision in a year of 10,000 alerts is below 1 in 20,000."""

OPENING: Final = frozenset({NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED})
"""Reasons that share a message. The message starts a thread unless this run has already started one."""


BEGINS_A_THREAD: Final = OPENING | {NotifyReason.OPEN_BEFORE}
"""Reasons whose message stands by itself: later alerts of its incidents go below it."""


class _Group(NamedTuple):
    kind: IncidentKind | None
    reason: NotifyReason
    thread: str
    channel: str
    seen_before: bool = False


def compose(
    items: Sequence[AlertItem],
    *,
    target: str,
    run_id: str,
    now: datetime,
    commit: str | None = None,
    flat: str | None = None,
    weighted: str | None = None,
    dimensions: str | None = None,
    in_common: Sequence[str] = (),
    changed: Sequence[str] = (),
    links: Sequence[Link] = (),
    under_way: bool = False,
    production: bool = False,
) -> tuple[Alert, ...]:
    """Group ``items`` by kind and reason class (and thread, for replies in one), worst message first.

    First observations and regressions of one kind share a message; what is worse, reminded or recovered goes to the
    thread it belongs to. What was open before anybody could be notified is one message about the application and
    one about the monitor, whatever its kinds; what this run did not see itself, another one. What recovered shares
    a message, whatever its kinds, where its thread is the same. The id follows from run and content, so that two
    workers with the same news compose the same message. Within a message the worst comes first, then what is new,
    then by case.
    """
    alerts = [
        Alert(
            id=_alert_id(target, run_id, group, members),
            kind=min(members, key=urgency).incident.kind,
            target=target,
            run_id=run_id,
            created_at=now,
            severity=max(item.incident.severity for item in members),
            reason=reason_of(members),
            items=tuple(sorted(members, key=urgency)),
            commit=commit,
            flat=flat,
            weighted=weighted,
            dimensions=dimensions,
            in_common=tuple(in_common),
            changed=tuple(changed),
            links=tuple(links),
            under_way=under_way,
            production=production,
        )
        for group, members in _grouped(items, run_id).items()
    ]
    return tuple(sorted(alerts, key=lambda alert: (-alert.severity, alert.kind.value, alert.id)))


def _grouped(items: Sequence[AlertItem], run_id: str) -> dict[_Group, list[AlertItem]]:
    groups: dict[_Group, list[AlertItem]] = {}
    for item in items:
        groups.setdefault(_group_of(item, run_id), []).append(item)
    return groups


def thread_of(alert: Alert) -> str | None:
    """The thread an alert belongs to: ``None`` for one that starts its own, or whose first message has none."""
    return alert.items[0].incident.thread


def channel_of(alert: Alert) -> str | None:
    """The channel that `thread_of` is in; ``None`` where the sender's default holds."""
    return alert.items[0].incident.channel


def _group_of(item: AlertItem, run_id: str) -> _Group:
    subject = IncidentKind.MONITOR_FAULT if item.incident.kind in ABOUT_THE_MONITOR else None
    place = (item.incident.thread or "", item.incident.channel or "")
    if item.reason is NotifyReason.OPEN_BEFORE:
        return _Group(subject, item.reason, "", "", seen_before=item.observation.run_id != run_id)
    if item.reason is NotifyReason.RECOVERED:
        return _Group(subject, item.reason, *place)
    reason = NotifyReason.FIRST_SEEN if item.reason in OPENING else item.reason
    return _Group(item.incident.kind, reason, *place)


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
    what = (group.kind, group.reason, group.thread, group.channel)
    canonical = json.dumps([target, run_id, *what, fingerprints]).encode()
    digest = base64.b32encode(hashlib.sha256(canonical).digest()).decode("ascii")
    return f"LK-{digest[:ID_CHARACTERS]}"


def continues_an_alert(alert: Alert) -> bool:
    """Whether ``alert`` is news of a run that already alerted of this kind: it belongs in that first message."""
    return alert.reason in OPENING and thread_of(alert) is not None


def grown(first: Alert, later: Sequence[Alert]) -> Alert:
    """``first`` with everything that ``later`` brought, the worst first; id and time stay those of the first.

    Scores and links are the newest there are. A fault that came twice is shown as it was reported last.
    """
    everything = (first, *later)
    newest: dict[str, AlertItem] = {}
    for alert in everything:
        newest |= {item.incident.fingerprint: item for item in alert.items}
    items = tuple(sorted(newest.values(), key=urgency))
    return first.model_copy(
        update={
            "items": items,
            "severity": max(item.incident.severity for item in items),
            "reason": reason_of(items),
            "flat": _newest([one.flat for one in everything]),
            "weighted": _newest([one.weighted for one in everything]),
            "dimensions": _newest([one.dimensions for one in everything]),
            "in_common": next((one.in_common for one in reversed(everything) if one.in_common), ()),
            "changed": next((one.changed for one in reversed(everything) if one.changed), ()),
            "links": next((one.links for one in reversed(everything) if one.links), ()),
            "under_way": all(one.under_way for one in everything),
        }
    )


def _newest(values: Sequence[str | None]) -> str | None:
    return next((value for value in reversed(values) if value is not None), None)
