"""The monitor broke: say so, even when nothing can be stored."""

from __future__ import annotations

from typing import NamedTuple

from flows.desk import Desk
from flows.notify import Notice, composed, tell
from monitors.alerts.events import Sighting, monitor_fault
from monitors.alerts.lifecycle import decide
from monitors.errors import MonitorError, NotifyError, WarehouseError
from monitors.records.incidents import Observation


class Fault(NamedTuple):
    """What broke: its stable name, which makes it the same incident next time, and the words for a person."""

    what: str
    detail: str


def fault_of(error: BaseException) -> Fault:
    """The fault that an exception tells of."""
    name = type(error).__name__
    return Fault(name, str(error) if isinstance(error, MonitorError) else f"{name}: {error}")


async def tell_fault(desk: Desk, fault: Fault, *, commit: str | None = None) -> None:
    """One message about the monitor. Never raises for a store that cannot be written: it is sent all the same.

    Without the store nobody knows whether it was said before, so each run that meets the fault says it.
    """
    at = Sighting(target=desk.target, run_id=desk.run_id, seen_at=desk.now(), commit=commit)
    seen = monitor_fault(at, what=fault.what, detail=fault.detail)
    try:
        await tell(desk, [seen], notice=Notice(commit=commit))
    except (WarehouseError, OSError):
        await _tell_unstored(desk, seen, Notice(commit=commit))


async def _tell_unstored(desk: Desk, seen: Observation, notice: Notice) -> None:
    settled = decide({}, [seen], now=desk.now(), settings=desk.settings)
    for alert in composed(desk, settled, notice):
        try:
            await desk.sender.send(alert, again=True)
        except NotifyError:
            await desk.terminal.send(alert)
