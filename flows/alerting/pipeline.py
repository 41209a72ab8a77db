"""Notify people: the stages of an alert, from top to bottom.

    observe → apply actions → decide → group, refer → record → send

Observations come from `monitors.alerts.observe`. Operator actions are applied first, each in its own transaction.
Decide, group, refer and record share one lock and one transaction, so that a decision is made once across processes
and is stored before anything is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from flows.alerting.notifier import LOCK_WAIT_S, Notifier, apply_actions
from flows.alerting.send import send_outbox
from flows.alerting.silence_summaries import record_silence_summaries
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import add_references, group_items_into_alerts
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation, compute_fingerprint
from monitors.alerts.resolve import ResolutionScope
from monitors.errors import WarehouseError
from monitors.records.incidents import Alert, Capability, IncidentKind, Observation, RunSummary
from warehouse.queries.incidents import (
    find_latest_alerts,
    find_printed_alerts,
    find_refused_alerts,
    has_waiting_alert,
)
from warehouse.queries.outbox import open_incident_transaction

ALERT_REFUSED: Final = "AlertRefused"
"""The name of the fault of a delivery path that refuses every message until a person fixes it."""
REFUSAL_RETRY_AFTER: Final = timedelta(seconds=10)
"""The next run tries a refused message again, not the run whose message was refused."""
REFUSAL_VISIT_INTERVAL: Final = timedelta(hours=1)
"""How often jobs that run every minute try a refused message again: each try is one more message in the store."""
MAX_REFUSED_AGE: Final = timedelta(days=30)
"""A message that was refused earlier than this is not sent any more, since readers no longer look for it."""
RETRY_AFTER: Final = timedelta(seconds=60)

WAREHOUSE: Final = "warehouse"
"""The subject of messages about the warehouse, instead of a target's name."""

NO_SUMMARY: Final = RunSummary()


async def notify(
    notifier: Notifier,
    observations: Sequence[Observation],
    *,
    summary: RunSummary = NO_SUMMARY,
    scope: ResolutionScope | None = None,
) -> tuple[Alert, ...]:
    """Update the target's incidents from ``observations`` and send the alerts; return the alerts.

    With ``scope`` (the run is over) it resolves the incidents that the run proved to be over. An alert that cannot
    be sent now stays in the outbox, and the next process that delivers sends it. A refused alert becomes a fault of
    the monitor. Open incidents that reached nobody are sent once more, unless the run is still under way.
    """
    alerts = await asyncio.to_thread(record_alerts, notifier, observations, summary, scope)
    with suppress(WarehouseError):  # the next notification records them
        await asyncio.to_thread(record_silence_summaries, notifier)
    await _deliver(notifier)
    if notifier.shared_server is not None and notifier.sender.notifies:
        with suppress(WarehouseError):  # as above
            incidents = await asyncio.to_thread(notifier.store.list_open_incidents, notifier.target)
            unresolved = {incident.fingerprint for incident in incidents}
            interval = timedelta(hours=notifier.settings.reminder_interval_h)
            await notifier.shared_server.record_endings(notifier.target, unresolved, interval)
    await report_load_errors(notifier)
    return alerts


async def _deliver(notifier: Notifier) -> None:
    """Send the alerts in the outbox. A refusal becomes a fault; the next message sent resolves the fault."""
    report = await send_outbox(notifier)
    if report.refusals:
        context = ObservationContext(
            target=notifier.target, run_id=notifier.run_id, seen_at=notifier.now(), owner=Capability.DELIVERY
        )
        detail = f"Lookout could not send a message through the usual channel: {report.refusals[0]}"
        refusal = build_monitor_fault_observation(context, fault_name=ALERT_REFUSED, detail=detail)
        await asyncio.to_thread(record_alerts, notifier, [refusal], NO_SUMMARY, None)
        await send_outbox(notifier)
    elif report.sent:
        with suppress(WarehouseError):  # the next message that goes out resolves it
            await resolve_incidents(
                notifier, {compute_refusal_fingerprint(notifier.target): None}, began_at=notifier.now()
            )


async def report_load_errors(notifier: Notifier) -> None:
    """Notify the monitor's owners once of what this process could not load, whichever reader met it.

    Maintenance resolves it, when it finds the warehouse sound.
    """
    errors = notifier.store.take_load_errors()
    if not errors:
        return
    owners = replace(notifier, target=WAREHOUSE, owner=Capability.MAINTENANCE)
    context = ObservationContext(
        target=owners.target, run_id=owners.run_id, seen_at=owners.now(), owner=owners.owner
    )
    more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
    fault = build_monitor_fault_observation(
        context, fault_name=type(errors[0]).__name__, detail=f"{errors[0]}{more}"
    )
    await asyncio.to_thread(record_alerts, owners, [fault], NO_SUMMARY, None)
    owners.store.take_load_errors()  # the decision loaded the data again and found the same damaged archive
    await send_outbox(owners)


def record_alerts(
    notifier: Notifier, observations: Sequence[Observation], summary: RunSummary, scope: ResolutionScope | None
) -> tuple[Alert, ...]:
    """Run all stages except sending: apply actions, then decide, group, refer and record under one lock."""
    silences = apply_actions(notifier.actions).silences
    undelivered, refused = _read_printed(notifier), _read_refused(notifier)
    sent: Mapping[str, str] = {}
    if any(observation.cases_with_alerts for observation in observations):
        with suppress(WarehouseError):  # a gate's message then names its cases without their alerts
            sent = find_latest_alerts(notifier.store, notifier.store.list_open_incidents(notifier.target))
    with open_incident_transaction(notifier.store, notifier.journal, notifier.target, wait_s=LOCK_WAIT_S) as book:
        decision = decide_alerts(
            book.incidents,
            observations,
            now=notifier.now(),
            settings=notifier.settings,
            scope=scope,
            silences=silences,
            undelivered=undelivered,
            refused=refused,
            under_way=summary.under_way,
        )
        alerts = group_items_into_alerts(
            decision.items,
            target=notifier.target,
            run_id=notifier.run_id,
            now=notifier.now(),
            summary=summary.fill_empty_fields_from(RunSummary(production=notifier.production)),
        )
        evidence = f"{socket.gethostname()}:{notifier.store.database.file.parent}"
        alerts = add_references(alerts, undelivered={**undelivered, **refused}, sent=sent, evidence=evidence)
        book.record(decision.changed, alerts)
    return alerts


