"""Ensures that each alert is sent only once if several machines watch the same target.

    take the lease → read what was sent → send what is new → record it → return the lease

A lease is the right of one machine to send alerts about one target. The machines share a Prefect server, which
stores leases and records as variables. A variable's name is unique, and a variable is deleted by its id, so only
one machine can have the lease. All times are from the server's clock, because the clocks of machines differ. If the
server does not answer, every machine sends the alert: a duplicate is better than a lost alert.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx
from pydantic import TypeAdapter, ValidationError

from flows.server.prefect_server import is_local_address
from monitors.alerts.wording import ABOUT_THE_MONITOR
from monitors.records.base import Record, UtcTime
from monitors.records.incidents import (
    THREAD_REASONS,
    Alert,
    AlertItem,
    DeliveryStatus,
    IncidentKind,
    NotifyReason,
    Receipt,
)

LEASE_S: Final = 60.0
"""Duration of a lease in seconds. After this time, another machine can take the lease of a stopped machine."""
ANSWER_TIMEOUT_S: Final = 5.0
"""Total time limit in seconds for all requests of one step.

Taking the lease is one step. Recording the sent message and releasing the lease is another step.
"""
AWAY_S: Final = 60.0
"""If the server does not answer, Lookout waits this many seconds before the next request to the server."""
POLL_S: Final = 0.5
SENT_ELSEWHERE: Final = "sent by another machine"
"""If another machine has sent the message, the field ``detail`` of the receipt starts with this text."""
OWN_KINDS: Final = ABOUT_THE_MONITOR | {IncidentKind.DRILL}
"""Kinds of incidents that concern Lookout on this machine. No other machine reports these incidents."""
MAX_ROWS: Final = 200
"""Maximum number of records that Lookout reads from the Prefect server: one page of Prefect's API.

