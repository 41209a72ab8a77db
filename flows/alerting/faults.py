"""Faults of the monitor itself: notify people of them, and resolve them once they are over.

People are notified even when nothing can be stored. Whoever watches for a fault also resolves it: a run's end does
not resolve a fault that the run could not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify, resolve_incidents
from monitors.alerts.decide import decide
from monitors.alerts.group import group
from monitors.alerts.observe import ObservationContext, fingerprint, monitor_fault
from monitors.errors import MonitorError, NotifyError, WarehouseError
from monitors.records.incidents import IncidentKind, RunSummary


class Fault(NamedTuple):
    """What broke: its stable name, which makes it the same incident next time, and the words for a person."""

    what: str
    detail: str


def fault_of(error: BaseException) -> Fault:
    """The fault that an exception stands for."""
    name = type(error).__name__
    return Fault(name, str(error) if isinstance(error, MonitorError) else f"{name}: {error}")


async def notify_fault(notifier: Notifier, fault: Fault, *, commit: str | None = None) -> None:
    """Send one alert about the monitor. Never raises for a store that cannot be written: the alert goes out.

    Without the store it is not known whether people were notified already, so each run that meets it reports it.
    """
    at = ObservationContext(
        target=notifier.target,
        run_id=notifier.run_id,
        seen_at=notifier.now(),
        commit=commit,
        owner=notifier.owner,
    )
    observation = monitor_fault(at, what=fault.what, detail=fault.detail)
    summary = RunSummary(commit=commit, production=notifier.production)
    try:
        await notify(notifier, [observation], summary=summary)
    except (WarehouseError, OSError):
        now = notifier.now()
        decision = decide({}, [observation], now=now, settings=notifier.settings)
        for alert in group(
            decision.items, target=notifier.target, run_id=notifier.run_id, now=now, summary=summary
        ):
            try:
                await notifier.sender.send(alert, again=True)
            except NotifyError:
                await notifier.terminal.send(alert)


async def resolve_faults(notifier: Notifier, endings: Mapping[str, str | None], *, began_at: datetime) -> None:
    """Resolve the open faults among ``endings``: by name, as `resolve_incidents` does. Raises `WarehouseError`."""
    keys = {fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, what): text for what, text in endings.items()}
    await resolve_incidents(notifier, keys, began_at=began_at)


async def resolve_other_faults(
    notifier: Notifier, *, but: Collection[str], ending: str, began_at: datetime
) -> None:
    """Resolve all open faults of the notifier's part of the monitor, but those named ``but``: it works again.

    What stopped it altogether has no name that is known beforehand. Raises `WarehouseError`.
    """
    named = {fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, what) for what in but}
    incidents = await asyncio.to_thread(notifier.store.open_incidents, notifier.target)
    endings = {
        incident.fingerprint: ending
        for incident in incidents
        if incident.kind is IncidentKind.MONITOR_FAULT
        and incident.owner is notifier.owner
        and incident.fingerprint not in named
    }
    if endings:
        await resolve_incidents(notifier, endings, began_at=began_at)
