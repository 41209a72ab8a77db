"""Messages as they stand in a channel: what is shown together, where, and what people did about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from monitors.records.incidents import Alert, IncidentKind
from monitors.records.marks import Mark
from monitors.records.people import ActionOutcome, PersonAction
from warehouse.people import SHOWN_TOGETHER
from warehouse.store import Store

_MARKS = """
select a.kind, a.done_by, a.via, a.done_at, o.fingerprints
from actions a join action_outcomes o on o.action_id = a.id
where o.effect = 'done' and list_has_any(o.fingerprints, string_split($about, ','))
  and (a.alert_id = $alert or a.done_at >= $since::timestamptz)
order by a.done_at, a.id
"""

_FIRST_MESSAGES = """
select r.channel, r.thread, arg_min(a.id, (a.created_at, a.id))
from incidents i
join receipts r
  on r.thread = i.record->>'thread' and r.channel = i.record->>'channel' and r.status = 'sent'
join alerts a on a.id = r.alert_id and a.target = i.target and a.reason in ('first_seen', 'regressed')
where list_contains(string_split($about, ','), i.fingerprint)
group by r.channel, r.thread order by all
"""


class FirstPage(NamedTuple):
    """When a run first told of something, and which run that was."""

    run_id: str
    created_at: datetime


def newest_page(store: Store, target: str, kind: IncidentKind) -> FirstPage | None:
    """The run that told of this kind last, by its first message; ``None`` where none ever did."""
    found = store.query(
        "select run_id, min(created_at) as first_at from alerts where target = $target and kind = $kind"
        " and reason in ('first_seen', 'regressed') group by run_id order by first_at desc limit 1",
        {"target": target, "kind": kind.value},
    )
    for run_id, first_at in found.rows:
        if isinstance(first_at, datetime):
            return FirstPage(str(run_id), first_at)
    return None


def is_waiting(store: Store, not_tried_since: datetime) -> bool:
    """Whether a message waits to be sent that nobody has tried since then, as when its run was killed."""
    found = store.query(
        "select 1 from unsent_alerts u where not exists"
        " (select 1 from receipts r where r.alert_id = u.id and r.tried_at > $since::timestamptz) limit 1",
        {"since": not_tried_since.isoformat()},
    )
    return bool(found.rows)


def alert_shown(store: Store, alert_id: str) -> tuple[Alert, ...]:
    """A message, and after it what its run has shown in the same one since; empty when it is not known here."""
    mine = store.query("select record from alerts where id = $alert", {"alert": alert_id}).rows
    others = store.query(SHOWN_TOGETHER, {"alert": alert_id}).rows
    records = [str(row[0]) for row in mine] + [str(row[2]) for row in others if row[1] != alert_id]
    return tuple(Alert.model_validate_json(record) for record in records)


def marks_on(store: Store, alert: Alert) -> tuple[Mark, ...]:
    """What people did about any incident of ``alert`` since it was sent, oldest first."""
    about = ",".join(item.incident.fingerprint for item in alert.items)
    found = store.query(
        _MARKS,
        {"about": about, "alert": alert.id, "since": alert.created_at.isoformat()},
    )
    names = ("kind", "by", "via", "at", "fingerprints")
    return tuple(Mark.model_validate(dict(zip(names, row, strict=True))) for row in found.rows)


def first_messages_of(store: Store, fingerprints: Sequence[str]) -> Sequence[tuple[str, str, str]]:
    """Channel, ``ts`` and first alert of the messages that these incidents' threads begin with."""
    found = store.query(_FIRST_MESSAGES, {"about": ",".join(fingerprints)})
    return [(str(channel), str(ts), str(alert_id)) for channel, ts, alert_id in found.rows]


def action_of(store: Store, action_id: str) -> PersonAction | None:
    """An action as it was kept; of two deliveries of the same click, the first."""
    rows = store.query("select record from actions where id = $action", {"action": action_id}).rows
    return PersonAction.model_validate_json(str(rows[0][0])) if rows else None


def outcomes(
    store: Store, *, action_id: str | None = None, since: datetime | None = None
) -> tuple[ActionOutcome, ...]:
    """What came of one action, or of all that were carried out since a time, oldest first."""
    found = store.query(
        "select action_id, carried_out_at, effect, fingerprints, text from action_outcomes"
        " where ($action is null or action_id = $action)"
        " and ($since is null or carried_out_at >= $since::timestamptz) order by carried_out_at, action_id",
        {"action": action_id, "since": since.isoformat() if since else None},
    )
    names = ("action_id", "at", "effect", "fingerprints", "text")
    return tuple(ActionOutcome.model_validate(dict(zip(names, row, strict=True))) for row in found.rows)
