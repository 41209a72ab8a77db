"""One fault of the monitor is over, said by whoever watches it: a run's end says nothing of what it did not see."""

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


async def fault_over(desk: Desk, what: str, *, began_at: datetime, words: str | None) -> None:
    """End the fault ``what`` of the desk's target, if it is open; ``words`` are said in its thread, or nothing.

    ``began_at`` is when the look began that did not find it any more. Raises `WarehouseError`.
    """
    key = fingerprint(desk.target, IncidentKind.MONITOR_FAULT, what)
    open_ones = await asyncio.to_thread(desk.store.open_incidents, desk.target)
    if not any(one.fingerprint == key for one in open_ones):
        return

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
