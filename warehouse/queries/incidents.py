"""Queries for incidents and their messages: lists of incidents, and the history of one incident."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from monitors.records.base import Record, UtcTime
from monitors.records.incidents import Alert, DeliveryStatus, Incident, IncidentKind, NotifyReason, OperatorMark
from monitors.records.operator_actions import ActionOutcome, OperatorAction, Silence
from warehouse.database.store import Store
from warehouse.journal.segments import build_lower_bound_id, parse_time
from warehouse.queries.operator_actions import SHOWN_TOGETHER


class IncidentMessage(Record):
    """A message about an incident, with the reason for the message and its delivery status."""

    alert_id: str
    reason: NotifyReason
    run_id: str
    created_at: UtcTime
    status: DeliveryStatus | None
    detail: str


class IncidentAction(Record):
    """A person's action on the incident, and its result."""

    action: OperatorAction
    outcome: ActionOutcome | None


class RunEvidence(Record):
    """The paths of the stored evidence of one run, relative to the run's folder."""

    run_id: str
    screenshot: str | None
    trace: str | None


class Story(Record):
    """The history of an incident: its states, its messages, people's actions and its evidence."""

    incident: Incident
    versions: tuple[Incident, ...]
    messages: tuple[IncidentMessage, ...]
    last_alert: Alert | None
    done: tuple[IncidentAction, ...]
    silences: tuple[Silence, ...]
    evidence: tuple[RunEvidence, ...]


def list_incidents(store: Store, *, resolved_too: bool = False, target: str | None = None) -> tuple[Incident, ...]:
    """List the unresolved incidents, the most severe and latest ones first. ``target`` selects one target.

    If ``resolved_too`` is true, the resolved incidents are listed after the unresolved ones.
    """
    table = store.query(
        "select record from incidents where ($all or state <> 'resolved') and ($target is null or target = $target)"
        " order by state = 'resolved', severity desc, last_seen_at desc, fingerprint",
        {"all": resolved_too, "target": target},
    )
    return tuple(Incident.model_validate_json(str(row[0])) for row in table.rows)


_LATEST_ALERTS = """
with shown as (
  select id, created_at, unnest(json_extract_string(record, '$.items[*].incident.fingerprint')) as fingerprint
  from alerts where list_contains(string_split($targets, chr(10)), target)
)
select fingerprint, arg_max(id, (created_at, id)) from shown
where list_contains(string_split($about, ','), fingerprint) group by fingerprint
"""


def find_latest_alert_ids(store: Store, incidents: Sequence[Incident]) -> Mapping[str, str]:
    """Find the id of the last alert about each of ``incidents``. The result maps fingerprints to ids."""
    fingerprints = ",".join(incident.fingerprint for incident in incidents)
    targets = "\n".join({incident.target for incident in incidents})
    table = store.query(_LATEST_ALERTS, {"about": fingerprints, "targets": targets})
    return {str(fingerprint): str(alert_id) for fingerprint, alert_id in table.rows}


def list_all_silences(store: Store) -> tuple[Silence, ...]:
    """List all silences, newest first, including expired silences.

    Silences that a newer version of Lookout stored are skipped.
    """
    silences: list[Silence] = []
    for row in store.query("select record from silences order by starts_at desc, id").rows:
        with suppress(ValidationError):  # a newer Lookout wrote this row
            silences.append(Silence.model_validate_json(str(row[0])))
    return tuple(silences)


_WITHHELD = """
select h.segment_id, h.record from incident_history h
where h.last_notified_at is null and h.state = 'open' and h.segment_id >= $since
  and not exists (
    select 1 from alerts a where a.reason = 'silenced' and a.target = h.target and a.segment_id > h.segment_id
      and contains(cast(a.record as varchar), h.fingerprint)
  )
order by h.sequence
"""


