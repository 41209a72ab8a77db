"""Tell people: decide once across processes, store, send, store what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from flows.delivery import LOCK_WAIT_S, deliver
from flows.desk import Desk
from flows.people import catch_up
from monitors.alerts.compose import compose
from monitors.alerts.events import Sighting, monitor_fault
from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.lifecycle import Decision, decide
from monitors.alerts.recovery import close
from monitors.alerts.scope import Scope
from monitors.errors import WarehouseError
from monitors.records.base import Record
from monitors.records.incidents import Alert, Incident, IncidentKind, IncidentState, Link, Observation
from monitors.records.runs import RunReport
from warehouse import outbox

ALERT_REFUSED = "AlertRefused"
"""The fault of a way to people that takes no message any more, until a person mends it."""


class Notice(Record):
    """What a message says besides its incidents."""

    commit: str | None = None
    flat: str | None = None
    weighted: str | None = None
    links: tuple[Link, ...] = ()


def notice_of(report: RunReport, links: Sequence[Link]) -> Notice:
    """Both scores of a finished run as messages show them."""
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    return Notice(
        commit=report.commit,
        flat=None if flat is None else f"{flat:.3f}",
        weighted=None if weighted is None else f"{weighted:.3f}",
        links=tuple(links),
    )


async def tell(
    desk: Desk, observations: Sequence[Observation], *, notice: Notice, scope: Scope | None = None
) -> tuple[Alert, ...]:
    """Fold ``observations`` into the target's incidents and send what must be said; returns the messages decided.

    With ``scope`` (the run is over) what it proved gone is resolved. A message that could not be sent now stays in
    the outbox, and the next to come by sends it. One that was refused for good is told as a fault of the monitor.
    """
    decided = await asyncio.to_thread(_decide, desk, observations, notice, scope)
    done = await deliver(desk)
    if done.refusals:
        await asyncio.to_thread(_decide, desk, [_refused(desk, done.refusals[0])], Notice(), None)
        await deliver(desk)
    elif done.sent:
        await asyncio.to_thread(_close_refusal, desk)
    return decided.alerts


def composed(desk: Desk, settled: Decision, notice: Notice) -> tuple[Alert, ...]:
    """The messages of a decision."""
    return compose(
        settled.items,
        target=desk.target,
        run_id=desk.run_id,
        now=desk.now(),
        commit=notice.commit,
        flat=notice.flat,
        weighted=notice.weighted,
        links=notice.links,
    )


def refusal_fingerprint(target: str) -> str:
    """The fingerprint of a refused delivery: it is over once a message goes out again, whatever a run finds."""
    return fingerprint(target, IncidentKind.MONITOR_FAULT, ALERT_REFUSED)


def _decide(
    desk: Desk, observations: Sequence[Observation], notice: Notice, scope: Scope | None
) -> outbox.Decision:
    silences = catch_up(desk.people).silences

    def decision(previous: Mapping[str, Incident]) -> outbox.Decision:
        settled = decide(
            previous, observations, now=desk.now(), settings=desk.settings, scope=scope, silences=silences
        )
        return outbox.Decision(incidents=settled.changed, alerts=composed(desk, settled, notice))

    return outbox.decide(desk.store, desk.journal, desk.target, decision, wait_s=LOCK_WAIT_S)


def _refused(desk: Desk, why: str) -> Observation:
    at = Sighting(target=desk.target, run_id=desk.run_id, seen_at=desk.now())
    return monitor_fault(at, what=ALERT_REFUSED, detail=f"A message could not go its usual way: {why}")


def _close_refusal(desk: Desk) -> None:
    """Messages go out again: the fault that said otherwise is over, and the message itself is the news of it."""
    key = refusal_fingerprint(desk.target)
    try:
        if not any(one.fingerprint == key for one in desk.store.open_incidents(desk.target)):
            return
        outbox.decide(
            desk.store, desk.journal, desk.target, lambda all_: _closed(desk, all_, key), wait_s=LOCK_WAIT_S
        )
    except WarehouseError:
        return  # the next message that goes out closes it


def _closed(desk: Desk, previous: Mapping[str, Incident], key: str) -> outbox.Decision:
    known = previous.get(key)
    if known is None or known.state is IncidentState.RESOLVED:
        return outbox.Decision()
    return outbox.Decision(incidents=(close(known, desk.now()),))
