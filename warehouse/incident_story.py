"""Incidents for a person: which there are, and everything that ever happened to one."""

from __future__ import annotations

from datetime import datetime

from monitors.records.base import Record, UtcTime
from monitors.records.incidents import Alert, DeliveryStatus, Incident, NotifyReason
from monitors.records.people import ActionOutcome, PersonAction
from monitors.records.silences import Silence
from warehouse.store import Store


class Told(Record):
    """A message about an incident: why it was sent, and what became of it."""

    alert_id: str
    reason: NotifyReason
    run_id: str
    created_at: UtcTime
    status: DeliveryStatus | None
    detail: str


class Done(Record):
    """What a person did about it, and what came of that."""

    action: PersonAction
    outcome: ActionOutcome | None


class Evidence(Record):
    """Where one run keeps what it saw: paths inside the run's folder."""

    run_id: str
    screenshot: str | None
    trace: str | None


class Story(Record):
    """One incident from its first day: how it stood, what was told, what people did, where the evidence is."""

    incident: Incident
    versions: tuple[Incident, ...]
    told: tuple[Told, ...]
    last_alert: Alert | None
    done: tuple[Done, ...]
    silences: tuple[Silence, ...]
    evidence: tuple[Evidence, ...]


def all_incidents(store: Store, *, resolved_too: bool = False, target: str | None = None) -> tuple[Incident, ...]:
    """Incidents as they stand: the unresolved ones first, the worst and the latest first among equals."""
    found = store.query(
        "select record from incidents where ($all or state <> 'resolved') and ($target is null or target = $target)"
        " order by state = 'resolved', severity desc, last_seen_at desc, fingerprint",
        {"all": resolved_too, "target": target},
    )
    return tuple(Incident.model_validate_json(str(row[0])) for row in found.rows)


def silences_kept(store: Store) -> tuple[Silence, ...]:
    """All silences, those that are over included, newest first."""
    found = store.query("select record from silences order by starts_at desc, id")
    return tuple(Silence.model_validate_json(str(row[0])) for row in found.rows)


def story_of(store: Store, incident: Incident) -> Story:
    """Everything that is known of ``incident``."""
    key = incident.fingerprint
    versions = store.query(
        "select record from incident_history where fingerprint = $key order by sequence", {"key": key}
    )
    alerts = _alerts(store, incident)
    return Story(
        incident=incident,
        versions=tuple(Incident.model_validate_json(str(row[0])) for row in versions.rows),
        told=tuple(_told(store, alert) for alert in alerts),
        last_alert=alerts[-1] if alerts else None,
        done=_done(store, incident, alerts),
        silences=tuple(one for one in silences_kept(store) if one.covers(incident, _within(one))),
        evidence=_evidence(store, incident),
    )


def _within(silence: Silence) -> datetime:
    """A time at which it is in force: it is asked what it covers, not when."""
    return silence.starts_at


def _alerts(store: Store, incident: Incident) -> tuple[Alert, ...]:
    found = store.query(
        "select record from alerts where target = $target and contains(cast(record as varchar), $key)"
        " order by created_at, id",
        {"target": incident.target, "key": incident.fingerprint},
    )
    return tuple(Alert.model_validate_json(str(row[0])) for row in found.rows)


def _told(store: Store, alert: Alert) -> Told:
    last = store.query(
        "select status, detail from receipts where alert_id = $alert order by tried_at desc limit 1",
        {"alert": alert.id},
    ).rows
    return Told(
        alert_id=alert.id,
        reason=alert.reason,
        run_id=alert.run_id,
        created_at=alert.created_at,
        status=DeliveryStatus(str(last[0][0])) if last else None,
        detail=str(last[0][1]) if last else "",
    )


def _done(store: Store, incident: Incident, alerts: tuple[Alert, ...]) -> tuple[Done, ...]:
    """What came of it is asked first: a press on a whole message is about the incidents of its outcome."""
    found = store.query(
        "select a.record, o.action_id, o.carried_out_at, o.effect, o.fingerprints, o.text"
        " from actions a left join action_outcomes o on o.action_id = a.id"
        " where list_contains(o.fingerprints, $key) or list_contains(a.fingerprints, $key)"
        " or (o.action_id is null and list_contains(string_split($alerts, ','), a.alert_id))"
        " order by a.done_at, a.id",
        {"key": incident.fingerprint, "alerts": ",".join(alert.id for alert in alerts)},
    )
    return tuple(
        Done(action=PersonAction.model_validate_json(str(record)), outcome=_outcome(tuple(rest)))
        for record, *rest in found.rows
    )


def _outcome(columns: tuple[object, ...]) -> ActionOutcome | None:
    names = ("action_id", "at", "effect", "fingerprints", "text")
    return ActionOutcome.model_validate(dict(zip(names, columns, strict=True))) if columns[0] else None


def _evidence(store: Store, incident: Incident) -> tuple[Evidence, ...]:
    if incident.case_id is None:
        return ()
    found = store.query(
        "select run_id, screenshot, trace from results where case_id = $case and run_id = $run order by repeat",
        {"case": incident.case_id, "run": incident.last_run_id},
    )
    names = ("run_id", "screenshot", "trace")
    return tuple(Evidence.model_validate(dict(zip(names, row, strict=True))) for row in found.rows)