def list_withheld_incidents_to_summarise(store: Store, since: datetime) -> Sequence[tuple[datetime, Incident]]:
    """List the incidents whose alert was withheld at ``since`` or later, oldest first.

    An incident is skipped if a summary at the end of its silence has already reported it. Each item contains the
    time at which the alert was withheld, and the incident's state at that time.
    """
    table = store.query(_WITHHELD, {"since": build_lower_bound_id(since)})
    return [(parse_time(str(segment)), Incident.model_validate_json(str(record))) for segment, record in table.rows]


def load_incident_history(store: Store, incident: Incident, silences: Sequence[Silence]) -> Story:
    """Load the history of ``incident``. The history includes only those ``silences`` that affect the incident."""
    key = incident.fingerprint
    versions = store.query(
        "select record from incident_history where fingerprint = $key order by sequence", {"key": key}
    )
    messages = _list_messages(store, incident)
    return Story(
        incident=incident,
        versions=tuple(Incident.model_validate_json(str(row[0])) for row in versions.rows),
        messages=messages,
        last_alert=_load_alert(store, messages[-1].alert_id) if messages else None,
        done=_list_actions(store, incident, messages),
        silences=tuple(s for s in silences if s.is_about(incident) and s.ended_by is None),
        evidence=_list_evidence(store, incident),
    )


_MESSAGES = """
select a.id, a.reason, a.run_id, a.created_at, r.status, coalesce(r.detail, '')
from alerts a left join (
  select alert_id, arg_max(status, tried_at) as status, arg_max(detail, tried_at) as detail
  from receipts group by alert_id
) r on r.alert_id = a.id
where a.target = $target and contains(cast(a.record as varchar), $key)
order by a.created_at, a.id
"""


def _list_messages(store: Store, incident: Incident) -> tuple[IncidentMessage, ...]:
    """List the messages about the incident without their texts, because a long incident has many reminders."""
    table = store.query(_MESSAGES, {"target": incident.target, "key": incident.fingerprint})
    names = ("alert_id", "reason", "run_id", "created_at", "status", "detail")
    return tuple(IncidentMessage.model_validate(dict(zip(names, row, strict=True))) for row in table.rows)


def _load_alert(store: Store, alert_id: str) -> Alert:
    table = store.query("select record from alerts where id = $alert", {"alert": alert_id})
    return Alert.model_validate_json(str(table.rows[0][0]))


def _list_actions(
    store: Store, incident: Incident, messages: tuple[IncidentMessage, ...]
) -> tuple[IncidentAction, ...]:
    """List people's actions on the incident, oldest first.

    An action on a whole message is listed if its outcome contains the incident. If the action has no outcome yet,
    it is listed if the message is in ``messages``.
    """
    table = store.query(
        "select a.record, o.action_id, o.carried_out_at, o.effect, o.fingerprints, o.text"
        " from actions a left join action_outcomes o on o.action_id = a.id"
        " where list_contains(o.fingerprints, $key) or list_contains(a.fingerprints, $key)"
        " or (o.action_id is null and list_contains(string_split($alerts, ','), a.alert_id))"
        " order by a.done_at, a.id",
        {"key": incident.fingerprint, "alerts": ",".join(message.alert_id for message in messages)},
    )
    return tuple(
        IncidentAction(action=OperatorAction.model_validate_json(str(record)), outcome=_build_outcome(tuple(rest)))
        for record, *rest in table.rows
    )


def _build_outcome(columns: tuple[object, ...]) -> ActionOutcome | None:
    names = ("action_id", "at", "effect", "fingerprints", "text")
    return ActionOutcome.model_validate(dict(zip(names, columns, strict=True))) if columns[0] else None


def _list_evidence(store: Store, incident: Incident) -> tuple[RunEvidence, ...]:
    if incident.case_id is None:
        return ()
    table = store.query(
        "select run_id, screenshot, trace from results where case_id = $case and run_id = $run order by repeat",
        {"case": incident.case_id, "run": incident.last_run_id},
    )
    names = ("run_id", "screenshot", "trace")
    return tuple(RunEvidence.model_validate(dict(zip(names, row, strict=True))) for row in table.rows)


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
join alerts a on a.id = r.alert_id and a.target = i.target
  and a.reason in ('first_seen', 'regressed', 'open_before', 'missed')