async def resolve_incidents(
    notifier: Notifier, endings: Mapping[str, str | None], *, began_at: datetime
) -> tuple[Alert, ...]:
    """Resolve those incidents in ``endings`` that are open; return the alerts.

    ``endings`` maps fingerprints to the text for the incident's thread; ``None`` resolves it without an alert.
    ``began_at`` is when the check started that found them over. The lock is only acquired when one of them is open,
    since this runs at every poll. Raises `WarehouseError`.
    """
    incidents = await asyncio.to_thread(notifier.store.list_open_incidents, notifier.target)
    if not any(incident.fingerprint in endings for incident in incidents):
        return ()
    alerts = await asyncio.to_thread(_record_endings, notifier, endings, began_at)
    if alerts:
        await _deliver(notifier)
    return alerts


def _record_endings(notifier: Notifier, endings: Mapping[str, str | None], began_at: datetime) -> tuple[Alert, ...]:
    """Decide, group and record each ending separately: together they would become one message."""
    alerts: list[Alert] = []
    refused = _read_refused(notifier)
    with open_incident_transaction(notifier.store, notifier.journal, notifier.target, wait_s=LOCK_WAIT_S) as book:
        for key, text in endings.items():
            incident = book.incidents.get(key)
            if incident is None or incident.is_resolved:
                continue
            now = notifier.now()
            if text is None:
                book.record([incident.resolve(now)])
                continue
            scope = ResolutionScope(
                target=notifier.target,
                run_id=notifier.run_id,
                began_at=began_at,
                ended_at=now,
                cleared=frozenset({incident.kind}),
                owner=incident.owner,
                text=text,
            )
            decision = decide_alerts(
                {key: incident}, (), now=now, settings=notifier.settings, scope=scope, refused=refused
            )
            grouped = group_items_into_alerts(
                decision.items,
                target=notifier.target,
                run_id=notifier.run_id,
                now=now,
                summary=RunSummary(production=notifier.production),
            )
            book.record(decision.changed, grouped)
            alerts += grouped
    return tuple(alerts)


async def send_alerts_again(notifier: Notifier) -> tuple[Alert, ...]:
    """Send the alerts of incidents that reached nobody, if a delivery path to people exists now."""
    is_any = await asyncio.to_thread(lambda: {**_read_printed(notifier), **_read_refused(notifier)})
    return await notify(notifier, ()) if is_any else ()


async def send_waiting_alerts(notifier: Notifier) -> None:
    """Send alerts that a killed run recorded but did not send; for jobs that run every minute.

    It also records and sends the summaries of silences. It skips alerts that were tried a moment ago: while Slack
    is down, not every poll tries again. Every hour it tries what Slack refused for good, about any target.
    """
    now = notifier.now()
    summaries = await asyncio.to_thread(record_silence_summaries, notifier)
    if summaries or await asyncio.to_thread(has_waiting_alert, notifier.store, now - RETRY_AFTER, now):
        await _deliver(notifier)
    if notifier.sender.notifies:
        since, tried_before = now - MAX_REFUSED_AGE, now - REFUSAL_VISIT_INTERVAL
        refused = await asyncio.to_thread(
            find_refused_alerts, notifier.store, since=since, tried_before=tried_before
        )
        run_id = f"{notifier.run_id}-{now:%Y%m%dT%H%M}"  # a second try by this process would be another message
        for target in refused:
            await send_alerts_again(replace(notifier, target=target, run_id=run_id))


def _read_printed(notifier: Notifier) -> Mapping[str, Alert]:
    """Read the last alerts about open incidents that were only printed, by fingerprint.

    The result is empty without a delivery path to people.
    """
    if not notifier.sender.notifies:
        return {}
    try:
        return find_printed_alerts(notifier.store, notifier.target)
    except WarehouseError:
        return {}  # the next notification sends them


def _read_refused(notifier: Notifier) -> Mapping[str, Alert]:
    """Read the last alerts about incidents that every delivery path refused, by fingerprint.

    The fault about the refusals ends as soon as a message goes out. Its own message is only included when it is the
    only one: it then shows whether messages go out again.
    """
    if not notifier.sender.notifies:
        return {}
    now, target = notifier.now(), notifier.target
    since, tried_before = now - MAX_REFUSED_AGE, now - REFUSAL_RETRY_AFTER
    try:
        refused = find_refused_alerts(notifier.store, target, since=since, tried_before=tried_before).get(
            target, {}
        )
        unresolved = {incident.fingerprint for incident in notifier.store.list_open_incidents(target)}
    except WarehouseError:
        return {}  # as above
    refusal = compute_refusal_fingerprint(target)
    others = {key: alert for key, alert in refused.items() if key != refusal}
    return others or {key: alert for key, alert in refused.items() if key in unresolved}


def compute_refusal_fingerprint(target: str) -> str:
    """Compute the fingerprint of the fault for refused deliveries, which ends when a message goes out again."""
    return compute_fingerprint(target, IncidentKind.MONITOR_FAULT, ALERT_REFUSED)
