"""Send what waits in the outbox, and keep what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from flows.desk import Desk
from flows.first_pages import shown_in_first_page
from flows.worker_name import is_gone, worker_name
from monitors.alerts.compose import OPENING
from monitors.alerts.fallback_sender import REFUSED
from monitors.errors import NotifyError, NotifyTransient, WarehouseBusy
from monitors.records.base import Record
from monitors.records.incidents import Alert, DeliveryStatus, Incident, Receipt
from warehouse import outbox
from warehouse.messages import is_waiting

LOCK_WAIT_S = 30.0
"""A load of a whole night takes seconds; a reader that holds the file longer is asked again on the next message."""

CLAIM_AT_ONCE = 20
TRY_AGAIN_AFTER = timedelta(seconds=60)
LEASE = timedelta(seconds=90)
"""Longer than one send can take with its retries, so that no second worker sends what the first is sending. One of
this machine that is gone is not waited for."""


class Delivered(Record):
    """How many messages went out, and why any of them could not go its usual way."""

    sent: int = 0
    refusals: tuple[str, ...] = ()


async def deliver(desk: Desk) -> Delivered:
    """Send what waits in the outbox, whoever put it there. Never raises for a message that does not go out."""
    claim = await asyncio.to_thread(
        outbox.claim_alerts,
        desk.store,
        desk.journal,
        owner=worker_name(),
        lease_s=LEASE.total_seconds(),
        limit=CLAIM_AT_ONCE,
        wait_s=LOCK_WAIT_S,
        is_gone=is_gone,
    )
    receipts = [await _deliver_one(desk, alert, again=alert.id in claim.tried) for alert in claim.alerts]
    refused = [one.detail for one in receipts if _was_refused(one)]
    sent = sum(one.status is DeliveryStatus.SENT for one in receipts)
    return Delivered(sent=sent, refusals=tuple(refused))


async def deliver_waiting(desk: Desk) -> None:
    """Send what a run decided to say and was killed before it did; for jobs that come by every minute.

    What was tried a moment ago is left alone: while Slack is away it is not tried at every look.
    """
    since = desk.now() - TRY_AGAIN_AFTER
    if await asyncio.to_thread(is_waiting, desk.store, since):
        await deliver(desk)


async def _deliver_one(desk: Desk, alert: Alert, *, again: bool) -> Receipt:
    receipt = await shown_in_first_page(desk, alert) or await _send(desk, alert, again=again)
    await asyncio.to_thread(outbox.record_receipt, desk.store, desk.journal, receipt, wait_s=LOCK_WAIT_S)
    if receipt.thread is not None and alert.reason in OPENING:
        await asyncio.to_thread(_remember_thread, desk, alert, receipt)
    return receipt


async def _send(desk: Desk, alert: Alert, *, again: bool) -> Receipt:
    """One try. What nothing will ever take is printed, so that somebody sees it."""
    try:
        return await desk.sender.send(alert, again=again)
    except NotifyTransient as error:
        return Receipt(alert_id=alert.id, status=DeliveryStatus.FAILED, at=desk.now(), detail=str(error))
    except NotifyError as error:
        await desk.terminal.send(alert)
        return Receipt(alert_id=alert.id, status=DeliveryStatus.REJECTED, at=desk.now(), detail=str(error))


def _was_refused(receipt: Receipt) -> bool:
    return receipt.status is DeliveryStatus.REJECTED or receipt.detail.startswith(REFUSED)


def _remember_thread(desk: Desk, alert: Alert, receipt: Receipt) -> None:
    """Later news of these incidents belongs below this message."""
    about = {item.incident.fingerprint for item in alert.items}

    def decision(previous: Mapping[str, Incident]) -> outbox.Decision:
        place = {"thread": receipt.thread, "channel": receipt.channel}
        threaded = tuple(previous[key].model_copy(update=place) for key in about if key in previous)
        return outbox.Decision(incidents=threaded)

    try:
        outbox.decide(desk.store, desk.journal, alert.target, decision, wait_s=LOCK_WAIT_S)
    except WarehouseBusy:
        return  # the next message about them begins a thread of its own: a nuisance, not a loss
