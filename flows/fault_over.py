"""Faults of the monitor are over, said by whoever watches them: a run's end says nothing of what it did not see."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

from flows.delivery import LOCK_WAIT_S, deliver
from flows.desk import Desk
from flows.notify import Notice, composed
from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.lifecycle import decide
from monitors.alerts.recovery import close
from monitors.alerts.scope import Scope
from monitors.records.incidents import Incident, IncidentKind, IncidentState
from warehouse import outbox


async def faults_over(desk: Desk, words: Mapping[str, str | None], *, began_at: datetime) -> None:
    """End those faults that are open: by name, with what is said in their thread, ``None`` for nothing.

    ``began_at`` is when the look began that did not find them any more. Raises `WarehouseError`.
    """
    keys = {fingerprint(desk.target, IncidentKind.MONITOR_FAULT, what): said for what, said in words.items()}
    open_ones = await asyncio.to_thread(desk.store.open_incidents, desk.target)
    for one in open_ones:
        if one.fingerprint in keys:
            await _end(desk, one.fingerprint, keys[one.fingerprint], began_at)


async def fault_over(desk: Desk, what: str, *, began_at: datetime, words: str | None) -> None:
    """As `faults_over`, for one."""
    await faults_over(desk, {what: words}, began_at=began_at)


async def _end(desk: Desk, key: str, words: str | None, began_at: datetime) -> None:
    def decision(previous: Mapping[str, Incident]) -> outbox.Decision:
        known = previous.get(key)
        if known is None or known.state is IncidentState.RESOLVED:
            return outbox.Decision()
        if words is None:
            return outbox.Decision(incidents=(close(known, desk.now()),))
        scope = _scope(desk, began_at, words)
        settled = decide({key: known}, [], now=desk.now(), settings=desk.settings, scope=scope)
        return outbox.Decision(incidents=settled.changed, alerts=composed(desk, settled, Notice()))

    await asyncio.to_thread(outbox.decide, desk.store, desk.journal, desk.target, decision, wait_s=LOCK_WAIT_S)
    await deliver(desk)


def _scope(desk: Desk, began_at: datetime, words: str) -> Scope:
    return Scope(
        target=desk.target,
        run_id=desk.run_id,
        began_at=began_at,
        ended_at=desk.now(),
        cleared=frozenset({IncidentKind.MONITOR_FAULT}),
        words=words,
    )