Faults in older records are reported again.
"""
MAX_FACTS: Final = 100
"""Maximum number of facts in one variable, because Prefect limits a variable to 5,000 characters."""
OVER: Final = "over"
"""This entry in the ``facts`` of a record means that the fault has ended."""
_NO_ANSWER: Final = (httpx.HTTPError, TimeoutError, KeyError, ValueError)
"""Errors of a server that does not answer, that refuses the request, or that is not a Prefect server."""


class SentRecord(Record):
    """The facts that one message reported.

    ``folder`` is the identity of the data folder of the installation that sent the message. ``facts`` maps a
    shortened fingerprint of a fault to the reported facts. ``alert_id`` is empty for faults that ended without a
    message.
    """

    folder: str
    host: str
    alert_id: str
    channel: str | None = None
    thread: str | None = None
    facts: Mapping[str, tuple[str, ...]]


class Variable(Record, extra="ignore"):
    """A variable on the Prefect server."""

    id: uuid.UUID
    created: UtcTime
    value: Any


_VARIABLES: Final = TypeAdapter(list[Variable])


@dataclass
class ReportedFault:
    """What all machines have reported about one fault since it began.

    ``opening`` is the first record of the fault. ``newest`` is the last record that another machine wrote, and
    ``at`` is the time of this record by the server's clock. ``is_over`` is true if the end of the fault was
    reported. ``is_own`` is true if this machine sent one of the messages. ``facts`` contains what other machines
    reported.
    """

    opening: SentRecord
    newest: SentRecord
    at: datetime
    is_over: bool
    is_own: bool = False
    facts: set[str] = field(default_factory=set[str])

    def is_reported_elsewhere(self, alert_item: AlertItem, now: datetime, interval: timedelta) -> bool:
        """Return whether other machines have already reported ``alert_item``, so that this machine skips the item.

        - For an open fault, the result is true if other machines reported all its facts within ``interval``. For a
          reminder, only half of the interval counts, because the reminders of several machines are due at almost
          the same time.
        - For an ended fault, the result is true if another machine sent a message about its end, and this machine
          never reported the fault.

        Messages of this machine do not count, because `decide_alerts` already considers them.
        """
        incident = alert_item.incident
        if incident.is_resolved or self.is_over:
            is_end = incident.is_resolved and self.is_over and self.at >= incident.opened_at
            return is_end and not self.is_own and bool(self.newest.alert_id)
        ended_here_since = incident.resolved_at is not None and self.at <= incident.resolved_at
        limit = interval / 2 if alert_item.reason is NotifyReason.REMINDER else interval
        return (
            not ended_here_since
            and now - self.at < limit
            and self.facts.issuperset(_list_open_fault_facts(alert_item))
        )


@dataclass(frozen=True)
class AlertPart:
    """The part of an alert that this machine must send.

    ``alert`` is ``None`` if other machines sent the whole alert. ``note`` is a text for the receipt: why nothing is
    sent, or why there is no lease. ``channel`` and ``thread`` are those of the first message about the fault.
    """

    alert: Alert | None
    note: str = ""
    thread: str | None = None
    channel: str | None = None
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    """The receipts of the message. The caller adds a receipt after each attempt to send the message.

    If a receipt has the status SENT, the facts of the message are recorded afterwards, so that other machines do
    not report these facts again.
    """


class SharedServer:
    """The Prefect server that several machines share.

    ``folder`` is the identity of this machine's data folder, and ``host`` is the name of this machine.
    ``destination`` is where alerts are sent, and ``addresses`` maps targets to their addresses. Two machines
    coordinate their alerts about a target only if the target's address and the destination are the same on both
    machines. ``nonce`` returns a random name for a variable. ``auth`` is ``name:password``. A lease ends after
    ``lease_s`` seconds. The server must answer within ``answer_timeout_s``.
    """

    def __init__(
        self,
        api_url: str,
        *,
        folder: str,
        host: str,
        destination: str,
        addresses: Mapping[str, str],
        nonce: Callable[[], str],
        auth: str = "",
        lease_s: float = LEASE_S,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        self.lease_s = lease_s
        self.answer_timeout_s = answer_timeout_s
        self._api_url = api_url.rstrip("/")
        self._folder, self._host = folder, host
        self._destination, self._addresses, self._nonce = destination, addresses, nonce
        self._auth = httpx.BasicAuth(*auth.split(":", 1)) if ":" in auth else None
        self._away_until = 0.0

    @asynccontextmanager
    async def hold_target_lease(self, alert: Alert, interval: timedelta) -> AsyncGenerator[AlertPart]:
        """Hold the lease of the alert's target for the ``with`` block. Yield the part of ``alert`` to send.

        The part contains what no other machine has reported. The function waits while another machine holds the
        lease. Facts that were reported more than ``interval`` ago are reported again. If the server does not
        answer, the alert is sent without a lease, and no error is raised.
        """
        if alert.kind in OWN_KINDS:
            yield AlertPart(alert)
            return
        async with self._open_shared_target(alert.target) as shared:
            lease: Variable | None = None
            try:
                if time.monotonic() < self._away_until:
                    raise TimeoutError
                lease, share = await shared.take_lease_if_unreported(alert, interval, self.lease_s)
            except _NO_ANSWER:
                share = AlertPart(alert, note=self._mark_server_away_and_explain())
            try:
                yield share
            finally:
                if lease is not None:
                    try:
                        await shared.record_sent_and_release_lease(lease, share)
                    except _NO_ANSWER:  # the lease ends after its time
                        self._mark_server_away_and_explain()

    async def record_ended_faults(self, target: str, unresolved: Collection[str], interval: timedelta) -> None:
        """Record on the shared server that faults of ``target`` have ended, unless this was already recorded.

        ``unresolved`` are the fingerprints of the target's unresolved incidents. Only faults that this machine
        reported within ``interval`` are considered. If the server does not answer, the next call records the end.
        """
        if time.monotonic() < self._away_until:
            return
        still_open = {_shorten_fingerprint(fingerprint) for fingerprint in unresolved}
        async with self._open_shared_target(target) as shared:
            try:
                reported, _ = await shared.read_reported_faults_and_time(interval)
                ended = [key for key, fault in reported.items() if fault.is_own and not fault.is_over]
                await shared.record_reported_facts("", ((key, OVER) for key in ended if key not in still_open))
            except _NO_ANSWER:
                self._mark_server_away_and_explain()

    @asynccontextmanager
    async def _open_shared_target(self, target: str) -> AsyncGenerator[_SharedTarget]:
        identity = json.dumps([target, self._addresses.get(target), self._destination])
        async with httpx.AsyncClient(
            base_url=self._api_url,
            auth=self._auth,
            timeout=self.answer_timeout_s,
            trust_env=not is_local_address(self._api_url),
            verify=not self._api_url.startswith("http:"),  # HTTP needs no certificates; reading them takes 20 ms
        ) as client:
            key = hashlib.sha256(identity.encode()).hexdigest()[:16]
            yield _SharedTarget(
                client,
                key,
                folder=self._folder,
                host=self._host,
                nonce=self._nonce,
                timeout_s=self.answer_timeout_s,
            )

    def _mark_server_away_and_explain(self) -> str:
        self._away_until = max(self._away_until, time.monotonic() + AWAY_S)
        return (
            f"sent without a lease: the shared Prefect server did not answer within {self.answer_timeout_s:g} s, "
            "so another machine may also have sent this message"
        )


class _SharedTarget:
    """The variables of one target on the shared server: the lease, and the records of sent facts."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        key: str,
        *,
        folder: str,
        host: str,
        nonce: Callable[[], str],
        timeout_s: float,
    ) -> None:
        self._client, self._folder, self._host, self._nonce = client, folder, host, nonce
        self._lease_name, self._record_name = f"lookout-lease-{key}", f"lookout-alert-{key}"
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._expired: list[uuid.UUID] = []

    async def take_lease_if_unreported(
        self, alert: Alert, interval: timedelta, lease_s: float
    ) -> tuple[Variable | None, AlertPart]:
        """Wait for the lease and take it. Return the lease and the part of ``alert`` to send.

        If there is nothing to send, return ``None`` instead of a lease.
        """
        held_id, held_since = None, 0.0
        while True:
            self._restart_deadline()
            lease = await self._create_variable_if_absent(
                self._lease_name, {"folder": self._folder, "host": self._host}
            )
            reported, now = await self.read_reported_faults_and_time(interval)
            share = _select_unreported_part(alert, reported, now, interval)
            if lease is not None or share.alert is None:
                return lease, share
            response = await self._send_request("GET", f"/variables/name/{self._lease_name}", accept=404)
            if response.status_code == 404:  # noqa: PLR2004 - HTTP's "not found": the lease was returned just now
                continue
            held = Variable.model_validate(response.json())
            if held.id != held_id:
                held_id, held_since = held.id, time.monotonic()
            held_s = max((now - held.created).total_seconds(), time.monotonic() - held_since)
            if held_s >= lease_s:
                await self._delete_variable(held.id)
            else:
                # Prefect does not report that a variable was deleted.
                await asyncio.sleep(min(POLL_S, lease_s - held_s))

    async def record_sent_and_release_lease(self, lease: Variable, share: AlertPart) -> None:
        """Record the sent facts on the server, release ``lease``, and delete expired records.

        ``share`` is the part of the alert that this machine had to send. Its receipts show whether the part was
        sent.
        """
        self._restart_deadline()
        for receipt in share.receipts:
            if share.alert is not None and receipt.status is DeliveryStatus.SENT:
                facts = (
                    (_shorten_fingerprint(alert_item.incident.fingerprint), fact)
                    for alert_item in share.alert.items
                    for fact in _list_reported_facts(alert_item)
                )
                await self.record_reported_facts(share.alert.id, facts, receipt)
        await self._delete_variable(lease.id)
        for variable_id in self._expired:
            await self._delete_variable(variable_id)

    async def read_reported_faults_and_time(
        self, interval: timedelta
    ) -> tuple[Mapping[str, ReportedFault], datetime]:
        """Read what was reported about each fault within ``interval``.

        Also return the current time of the server's clock.
        """
        like = {"variables": {"name": {"like_": self._record_name}}, "sort": "CREATED_DESC", "limit": MAX_ROWS}
        response = await self._send_request("POST", "/variables/filter", like)
        now = parsedate_to_datetime(response.headers["date"])
        variables = _VARIABLES.validate_python(response.json())
        self._expired = [variable.id for variable in variables if now - variable.created >= interval]
        reported: dict[str, ReportedFault] = {}
        for variable in reversed(variables):
            try:
                record = SentRecord.model_validate(variable.value)
            except ValidationError:
                continue  # a person or another version changed it, so the fault is reported again
            if variable.id not in self._expired:
                _add_sent_record(reported, record, variable.created, is_own=record.folder == self._folder)
        return reported, now

    async def record_reported_facts(
        self, alert_id: str, facts: Iterable[tuple[str, str]], receipt: Receipt | None = None
    ) -> None:
        """Record that this machine reported ``facts``, which are pairs of a shortened fingerprint and a fact.

        ``receipt`` contains the channel and the thread of the message, or is ``None`` if no message was sent.
        """
        pairs = list(facts)
        for start in range(0, len(pairs), MAX_FACTS):
            by_fault: dict[str, tuple[str, ...]] = {}
            for key, fact in pairs[start : start + MAX_FACTS]:
                by_fault[key] = (*by_fault.get(key, ()), fact)
            record = SentRecord(
                folder=self._folder,
                host=self._host,
                alert_id=alert_id,
                channel=receipt.channel if receipt else None,
                thread=receipt.thread if receipt else None,
                facts=by_fault,
            )
            await self._create_variable_if_absent(
                f"{self._record_name}-{self._nonce()}", record.model_dump(mode="json")
            )

    async def _create_variable_if_absent(self, name: str, value: object) -> Variable | None:
        """Create a variable. Return ``None`` if a variable with this name exists already."""
        body = {"name": name, "value": value, "tags": ["lookout"]}
        response = await self._send_request("POST", "/variables/", body, accept=409)
        return Variable.model_validate(response.json()) if response.is_success else None

    async def _delete_variable(self, variable_id: uuid.UUID) -> None:
        await self._send_request("DELETE", f"/variables/{variable_id}", accept=404)

    async def _send_request(
        self, method: str, path: str, body: object = None, *, accept: int = 200
    ) -> httpx.Response:
        """Send a request to the shared server.

        Raises one of the errors in `_NO_ANSWER` on a timeout, or if the response has an error status other than
        ``accept``.
        """
        async with asyncio.timeout(self._deadline - time.monotonic()):
            response = await self._client.request(method, path, json=body)
            if response.status_code == 403 and "CSRF" in response.text:  # noqa: PLR2004 - Prefect's protection
                client = self._nonce()
                answer = await self._client.get("/csrf-token", params={"client": client})
                token = str(answer.raise_for_status().json()["token"])
                self._client.headers.update({"Prefect-Csrf-Client": client, "Prefect-Csrf-Token": token})
                response = await self._client.request(method, path, json=body)
        return response if response.status_code == accept else response.raise_for_status()

    def _restart_deadline(self) -> None:
        self._deadline = time.monotonic() + self._timeout_s


