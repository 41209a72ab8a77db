"""Tell people: decide once across processes, store, send, store what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

from flows.wiring import Wired, terminal_sender, utc_now
from monitors.alerts.compose import OPENING, compose
from monitors.alerts.lifecycle import decide
from monitors.alerts.scope import Scope
from monitors.errors import NotifyError, NotifyTransient, WarehouseBusy
from monitors.records.base import Record
from monitors.records.incidents import Alert, DeliveryStatus, Incident, Link, Observation, Receipt
from monitors.records.runs import RunReport
from warehouse import outbox

LOCK_WAIT_S = 30.0
"""A load of a whole night takes seconds; a reader that holds the file longer is asked again on the next message."""

CLAIM_AT_ONCE = 20
LEASE = timedelta(seconds=90)
"""Longer than one send can take with its retries, so that no second worker sends what the first is sending."""


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
    wired: Wired, observations: Sequence[Observation], *, notice: Notice, scope: Scope | None = None
) -> tuple[Alert, ...]:
    """Fold ``observations`` into the target's incidents and send what must be said; returns the messages decided.

    With ``scope`` (the run is over) what it proved gone is resolved. A message that could not be sent now stays in
    the outbox, and the next to come by sends it.
    """
    decided = await asyncio.to_thread(_decide, wired, observations, notice, scope)
    await deliver(wired)
    return decided.alerts


def _decide(
    wired: Wired, observations: Sequence[Observation], notice: Notice, scope: Scope | None
) -> outbox.Decision:
    def decision(previous: Mapping[str, Incident]) -> outbox.Decision:
        now = utc_now()
        settled = decide(previous, observations, now=now, settings=wired.config.alerts, scope=scope)
        alerts = compose(
            settled.items,
            target=wired.target.name,
            run_id=wired.run_id,
            now=now,
            commit=notice.commit,
            flat=notice.flat,
            weighted=notice.weighted,
            links=notice.links,
        )
        return outbox.Decision(incidents=settled.changed, alerts=alerts)

    return outbox.decide(wired.store, wired.journal, wired.target.name, decision, wait_s=LOCK_WAIT_S)


async def deliver(wired: Wired) -> None:
    """Send what waits in the outbox, whoever put it there. Never raises for a message that does not go out."""
    claim = await asyncio.to_thread(
        outbox.claim_alerts,
        wired.store,
        wired.journal,
        owner=wired.run_id,
        lease_s=LEASE.total_seconds(),
        limit=CLAIM_AT_ONCE,
        wait_s=LOCK_WAIT_S,
    )
    for alert in claim.alerts:
        receipt = await _send(wired, alert, again=alert.id in claim.tried)
        await asyncio.to_thread(outbox.record_receipt, wired.store, wired.journal, receipt, wait_s=LOCK_WAIT_S)
        if receipt.thread is not None and alert.reason in OPENING:
            await asyncio.to_thread(_remember_thread, wired, alert, receipt)


async def _send(wired: Wired, alert: Alert, *, again: bool) -> Receipt:
    """One try. What Slack will never take is printed, so that somebody sees it."""
    try:
        return await wired.sender.send(alert, again=again)
    except NotifyTransient as error:
        return Receipt(alert_id=alert.id, status=DeliveryStatus.FAILED, at=utc_now(), detail=str(error))
    except NotifyError as error:
        await terminal_sender(wired.config).send(alert)
        return Receipt(alert_id=alert.id, status=DeliveryStatus.REJECTED, at=utc_now(), detail=str(error))


def _remember_thread(wired: Wired, alert: Alert, receipt: Receipt) -> None:
    """Later news of these incidents belongs below this message."""
    about = {item.incident.fingerprint for item in alert.items}

    def decision(previous: Mapping[str, Incident]) -> outbox.Decision:
        place = {"thread": receipt.thread, "channel": receipt.channel}
        threaded = tuple(previous[key].model_copy(update=place) for key in about if key in previous)
        return outbox.Decision(incidents=threaded)

    try:
        outbox.decide(wired.store, wired.journal, alert.target, decision, wait_s=LOCK_WAIT_S)
    except WarehouseBusy:
        return  # the next message about them begins a thread of its own: a nuisance, not a loss
