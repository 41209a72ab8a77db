"""Turns observations into incidents and alerts, and sends the alerts.

    observe → apply operator actions → decide → group → add references → record → send

`monitors.alerts.observe` makes the observations. The stages from "decide" to "record" share one lock and one
transaction. Therefore each alert is decided only once, even by several processes, and is stored before it is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from flows.alerting.notifier import LOCK_WAIT_S, Notifier, apply_waiting_actions
from flows.alerting.send import send_outbox
from flows.alerting.silence_summaries import record_silence_summaries
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import add_links_and_case_alerts, group_items_into_alerts
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation, compute_fingerprint
from monitors.alerts.resolve import ResolutionScope
from monitors.errors import WarehouseError
from monitors.records.incidents import Alert, Capability, IncidentKind, Observation, RunSummary
from warehouse.queries.incidents import (
    find_alerts_only_printed,
    find_latest_alert_ids,
    find_refused_alerts,
    has_waiting_alert,
)
from warehouse.queries.outbox import open_incident_transaction

ALERT_REFUSED: Final = "AlertRefused"
"""The name of the fault that is reported if Slack, or another delivery path, permanently refuses messages."""
REFUSAL_RETRY_AFTER: Final = timedelta(seconds=10)
"""Minimum wait before a refused message is sent again. This wait prevents a second attempt in the same run."""
REFUSAL_VISIT_INTERVAL: Final = timedelta(hours=1)
"""Minimum time between two attempts to send a refused message from the jobs that run every minute.

Without this limit, each of these jobs would add a row to the store every minute.
"""
MAX_REFUSED_AGE: Final = timedelta(days=30)
"""Maximum age of a refused message that is sent again. An older message is never sent."""
RETRY_AFTER: Final = timedelta(seconds=60)

WAREHOUSE: Final = "warehouse"
"""In alerts about the warehouse, this name is shown instead of a target's name."""

NO_SUMMARY: Final = RunSummary()


async def notify(
    notifier: Notifier,
    observations: Sequence[Observation],
    *,
    summary: RunSummary = NO_SUMMARY,
    scope: ResolutionScope | None = None,
) -> tuple[Alert, ...]:
    """Update the target's incidents from ``observations``, send the alerts, and return them.

    ``summary`` contains the facts about the run that the alerts show. At the end of a run, ``scope`` says which
    incidents the run can resolve. An alert that cannot be sent now stays in the outbox, and the next process that
    sends alerts sends it. If Slack refuses an alert, the refusal is reported as an internal fault of Lookout. At
    the end of a run, alerts that reached no person are sent again.
    """
    alerts = await asyncio.to_thread(decide_and_record_alerts, notifier, observations, summary, scope)
    with suppress(WarehouseError):  # the next call of `notify` records them
        await asyncio.to_thread(record_silence_summaries, notifier)
    await _send_outbox_and_record_refusals(notifier)
    if notifier.shared_server is not None and notifier.sender.notifies:
        with suppress(WarehouseError):  # the next call of `notify` records them
            incidents = await asyncio.to_thread(notifier.store.list_open_incidents, notifier.target)
            unresolved = {incident.fingerprint for incident in incidents}
            interval = timedelta(hours=notifier.settings.reminder_interval_h)
            await notifier.shared_server.record_ended_faults(notifier.target, unresolved, interval)
    await notify_of_load_errors(notifier)
    return alerts


async def _send_outbox_and_record_refusals(notifier: Notifier) -> None:
    """Send the alerts in the outbox. A refused alert opens an internal fault; a sent alert resolves that fault."""
    report = await send_outbox(notifier)
    if report.refusals:
        context = ObservationContext(
            target=notifier.target, run_id=notifier.run_id, seen_at=notifier.now(), owner=Capability.DELIVERY
        )
        detail = f"Lookout could not send a message to the main channel: {report.refusals[0]}"
        refusal = build_monitor_fault_observation(context, fault_name=ALERT_REFUSED, detail=detail)
        await asyncio.to_thread(decide_and_record_alerts, notifier, [refusal], NO_SUMMARY, None)
        await send_outbox(notifier)
    elif report.sent:
        with suppress(WarehouseError):  # the next message that is sent resolves it
            await resolve_incidents_and_send_alerts(
                notifier, {compute_refused_alerts_fingerprint(notifier.target): None}, began_at=notifier.now()
            )


async def notify_of_load_errors(notifier: Notifier) -> None:
    """Notify Lookout's owners if this process could not load data from the journal. Each error is reported once.

    The maintenance flow resolves the fault when it checks the warehouse and finds no error.
    """
    errors = notifier.store.pop_load_errors()
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
    await asyncio.to_thread(decide_and_record_alerts, owners, [fault], NO_SUMMARY, None)
    owners.store.pop_load_errors()  # the decision loaded the data again and found the same damaged archive
    await send_outbox(owners)


