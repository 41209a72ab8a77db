"""Reports internal faults of Lookout, and resolves the faults that have ended.

The alert about a fault is sent even when the warehouse cannot be written. The part of Lookout that detects a fault
also resolves the fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify, resolve_incidents_and_send_alerts
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation, compute_fingerprint
from monitors.errors import MonitorError, NotifyError, WarehouseError
from monitors.records.incidents import IncidentKind, RunSummary


class Fault(NamedTuple):
    """An internal fault of Lookout: the fixed name of its incident, and a description for people."""

    name: str
    detail: str


def build_fault_from_error(error: BaseException) -> Fault:
    """Build a fault from an exception. The name of the fault is the name of the exception's class."""
    name = type(error).__name__
    return Fault(name, str(error) if isinstance(error, MonitorError) else f"{name}: {error}")


async def notify_fault(notifier: Notifier, fault: Fault, *, commit: str | None = None) -> None:
    """Send an alert about an internal fault of Lookout, even when the store cannot be written.

    ``commit`` is the application's commit that the alert shows. Without the store, Lookout does not know whether
    the fault was reported before. Therefore each run reports the fault again.
    """
    context = ObservationContext(
        target=notifier.target,
        run_id=notifier.run_id,
        seen_at=notifier.now(),
        commit=commit,
        owner=notifier.owner,
    )
    observation = build_monitor_fault_observation(context, fault_name=fault.name, detail=fault.detail)
    summary = RunSummary(commit=commit, production=notifier.production)
    try:
        await notify(notifier, [observation], summary=summary)
    except (WarehouseError, OSError):
        now = notifier.now()
        decision = decide_alerts({}, [observation], now=now, settings=notifier.settings)
        for alert in group_items_into_alerts(
            decision.items, target=notifier.target, run_id=notifier.run_id, now=now, summary=summary
        ):
            try:
                await notifier.sender.send(alert, again=True)
            except NotifyError:
                await notifier.terminal.send(alert)


async def resolve_faults(notifier: Notifier, endings: Mapping[str, str | None], *, began_at: datetime) -> None:
    """Resolve the open faults whose names are in ``endings``.

    ``endings`` maps the name of a fault to the text of the alert that reports its end. If the text is ``None``, no
    alert is sent. ``began_at`` is the time at which the check of these faults began. Raises `WarehouseError`.
    """
    texts_by_fingerprint = {
        compute_fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, name): text
        for name, text in endings.items()
    }
    await resolve_incidents_and_send_alerts(notifier, texts_by_fingerprint, began_at=began_at)


async def resolve_other_faults(
    notifier: Notifier, *, except_names: Collection[str], ending: str, began_at: datetime
) -> None:
    """Resolve all open faults of the notifier's owner, except the faults named in ``except_names``.

    Faults from unexpected exceptions are also resolved, although no caller knows their names. ``ending`` is the
    text of the alerts about the end of the faults. ``began_at`` is the time at which the check of these faults
    began. Raises `WarehouseError`.
    """
    except_fingerprints = {
        compute_fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, name) for name in except_names
    }
    incidents = await asyncio.to_thread(notifier.store.list_open_incidents, notifier.target)
    endings = {
        incident.fingerprint: ending
        for incident in incidents
        if incident.kind is IncidentKind.MONITOR_FAULT
        and incident.owner is notifier.owner
        and incident.fingerprint not in except_fingerprints
    }
    if endings:
        await resolve_incidents_and_send_alerts(notifier, endings, began_at=began_at)