where list_contains(string_split($about, ','), i.fingerprint)
group by r.channel, r.thread order by all
"""


_ABOUT_INCIDENTS = """
with about as (
  select a.target, a.id, a.created_at, a.reason, a.record,
    unnest(json_extract_string(a.record, '$.items[*].incident.fingerprint')) as fingerprint
  from alerts a
), ends as (
  select alert_id, bool_or(status = 'sent') as sent, bool_or(status = 'printed') as printed,
    bool_or(status = 'rejected') and not bool_or(status = 'left') as rejected, bool_or(status <> 'failed') as final,
    max(tried_at) as at
  from receipts group by alert_id
)
"""

_PRINTED = (
    _ABOUT_INCIDENTS
    + """
select t.fingerprint, arg_max(t.record, (t.created_at, t.id))
from about t
join incidents i on i.fingerprint = t.fingerprint and i.state = 'open' and t.created_at >= i.opened_at
left join ends e on e.alert_id = t.id
where t.target = $target
group by t.fingerprint
having not coalesce(bool_or(e.sent), false)
  and bool_and(coalesce(e.final, false))
  and bool_or(e.printed) and not bool_or(t.reason in ('open_before', 'missed'))
"""
)
"""Selects the newest message about each open incident whose messages were only printed and never sent."""

_REFUSED = (
    _ABOUT_INCIDENTS  # noqa: S608 - a constant
    + """, newest as (
  select a.target, a.fingerprint, arg_max(a.id, (a.created_at, a.id)) as id,
    arg_max(a.record, (a.created_at, a.id)) as record
  from about a left join ends e on e.alert_id = a.id
  where a.created_at >= $since::timestamptz and (a.reason <> 'reminder' or e.sent)
  group by a.target, a.fingerprint
)
select n.target, n.fingerprint, n.record
from newest n
join ends e on e.alert_id = n.id
join incidents i on i.fingerprint = n.fingerprint and i.state <> 'acknowledged'
where e.rejected and not e.sent and not e.printed and e.at < $tried_before::timestamptz
  and ($target is null or n.target = $target)
"""
)
"""Selects the newest message about each incident, if a channel refused this message permanently.

A refused reminder does not count, because the first alert was already sent. A message is not selected if the last
attempt to send it was after ``$tried_before``.
"""


_OF_RUN = """
select a.record, coalesce(max(r.status) filter (where r.status <> 'failed'), 'waiting')
from alerts a left join receipts r on r.alert_id = a.id
where a.run_id = $run group by a.id, a.created_at, a.record order by a.created_at, a.id
"""

_EARLIER = """
select a.record, case when bool_or(r.status = 'sent') then 'sent' else 'waiting' end
from alerts a left join receipts r on r.alert_id = a.id
where a.target = $target and a.run_id <> $run and a.created_at < $since::timestamptz
group by a.id, a.created_at, a.record
having not coalesce(bool_or(r.status <> 'failed'), false)
  or max(r.tried_at) filter (where r.status = 'sent') >= $since::timestamptz
order by a.created_at, a.id
"""

_SENT = """
select r.channel, r.thread, a.record from alerts a join receipts r on r.alert_id = a.id
where a.run_id = $run and a.target = $target and r.status = 'sent'
  and r.thread is not null and r.channel is not null
