"""Deliver the alerts in the outbox, and store the outcome of each attempt.

A worker is a process that sends. Its name is never used again, so that other processes can tell that it has ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from flows.alerting.notifier import Notifier
from flows.alerting.threads import shown_in_first_alert
from monitors.alerts.sender import REFUSED
from monitors.errors import NotifyError, NotifyTransient, WarehouseBusy
from monitors.records.base import Record
from monitors.records.incidents import BEGINS_A_THREAD, Alert, DeliveryStatus, Incident, Receipt
from warehouse.queries import outbox
from warehouse.queries.incidents import is_waiting

_PROC = Path("/proc")
_BOOT = _PROC / "sys" / "kernel" / "random" / "boot_id"


def worker_name() -> str:
    """This process's name: its machine (until the machine restarts), its number, and when it started."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid()) or 0}"


def is_gone(name: str) -> bool:
    """Whether the process has certainly ended; can be true only on this machine, and where ``/proc`` exists."""
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdecimal() or not _BOOT.exists():  # noqa: PLR2004 - as above
        return False
    return str(_began(int(parts[1])) or "none") != parts[2]


def _machine() -> str:
    """Host, its boot and its view of processes: a number means another process in another container."""
    seen = [socket.gethostname(), _read(_BOOT), _linked(_PROC / "self" / "ns" / "pid")]
    return hashlib.sha256("/".join(seen).encode()).hexdigest()[:16]


def _began(pid: int) -> str | None:
    """Clock ticks from the machine's start to the process's; a process that reuses the number has other ticks."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else None  # noqa: PLR2004 - proc(5): starttime is field 22, the third comes first here


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _linked(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


LOCK_WAIT_S = 30.0
"""A load of a whole nightly run takes seconds. If a reader holds the file longer, the next message asks again."""

SEND_AT_ONCE = 20
FAILURES_IN_A_ROW = 2
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


async def deliver(notifier: Notifier) -> DeliveryReport:
    """Send what waits in the outbox, whoever put it there, worst first; stop while Slack is away.

    Never raises for a message that does not go out.
    """
    receipts: list[Receipt] = []
    while len(receipts) < SEND_AT_ONCE and not _is_away(receipts):
        claim = await asyncio.to_thread(_claim, notifier, [one.alert_id for one in receipts])
        if not claim.alerts:
            break
        receipts += [await _deliver_one(notifier, one, again=one.id in claim.tried) for one in claim.alerts]
    refused = [one.detail for one in receipts if _was_refused(one)]
    sent = sum(one.status is DeliveryStatus.SENT for one in receipts)
    return DeliveryReport(sent=sent, refusals=tuple(refused))


def _is_away(receipts: Sequence[Receipt]) -> bool:
    last = receipts[-FAILURES_IN_A_ROW:]
    return len(last) == FAILURES_IN_A_ROW and all(one.status is DeliveryStatus.FAILED for one in last)


def _claim(notifier: Notifier, done: Collection[str]) -> outbox.SendLease:
    return outbox.claim_alerts(
        notifier.store,
        notifier.journal,
        owner=worker_name(),
        lease_s=LEASE.total_seconds(),
        limit=1,
        wait_s=LOCK_WAIT_S,
        is_gone=is_gone,
        printing=not notifier.sender.notifies,
        but=done,
    )


async def deliver_waiting(notifier: Notifier) -> None:
    """Send what a run decided to say and was killed before sending; for jobs that run every minute.

    It leaves alone what was tried a moment ago: while Slack is away, not every poll tries again.
    """
    now = notifier.now()
    if await asyncio.to_thread(is_waiting, notifier.store, now - TRY_AGAIN_AFTER, now):
        await deliver(notifier)


async def _deliver_one(notifier: Notifier, alert: Alert, *, again: bool) -> Receipt:
    receipt = await shown_in_first_alert(notifier, alert) or await _send(notifier, alert, again=again)
    await asyncio.to_thread(outbox.record_receipt, notifier.store, notifier.journal, receipt, wait_s=LOCK_WAIT_S)
    if receipt.thread is not None and alert.reason in BEGINS_A_THREAD:
        await asyncio.to_thread(_remember_thread, notifier, alert, receipt)
    return receipt


async def _send(notifier: Notifier, alert: Alert, *, again: bool) -> Receipt:
    """Try once. What no way will ever take is printed, so that somebody sees it."""
    try:
        return await notifier.sender.send(alert, again=again)
    except NotifyTransient as error:
        return Receipt(alert_id=alert.id, status=DeliveryStatus.FAILED, at=notifier.now(), detail=str(error))
    except NotifyError as error:
        await notifier.terminal.send(alert)
        return Receipt(alert_id=alert.id, status=DeliveryStatus.REJECTED, at=notifier.now(), detail=str(error))


def _was_refused(receipt: Receipt) -> bool:
    return receipt.status is DeliveryStatus.REJECTED or receipt.detail.startswith(REFUSED)


def _remember_thread(notifier: Notifier, alert: Alert, receipt: Receipt) -> None:
    """Store the thread, so that later news of these incidents goes below this message."""

    def decision(previous: Mapping[str, Incident]) -> outbox.OutboxDecision:
        threaded = tuple(
            previous[key].place_in_thread(receipt.thread, receipt.channel)
            for key in alert.fingerprints
            if key in previous
        )
        return outbox.OutboxDecision(incidents=threaded)

    try:
        outbox.decide(notifier.store, notifier.journal, alert.target, decision, wait_s=LOCK_WAIT_S)
    except WarehouseBusy:
        return  # the next message about them begins a thread of its own: a nuisance, not a loss
