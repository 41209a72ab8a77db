"""Faults of the monitor itself: notify people of them, and resolve them once they are over.

People are notified even when nothing can be stored. The part that detects a fault also resolves it: the end of a
run does not resolve a fault that the run could not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify, resolve_incidents
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.observe import ObservationContext, build_monitor_fault_observation, compute_fingerprint
from monitors.errors import MonitorError, NotifyError, WarehouseError
from monitors.records.incidents import IncidentKind, RunSummary


class Fault(NamedTuple):
    """What broke: a stable name, which identifies the incident, and a text for people."""

    name: str
    detail: str


def build_fault_from_error(error: BaseException) -> Fault:
    """Build the fault that reports an exception."""
    name = type(error).__name__
    return Fault(name, str(error) if isinstance(error, MonitorError) else f"{name}: {error}")


async def notify_fault(notifier: Notifier, fault: Fault, *, commit: str | None = None) -> None:
    """Send one alert about the monitor, even when the store cannot be written.

    Without the store it is unknown whether people were notified already, so every run reports the fault again.
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
    """Resolve those faults named in ``endings`` that are open, with the text for each. Raises `WarehouseError`."""
    texts_by_fingerprint = {
        compute_fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, name): text
        for name, text in endings.items()
    }
    await resolve_incidents(notifier, texts_by_fingerprint, began_at=began_at)


async def resolve_other_faults(
    notifier: Notifier, *, except_names: Collection[str], ending: str, began_at: datetime
) -> None:
    """Resolve all open faults of the notifier's part of the monitor, except those named ``except_names``.

    Unexpected exceptions have names that are not known in advance. Raises `WarehouseError`.
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
        await resolve_incidents(notifier, endings, began_at=began_at)
