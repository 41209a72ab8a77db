"""Send the alerts in the outbox, and store the outcome of each attempt."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

from flows.alerting.edits import add_to_first_alert
from flows.alerting.notifier import LOCK_WAIT_S, Notifier
from flows.alerting.worker import is_gone, worker_name
from monitors.alerts.sender import REFUSED
from monitors.errors import NotifyError, NotifyTransient, WarehouseBusy
from monitors.records.base import Record
from monitors.records.incidents import BEGINS_A_THREAD, Alert, DeliveryStatus, Receipt
from warehouse.queries.incidents import is_waiting
from warehouse.queries.outbox import claim_alerts, open_incident_book, record_receipt

MAX_SENT_AT_ONCE = 20
MAX_FAILURES_IN_A_ROW = 2
"""After so many Slack is away, and the rest waits: a hung Slack costs a flow two sends, not twenty. One alone may
be the fault of its message, and holds up no other."""
TRY_AGAIN_AFTER = timedelta(seconds=60)
LEASE = timedelta(seconds=90)
"""Longer than one send can take with its retries, so that no second worker sends what the first is sending. Each
message is claimed when its turn comes. Nobody waits for a worker of this machine that has ended."""


class DeliveryReport(Record):
    """How many messages went out, and why any of them could not go its usual way."""

    sent: int = 0
    refusals: tuple[str, ...] = ()


async def send_outbox(notifier: Notifier) -> DeliveryReport:
    """Send what waits in the outbox, whoever put it there, worst first; stop while Slack is away.

    Never raises for a message that does not go out.
    """
    receipts: list[Receipt] = []
    while len(receipts) < MAX_SENT_AT_ONCE:
        last = [receipt.status for receipt in receipts[-MAX_FAILURES_IN_A_ROW:]]
        if last == [DeliveryStatus.FAILED] * MAX_FAILURES_IN_A_ROW:
            break
        claim = partial(
            claim_alerts,
            notifier.store,
            notifier.journal,
            owner=worker_name(),
            lease_s=LEASE.total_seconds(),
            limit=1,
            wait_s=LOCK_WAIT_S,
            is_gone=is_gone,
            printing=not notifier.sender.notifies,
            but=[receipt.alert_id for receipt in receipts],
        )
        lease = await asyncio.to_thread(claim)
        if not lease.alerts:
            break
        receipts += [await _send_alert(notifier, alert, again=alert.id in lease.tried) for alert in lease.alerts]
    refusals = [
        receipt.detail
        for receipt in receipts
        if receipt.status is DeliveryStatus.REJECTED or receipt.detail.startswith(REFUSED)
    ]
    sent = sum(receipt.status is DeliveryStatus.SENT for receipt in receipts)
    return DeliveryReport(sent=sent, refusals=tuple(refusals))


async def _send_alert(notifier: Notifier, alert: Alert, *, again: bool) -> Receipt:
    """Show ``alert`` in the first alert of its run, else try to send it once; store what came of it.

    What no way will ever take is printed, so that it is seen. Later news of its incidents goes below it.
    """
    receipt = await add_to_first_alert(notifier, alert)
    if receipt is None:
        try:
            receipt = await notifier.sender.send(alert, again=again)
        except NotifyError as error:
            is_refused = not isinstance(error, NotifyTransient)
            if is_refused:
                await notifier.terminal.send(alert)
            status = DeliveryStatus.REJECTED if is_refused else DeliveryStatus.FAILED
            receipt = Receipt(alert_id=alert.id, status=status, at=notifier.now(), detail=str(error))
    await asyncio.to_thread(record_receipt, notifier.store, notifier.journal, receipt, wait_s=LOCK_WAIT_S)
    if receipt.thread is not None and alert.reason in BEGINS_A_THREAD:
        await asyncio.to_thread(_store_thread, notifier, alert, receipt)
    return receipt


def _store_thread(notifier: Notifier, alert: Alert, receipt: Receipt) -> None:
    try:
        with open_incident_book(notifier.store, notifier.journal, alert.target, wait_s=LOCK_WAIT_S) as book:
            book.record(
                book.incidents[key].place_in_thread(receipt.thread, receipt.channel)
                for key in alert.fingerprints
                if key in book.incidents
            )
    except WarehouseBusy:
        return  # the next message about them begins a thread of its own: a nuisance, not a loss


async def send_waiting(notifier: Notifier) -> None:
    """Send what a run recorded and was killed before sending; for jobs that run every minute.

    It leaves alone what was tried a moment ago: while Slack is away, not every poll tries again.
    """
    now = notifier.now()
    if await asyncio.to_thread(is_waiting, notifier.store, now - TRY_AGAIN_AFTER, now):
        await send_outbox(notifier)