def _select_unreported_part(
    alert: Alert, reported: Mapping[str, ReportedFault], now: datetime, interval: timedelta
) -> AlertPart:
    """Return the part of ``alert`` that no other machine has reported yet."""
    faults = [reported.get(_shorten_fingerprint(alert_item.incident.fingerprint)) for alert_item in alert.items]
    pairs = list(zip(alert.items, faults, strict=True))
    left = [
        alert_item
        for alert_item, fault in pairs
        if fault is None or not fault.is_reported_elsewhere(alert_item, now, interval)
    ]
    if not left:
        fault = max((fault for fault in faults if fault is not None), key=lambda fault: fault.at)
        record, at = fault.newest, f"{fault.at:%Y-%m-%d %H:%M} UTC"
        return AlertPart(None, note=f"{SENT_ELSEWHERE}, {record.host}, as {record.alert_id} at {at}")
    # If another machine reported the faults first, this alert is a reply in the thread of its message.
    places = {(fault.opening.channel, fault.opening.thread) if fault else (None, None) for _, fault in pairs}
    channel, thread = places.pop() if len(places) == 1 else (None, None)
    if thread is None or alert.reason in THREAD_REASONS or alert.thread is not None:
        channel, thread = None, None
    whole = len(left) == len(alert.items)
    return AlertPart(alert if whole else alert.with_items_sorted_by_urgency(left), channel=channel, thread=thread)


