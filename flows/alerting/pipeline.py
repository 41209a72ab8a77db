"""Notify people: the stages of an alert, from top to bottom.

    observe → apply actions → decide → group, refer → record → send

Observations come from whoever watches (`monitors.alerts.observe`). What people pressed is applied first, each
action in a transaction of its own. Decide, group, refer and record share one lock and one transaction, so that a
decision is made once across processes and is stored before anything is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from flows.alerting.notifier import LOCK_WAIT_S, Notifier, apply_actions
from flows.alerting.send import send_outbox
from monitors.alerts.decide import decide
from monitors.alerts.group import group, refer
from monitors.alerts.observe import ObservationContext, fingerprint, monitor_fault
from monitors.alerts.resolve import ResolutionScope
from monitors.errors import WarehouseError
from monitors.records.incidents import Alert, Capability, IncidentKind, Observation, RunSummary
from warehouse.queries.incidents import find_undelivered, latest_alerts
from warehouse.queries.outbox import open_incident_book

ALERT_REFUSED: Final = "AlertRefused"
"""The fault of a delivery path that refuses every message until a person fixes it."""
REFUSED_AGAIN_AFTER: Final = timedelta(seconds=10)
"""What was refused is tried again by the next run, not once more by the one that it was refused to."""

NO_SUMMARY: Final = RunSummary()


async def notify(
    notifier: Notifier,
    observations: Sequence[Observation],
    *,
    summary: RunSummary = NO_SUMMARY,
    scope: ResolutionScope | None = None,
) -> tuple[Alert, ...]:
    """Fold ``observations`` into the target's incidents and send what people must know; return the alerts.

    With ``scope`` (the run is over) it resolves what the run proved gone. An alert that cannot be sent now stays in
    the outbox, and the next process to deliver sends it. One that is refused for good becomes a fault of the
    monitor. Open incidents that reached nobody are sent once with it, unless the run is still under way.
    """
    alerts = await asyncio.to_thread(record_alerts, notifier, observations, summary, scope)
    report = await send_outbox(notifier)
    if report.refusals:
        at = ObservationContext(
            target=notifier.target, run_id=notifier.run_id, seen_at=notifier.now(), owner=Capability.DELIVERY
        )
        detail = f"A message could not go its usual way: {report.refusals[0]}"
        refusal = monitor_fault(at, what=ALERT_REFUSED, detail=detail)
        await asyncio.to_thread(record_alerts, notifier, [refusal], NO_SUMMARY, None)
        await send_outbox(notifier)
    elif report.sent:
        with suppress(WarehouseError):  # the next message that goes out resolves it
            await resolve_incidents(notifier, {refusal_fingerprint(notifier.target): None}, began_at=notifier.now())
    return alerts


def record_alerts(
    notifier: Notifier, observations: Sequence[Observation], summary: RunSummary, scope: ResolutionScope | None
) -> tuple[Alert, ...]:
    """All stages but sending: apply actions, then decide, group, refer and record under one lock."""
    silences = apply_actions(notifier.people).silences
    undelivered = _read_undelivered(notifier)
    sent: Mapping[str, str] = {}
    if any(observation.cases_with_alerts for observation in observations):
        with suppress(WarehouseError):  # a gate's message then names its cases without their alerts
            sent = latest_alerts(notifier.store, notifier.store.open_incidents(notifier.target))
    with open_incident_book(notifier.store, notifier.journal, notifier.target, wait_s=LOCK_WAIT_S) as book:
        decision = decide(
            book.incidents,
            observations,
            now=notifier.now(),
            settings=notifier.settings,
            scope=scope,
            silences=silences,
            undelivered=undelivered,
            under_way=summary.under_way,
        )
        alerts = group(
            decision.items,
            target=notifier.target,
            run_id=notifier.run_id,
            now=notifier.now(),
            summary=summary.over(RunSummary(production=notifier.production)),
        )
        evidence = f"{socket.gethostname()}:{notifier.store.database.file.parent}"
        alerts = refer(alerts, undelivered=undelivered, sent=sent, evidence=evidence)
        book.record(decision.changed, alerts)
    return alerts


async def resolve_incidents(
    notifier: Notifier, endings: Mapping[str, str | None], *, began_at: datetime
) -> tuple[Alert, ...]:
    """Resolve those incidents that are open: by fingerprint, with the text for their thread; return the alerts.

    An incident with the text ``None`` is resolved without an alert. ``began_at`` is when the check started that
    found them gone. The lock is only taken where one of them is open, since this runs at every poll. Raises
    `WarehouseError`.
    """
    incidents = await asyncio.to_thread(notifier.store.open_incidents, notifier.target)
    if not any(incident.fingerprint in endings for incident in incidents):
        return ()
    alerts = await asyncio.to_thread(_record_endings, notifier, endings, began_at)
    if alerts:
        await send_outbox(notifier)
    return alerts


def _record_endings(notifier: Notifier, endings: Mapping[str, str | None], began_at: datetime) -> tuple[Alert, ...]:
    """Decide, group and record each ending for itself: together they would become one message."""
    alerts: list[Alert] = []
    with open_incident_book(notifier.store, notifier.journal, notifier.target, wait_s=LOCK_WAIT_S) as book:
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
            decision = decide({key: incident}, (), now=now, settings=notifier.settings, scope=scope)
            grouped = group(
                decision.items,
                target=notifier.target,
                run_id=notifier.run_id,
                now=now,
                summary=RunSummary(production=notifier.production),
            )
            book.record(decision.changed, grouped)
            alerts += grouped
    return tuple(alerts)


async def send_undelivered(notifier: Notifier) -> tuple[Alert, ...]:
    """Send the target's open incidents that reached nobody, if there is a way to people now."""
    if not await asyncio.to_thread(_read_undelivered, notifier):
        return ()
    return await notify(notifier, ())


def _read_undelivered(notifier: Notifier) -> Mapping[str, Alert]:
    """The last alerts about open incidents that only a terminal has shown, or a channel refused, by fingerprint.

    None without a way to people. A refusal itself is left out: the message that goes out is its end.
    """
    if not notifier.sender.notifies:
        return {}
    try:
        tried_before = notifier.now() - REFUSED_AGAIN_AFTER
        undelivered = find_undelivered(notifier.store, notifier.target, tried_before=tried_before)
    except WarehouseError:
        return {}  # the next notification finds them
    refusal = refusal_fingerprint(notifier.target)
    return {key: alert for key, alert in undelivered.items() if key != refusal}


def refusal_fingerprint(target: str) -> str:
    """The fingerprint of a refused delivery: it ends when a message goes out again, whatever a run finds."""
    return fingerprint(target, IncidentKind.MONITOR_FAULT, ALERT_REFUSED)
