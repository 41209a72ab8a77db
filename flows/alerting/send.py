"""Sends the alerts in the outbox, and stores the result of each attempt."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import timedelta
from functools import partial

from flows.alerting.edits import add_alert_to_first_message
from flows.alerting.notifier import LOCK_WAIT_S, Notifier
from flows.alerting.shared_server import SENT_ELSEWHERE, AlertPart
from flows.alerting.worker import get_worker_name, has_worker_ended
from monitors.alerts.sender import REFUSED_PREFIX
from monitors.errors import NotifyError, NotifyTransient, WarehouseBusy
from monitors.records.base import Record
from monitors.records.incidents import THREAD_REASONS, Alert, DeliveryStatus, Receipt
from warehouse.queries.outbox import claim_alerts, open_incident_transaction, record_receipt

MAX_SENT_AT_ONCE = 20
MAX_FAILURES_IN_A_ROW = 2
"""After this number of consecutive failures, Slack counts as down, and the remaining alerts wait.

One failure does not stop the remaining alerts, because the message itself may be the cause.
"""
LEASE = timedelta(seconds=90)
"""How long one worker has the exclusive right to send a message.

The lease is longer than the time to send a message with all retries. Therefore no second worker sends the same
message. The lease ends earlier if the worker is a process on this machine that has ended.
"""


class DeliveryReport(Record):
    """The number of sent messages, and the reason for each refused message."""

    sent: int = 0
    refusals: tuple[str, ...] = ()


async def send_outbox(notifier: Notifier) -> DeliveryReport:
    """Send the alerts that wait in the outbox, the most severe first. Stop if Slack is down.

    Return the number of sent messages and the reasons for refused messages. If a message cannot be sent, no error
    is raised.
    """
    receipts: list[Receipt] = []
    shared = notifier.shared_server
    lease_s = LEASE.total_seconds() + (shared.lease_s + 2 * shared.answer_timeout_s if shared else 0)
    while len(receipts) < MAX_SENT_AT_ONCE:
        last = [receipt.status for receipt in receipts[-MAX_FAILURES_IN_A_ROW:]]
        if last == [DeliveryStatus.FAILED] * MAX_FAILURES_IN_A_ROW:
            break
        claim = partial(
            claim_alerts,
            notifier.store,
            owner=get_worker_name(),
            lease_s=lease_s,
            limit=1,
            wait_s=LOCK_WAIT_S,
            is_gone=has_worker_ended,
            is_printing=not notifier.sender.notifies,
            except_ids=[receipt.alert_id for receipt in receipts],
        )
        lease = await asyncio.to_thread(claim)
        if not lease.alerts:
            break
        receipts += [await _send_alert(notifier, alert, again=alert.id in lease.tried) for alert in lease.alerts]
    refusals = [
        receipt.detail
        for receipt in receipts
        if receipt.status is DeliveryStatus.REJECTED or receipt.detail.startswith(REFUSED_PREFIX)
    ]
    own = [receipt for receipt in receipts if not receipt.detail.startswith(SENT_ELSEWHERE)]
    sent = sum(receipt.status is DeliveryStatus.SENT for receipt in own)
    return DeliveryReport(sent=sent, refusals=tuple(refusals))


async def _send_alert(notifier: Notifier, alert: Alert, *, again: bool) -> Receipt:
    """Add ``alert`` to the first message of its run, or send it as a new message. Store and return the receipt.

    ``again`` is true if an earlier attempt may have sent the alert. An alert that another machine has sent is not
    sent again. An alert that every delivery path refuses is printed. The thread of a new message is stored, because
    later alerts about the same incidents are replies in this thread.
    """
    shared, interval = notifier.shared_server, timedelta(hours=notifier.settings.reminder_interval_h)
    is_shared = shared is not None and notifier.sender.notifies
    async with (
        shared.hold_target_lease(alert, interval)
        if shared and is_shared
        else nullcontext(AlertPart(alert)) as share
    ):
        if share.alert is None:
            receipt = Receipt(alert_id=alert.id, status=DeliveryStatus.SENT, at=notifier.now(), detail=share.note)
        else:
            receipt = await _send_alert_part(notifier, share, share.alert, again=again)
            share.receipts.append(receipt)
    await asyncio.to_thread(record_receipt, notifier.store, notifier.journal, receipt, wait_s=LOCK_WAIT_S)
    if receipt.thread is not None and alert.reason in THREAD_REASONS:
        await asyncio.to_thread(_store_slack_thread, notifier, alert, receipt)
    return receipt


async def _send_alert_part(notifier: Notifier, share: AlertPart, alert: Alert, *, again: bool) -> Receipt:
    receipt = await add_alert_to_first_message(notifier, alert)
    if receipt is None:
        try:
            receipt = await notifier.sender.send(alert, thread=share.thread, channel=share.channel, again=again)
        except NotifyError as error:
            is_refused = not isinstance(error, NotifyTransient)
            if is_refused:
                await notifier.terminal.send(alert)
            status = DeliveryStatus.REJECTED if is_refused else DeliveryStatus.FAILED
            receipt = Receipt(alert_id=alert.id, status=status, at=notifier.now(), detail=str(error))
    return receipt if receipt.detail else receipt.with_detail(share.note)


def _store_slack_thread(notifier: Notifier, alert: Alert, receipt: Receipt) -> None:
    try:
        with open_incident_transaction(notifier.store, notifier.journal, alert.target, wait_s=LOCK_WAIT_S) as book:
            book.record(
                book.incidents[key].place_in_thread(receipt.thread, receipt.channel)
                for key in alert.fingerprints
                if key in book.incidents
            )
    except WarehouseBusy:
        return  # the next message about these incidents then starts a new thread