def _add_sent_record(reported: dict[str, ReportedFault], record: SentRecord, at: datetime, *, is_own: bool) -> None:
    """Add a record to the reported faults. If the fault had already ended, the record begins a new fault."""
    for key, facts in record.facts.items():
        fault = reported.get(key)
        if fault is None or fault.is_over or OVER in facts:
            fault = reported[key] = ReportedFault(opening=record, newest=record, at=at, is_over=OVER in facts)
        fault.is_own = fault.is_own or is_own
        if not is_own:
            fault.newest, fault.at = record, at
            fault.facts.update(facts)


def _list_reported_facts(alert_item: AlertItem) -> list[str]:
    """List the facts that a message with ``alert_item`` reports.

    A message with severity 3 also counts as a report of severities 1 and 2. If the fault has ended, the only fact
    is `OVER`.
    """
    if alert_item.incident.is_resolved:
        return [OVER]
    return [*map(str, range(1, alert_item.incident.severity)), *_list_open_fault_facts(alert_item)]


def _list_open_fault_facts(alert_item: AlertItem) -> list[str]:
    """List the facts in a message about an open fault.

    The facts are the severity, the failed cases, the reasons for the gate's verdict, and a strong increase of a
    rate.
    """
    observation = alert_item.observation
    rise = f"rise {observation.seen_at:%Y-%m-%d}"  # several machines see the rise in the same nightly run
    texts = [*observation.failed_cases, *observation.verdict_reasons, *([rise] if observation.multiplied else [])]
    return [
        str(int(alert_item.incident.severity)),
        *(hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts),
    ]


def _shorten_fingerprint(fingerprint: str) -> str:
    return fingerprint[:16]