order by a.created_at, a.id
"""


class FirstAlert(NamedTuple):
    """A run, and the time of its first alert of a given kind."""

    run_id: str
    created_at: datetime


def find_last_run_with_alert(store: Store, target: str, kind: IncidentKind) -> FirstAlert | None:
    """Find the last run that created an alert of this kind, and the time of the run's first alert of this kind.

    Returns ``None`` if no run created an alert of this kind.
    """
    table = store.query(
        "select run_id, min(created_at) as first_at from alerts where target = $target and kind = $kind"
        " and reason in ('first_seen', 'regressed') group by run_id order by first_at desc limit 1",
        {"target": target, "kind": kind.value},
    )
    for run_id, first_at in table.rows:
        if isinstance(first_at, datetime):
            return FirstAlert(str(run_id), first_at)
    return None


def find_alerts_only_printed(store: Store, target: str) -> Mapping[str, Alert]:
    """Find the open incidents of ``target`` whose messages were all printed and never sent.

    The result maps the fingerprint of each such incident to its last alert.
    """
    table = store.query(_PRINTED, {"target": target})
    return {str(key): Alert.model_validate_json(str(record)) for key, record in table.rows}


def find_refused_alerts(
    store: Store, target: str | None = None, *, since: datetime, tried_before: datetime
) -> Mapping[str, Mapping[str, Alert]]:
    """Find the last message about each incident, if a channel refused this message permanently.

    The result maps each target to a dictionary of alerts by fingerprint. Only messages that were created at
    ``since`` or later, and last tried before ``tried_before``, are returned. If ``target`` is given, only messages
    about this target are returned. Messages about acknowledged incidents are skipped.
    """
    table = store.query(
        _REFUSED, {"target": target, "since": since.isoformat(), "tried_before": tried_before.isoformat()}
    )
    refused: dict[str, dict[str, Alert]] = {}
    for about, key, record in table.rows:
        refused.setdefault(str(about), {})[str(key)] = Alert.model_validate_json(str(record))
    return refused


class RunMessage(NamedTuple):
    """A message of a run, with its delivery status: sent, printed, rejected or waiting."""

    alert: Alert
    delivery_status: str


def list_alerts_with_delivery_status(store: Store, run_id: str) -> tuple[RunMessage, ...]:
    """List all messages of a run with their delivery status, oldest first."""
    table = store.query(_OF_RUN, {"run": run_id})
    return tuple(RunMessage(Alert.model_validate_json(str(record)), str(status)) for record, status in table.rows)


def list_delayed_messages_of_earlier_runs(
    store: Store, target: str, run_id: str, since: datetime
) -> tuple[RunMessage, ...]:
    """List the messages about ``target`` that other runs created before ``since``, oldest first.

    Only messages that still wait to be sent, or that were sent at ``since`` or later, are listed.
    """
    table = store.query(_EARLIER, {"target": target, "run": run_id, "since": since.isoformat()})
    return tuple(RunMessage(Alert.model_validate_json(str(record)), str(status)) for record, status in table.rows)


def list_sent_alerts(store: Store, run_id: str, target: str) -> Sequence[tuple[str, str, Alert]]:
    """List the channel, the Slack timestamp (``ts``) and the alert of each sent message of a run, oldest first."""
    table = store.query(_SENT, {"run": run_id, "target": target})
    return [(str(channel), str(ts), Alert.model_validate_json(str(record))) for channel, ts, record in table.rows]


def count_alerts_to_send(store: Store, target: str) -> int:
    """Count the alerts about ``target`` that wait to be sent."""
    table = store.query(
        "select count(*) from unsent_alerts where state = 'waiting' and target = $target", {"target": target}
    )
    return int(str(table.rows[0][0]))


def list_targets_with_open_incidents(store: Store) -> tuple[str, ...]:
    """List the names of targets and of parts of Lookout that have open incidents, sorted by name."""
    return tuple(str(row[0]) for row in store.query("select distinct target from open_incidents order by 1").rows)


_REMOVED_TARGETS = """
select i.target from incidents i
where i.state <> 'resolved' and not list_contains(string_split($configured, ','), i.target)
group by i.target
having bool_or(i.record->>'owner' in ('verify', 'nightly', 'hallucination_log', 'repeatability', 'digest'))
  and max(i.last_seen_at) < $since::timestamptz
  and not exists (select 1 from runs r where r.target = i.target and r.started_at >= $since::timestamptz)