def decide_and_record_alerts(
    notifier: Notifier, observations: Sequence[Observation], summary: RunSummary, scope: ResolutionScope | None
) -> tuple[Alert, ...]:
    """Run all stages except sending: apply operator actions, then decide, group and record under one lock."""
    silences = apply_waiting_actions(notifier.actions).silences
    undelivered, refused = _read_printed_alerts(notifier), _read_refused_alerts(notifier)
    sent: Mapping[str, str] = {}
    if any(observation.cases_with_alerts for observation in observations):
        with suppress(WarehouseError):  # without the warehouse, the gate's message does not link alerts
            sent = find_latest_alert_ids(notifier.store, notifier.store.list_open_incidents(notifier.target))
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
        alerts = add_links_and_case_alerts(
            alerts, undelivered={**undelivered, **refused}, sent=sent, evidence=evidence
        )
        book.record(decision.changed, alerts)
    return alerts


async def resolve_incidents_and_send_alerts(
    notifier: Notifier, endings: Mapping[str, str | None], *, began_at: datetime
) -> tuple[Alert, ...]:
    """Resolve the open incidents whose fingerprints are in ``endings``. Send and return the alerts about their end.

    ``endings`` maps a fingerprint to the text of the alert. The alert is sent to the incident's thread. If the text
    is ``None``, the incident is resolved without an alert. ``began_at`` is the time at which the check of these
    incidents began. The warehouse's lock is acquired only if an incident is open, because every poll calls this
    function. Raises `WarehouseError`.
    """
    incidents = await asyncio.to_thread(notifier.store.list_open_incidents, notifier.target)
    if not any(incident.fingerprint in endings for incident in incidents):
        return ()
    alerts = await asyncio.to_thread(_resolve_incidents_without_sending, notifier, endings, began_at)
    if alerts:
        await _send_outbox_and_record_refusals(notifier)
    return alerts


def _resolve_incidents_without_sending(
    notifier: Notifier, endings: Mapping[str, str | None], began_at: datetime
) -> tuple[Alert, ...]:
    """Resolve each open incident whose fingerprint is in ``endings``. Record and return the alerts.

    The alerts are not sent. ``endings`` maps a fingerprint to the text of the alert about the resolved incident. If
    the text is ``None``, the incident is resolved without an alert.
    """
    alerts: list[Alert] = []
    refused = _read_refused_alerts(notifier)
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


async def send_undelivered_alerts_again(notifier: Notifier) -> tuple[Alert, ...]:
    """Resend the alerts that reached no person, if alerts can now be delivered to people."""
    is_any = await asyncio.to_thread(lambda: {**_read_printed_alerts(notifier), **_read_refused_alerts(notifier)})
    return await notify(notifier, ()) if is_any else ()


async def send_waiting_alerts(notifier: Notifier) -> None:
    """Send summaries of silences, and the alerts that a killed run recorded but did not send.

    Jobs that run every minute call this function. An alert is skipped if an attempt to send the alert was made in
    the last minute, because Slack may be down. Once an hour, the messages that Slack refused are sent again, for
    every target.
    """
    now = notifier.now()
    summaries = await asyncio.to_thread(record_silence_summaries, notifier)
    if summaries or await asyncio.to_thread(has_waiting_alert, notifier.store, now - RETRY_AFTER, now):
        await _send_outbox_and_record_refusals(notifier)
    if notifier.sender.notifies:
        since, tried_before = now - MAX_REFUSED_AGE, now - REFUSAL_VISIT_INTERVAL
        refused = await asyncio.to_thread(
            find_refused_alerts, notifier.store, since=since, tried_before=tried_before
        )
        run_id = f"{notifier.run_id}-{now:%Y%m%dT%H%M}"  # a second attempt by this process must be another message
        for target in refused:
            await send_undelivered_alerts_again(replace(notifier, target=target, run_id=run_id))


def _read_printed_alerts(notifier: Notifier) -> Mapping[str, Alert]:
    """For each open incident, read the last alert if it was only printed. The keys are the incidents' fingerprints.

    Return an empty mapping if alerts can still only be printed, or if the warehouse cannot be read.
    """
    if not notifier.sender.notifies:
        return {}
    try:
        return find_alerts_only_printed(notifier.store, notifier.target)
    except WarehouseError:
        return {}  # the next notification sends them


def _read_refused_alerts(notifier: Notifier) -> Mapping[str, Alert]:
    """For each incident, read the last alert if every delivery path refused it. The keys are fingerprints.

    The alert that reports the refusals is itself included only if no other alert was refused, and if its incident
    is still open. If this alert is then delivered, Lookout knows that messages can be sent again. Return an empty
    mapping if alerts can only be printed, or if the warehouse cannot be read.
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
        return {}  # the next call of `notify` sends them
    refusal = compute_refused_alerts_fingerprint(target)
    others = {key: alert for key, alert in refused.items() if key != refusal}
    return others or {key: alert for key, alert in refused.items() if key in unresolved}


def compute_refused_alerts_fingerprint(target: str) -> str:
    """Compute the fingerprint of the fault that is reported if messages about ``target`` are refused."""
    return compute_fingerprint(target, IncidentKind.MONITOR_FAULT, ALERT_REFUSED)