order by 1
"""
"""Selects targets that have open incidents, but are not configured and have no recent run.

The owner of an incident shows whether the incident is about a target or about a part of Lookout.
"""


def list_removed_targets_with_incidents(
    store: Store, configured: Iterable[str], since: datetime
) -> tuple[str, ...]:
    """List the targets that have open incidents, are not in ``configured``, and had no run after ``since``."""
    table = store.query(_REMOVED_TARGETS, {"configured": ",".join(configured), "since": since.isoformat()})
    return tuple(str(row[0]) for row in table.rows)


def has_waiting_alert(store: Store, not_tried_since: datetime, now: datetime) -> bool:
    """Return whether any message is still waiting and had no delivery attempt after ``not_tried_since``.

    A message waits, for example, if its run was killed. Attempts later than ``now`` are ignored, because they were
    made before the clock was set back.
    """
    table = store.query(
        "select 1 from unsent_alerts u where state = 'waiting'"
        " and not exists (select 1 from receipts r where r.alert_id = u.id"
        " and r.tried_at > $since::timestamptz and r.tried_at <= $now::timestamptz) limit 1",
        {"since": not_tried_since.isoformat(), "now": now.isoformat()},
    )
    return bool(table.rows)


def load_alerts_of_message(store: Store, alert_id: str) -> tuple[Alert, ...]:
    """Load an alert, and the other alerts that are shown in the same Slack message.

    The result is empty if the alert does not exist.
    """
    first = store.query("select record from alerts where id = $alert", {"alert": alert_id}).rows
    others = store.query(SHOWN_TOGETHER, {"alert": alert_id}).rows
    records = [str(row[0]) for row in first] + [str(row[2]) for row in others if row[1] != alert_id]
    return tuple(Alert.model_validate_json(record) for record in records)


def list_operator_actions_on_alert(store: Store, alert: Alert) -> tuple[OperatorMark, ...]:
    """List people's actions on the incidents of ``alert`` since the alert was sent, oldest first."""
    fingerprints = ",".join(item.incident.fingerprint for item in alert.items)
    table = store.query(
        _MARKS,
        {"about": fingerprints, "alert": alert.id, "since": alert.created_at.isoformat()},
    )
    names = ("kind", "by", "via", "at", "fingerprints")
    return tuple(OperatorMark.model_validate(dict(zip(names, row, strict=True))) for row in table.rows)


def find_slack_thread_starts(store: Store, fingerprints: Sequence[str]) -> Sequence[tuple[str, str, str]]:
    """Find the messages that started the Slack threads of these incidents.

    Each item is the channel, the Slack timestamp (``ts``) and the id of the alert.
    """
    table = store.query(_FIRST_MESSAGES, {"about": ",".join(fingerprints)})
    return [(str(channel), str(ts), str(alert_id)) for channel, ts, alert_id in table.rows]


def find_action(store: Store, action_id: str) -> OperatorAction | None:
    """Find a stored action by its id. Returns ``None`` if there is no such action."""
    rows = store.query("select record from actions where id = $action", {"action": action_id}).rows
    return OperatorAction.model_validate_json(str(rows[0][0])) if rows else None


def list_action_outcomes(
    store: Store, *, action_id: str | None = None, since: datetime | None = None
) -> tuple[ActionOutcome, ...]:
    """List the outcomes of actions, oldest first.

    ``action_id`` selects the outcomes of one action. ``since`` selects the actions that were carried out at that
    time or later.
    """
    table = store.query(
        "select action_id, carried_out_at, effect, fingerprints, text from action_outcomes"
        " where ($action is null or action_id = $action)"
        " and ($since is null or carried_out_at >= $since::timestamptz) order by carried_out_at, action_id",
        {"action": action_id, "since": since.isoformat() if since else None},
    )
    names = ("action_id", "at", "effect", "fingerprints", "text")
    return tuple(ActionOutcome.model_validate(dict(zip(names, row, strict=True))) for row in table.rows)
