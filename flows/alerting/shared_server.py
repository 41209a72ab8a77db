"""Send one alert from several machines: a lease for each target in the Prefect server that the machines share.

    take the lease → read what was sent → send what is new → record it → return the lease

The lease and the records are Prefect variables. A name exists once and a variable is deleted by its id, so exactly
one machine takes a lease, also an expired one. All times are the server's, because the clocks of machines differ.
When the server does not answer, every machine sends, because a duplicate is better than a lost alert.
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
"""A machine that took the lease and recorded nothing within this time counts as dead, and another one sends."""
ANSWER_TIMEOUT_S: Final = 5.0
"""The longest wait for all answers of one step: taking the lease, or recording and returning it."""
AWAY_S: Final = 60.0
"""A server that did not answer is not asked again for this time."""
POLL_S: Final = 0.5
SENT_ELSEWHERE: Final = "sent by another machine"
"""The beginning of the receipt's detail of a message that was not sent because another machine had sent it."""
OWN_KINDS: Final = ABOUT_THE_MONITOR | {IncidentKind.DRILL}
"""Kinds that are about this machine's Lookout: another machine's alert does not report them."""
MAX_ROWS: Final = 200
"""Prefect's maximum page size. A fault of an older record is reported again."""
MAX_FACTS: Final = 100
"""Facts in one variable: below Prefect's 5,000 characters."""
OVER: Final = "over"
_NO_ANSWER: Final = (httpx.HTTPError, TimeoutError, KeyError, ValueError)
"""Errors of a server that does not answer, refuses, or is no Prefect server."""


class SentRecord(Record):
    """What a message reported about faults. ``folder`` is the identity of the data folder that sent it.

    ``facts`` are those of each fault, by the beginning of its fingerprint. ``alert_id`` is empty for faults that
    ended without a message.
    """

    folder: str
    host: str
    alert_id: str
    channel: str | None = None
    thread: str | None = None
    facts: Mapping[str, tuple[str, ...]]


class Variable(Record, extra="ignore"):
    """A variable of Prefect."""

    id: uuid.UUID
    created: UtcTime
    value: Any


_VARIABLES: Final = TypeAdapter(list[Variable])


@dataclass
class ReportedFault:
    """What messages reported about a fault since it last ended, or its end; ``facts`` by other machines only.

    ``opening`` is the record that began it, ``newest`` the last one of another machine, at ``at`` by the server's
    clock. ``is_own`` says that this machine sent any of it.
    """

    opening: SentRecord
    newest: SentRecord
    at: datetime
    is_over: bool
    is_own: bool = False
    facts: set[str] = field(default_factory=set[str])

    def covers(self, alert_item: AlertItem, now: datetime, interval: timedelta) -> bool:
        """Whether another machine reported all facts of ``alert_item`` within ``interval``.

        This machine's own messages do not count: its journal has decided with them already. Reminders of several
        machines are due almost together, so only half the interval counts for them.
        """
        incident = alert_item.incident
        if incident.is_resolved or self.is_over:
            is_end = incident.is_resolved and self.is_over and self.at >= incident.opened_at
            return is_end and not self.is_own and bool(self.newest.alert_id)
        ended_here_since = incident.resolved_at is not None and self.at <= incident.resolved_at
        limit = interval / 2 if alert_item.reason is NotifyReason.REMINDER else interval
        return not ended_here_since and now - self.at < limit and self.facts.issuperset(_list_facts(alert_item))


@dataclass(frozen=True)
class AlertShare:
    """The part of an alert that this machine sends; ``None`` if another machine has sent all of it.

    ``note`` says why, for the receipt. ``thread`` and ``channel`` are the place of the fault's first message.
    """

    alert: Alert | None
    note: str = ""
    thread: str | None = None
    channel: str | None = None
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    """The caller adds the receipt; what was sent is then recorded for the other machines."""


class SharedServer:
    """The Prefect server that machines share, for the data folder ``folder`` on ``host``.

    ``destination`` identifies where alerts go and ``addresses`` the targets: machines whose targets have other
    addresses, or that post elsewhere, never speak for each other. ``nonce`` makes names of variables, ``auth`` is
    ``name:password``. A lease ends after ``lease_s`` seconds; the server must answer within ``answer_timeout_s``.
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
    async def hold_target(self, alert: Alert, interval: timedelta) -> AsyncGenerator[AlertShare]:
        """Hold the lease of the alert's target for the block; yield what this machine has to send.

        Waits while another machine holds it. ``interval`` is that of reminders: what was reported earlier is
        reported again. Never raises for the server: the alert is then sent without a lease.
        """
        if alert.kind in OWN_KINDS:
            yield AlertShare(alert)
            return
        async with self._open(alert.target) as shared:
            lease: Variable | None = None
            try:
                if time.monotonic() < self._away_until:
                    raise TimeoutError
                lease, share = await shared.take(alert, interval, self.lease_s)
            except _NO_ANSWER:
                share = AlertShare(alert, note=self._note_away())
            try:
                yield share
            finally:
                if lease is not None:
                    try:
                        await shared.finish(lease, share)
                    except _NO_ANSWER:  # the lease ends by itself
                        self._note_away()

    async def record_endings(self, target: str, unresolved: Collection[str], interval: timedelta) -> None:
        """Record the end of the faults of ``target`` that this machine reported and that ended without a message.

        ``unresolved`` are the fingerprints of its unresolved incidents. Without an answer the next call does it.
        """
        if time.monotonic() < self._away_until:
            return
        still_open = {_shorten(fingerprint) for fingerprint in unresolved}
        async with self._open(target) as shared:
            try:
                reported, _ = await shared.read_reported(interval)
                ended = [key for key, fault in reported.items() if fault.is_own and not fault.is_over]
                await shared.record("", ((key, OVER) for key in ended if key not in still_open))
            except _NO_ANSWER:
                self._note_away()

    @asynccontextmanager
    async def _open(self, target: str) -> AsyncGenerator[_SharedTarget]:
        identity = json.dumps([target, self._addresses.get(target), self._destination])
        async with httpx.AsyncClient(
            base_url=self._api_url,
            auth=self._auth,
            timeout=self.answer_timeout_s,
            trust_env=not is_local_address(self._api_url),
            verify=not self._api_url.startswith("http:"),  # plain HTTP has no certificates; reading all takes 20 ms
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

    def _note_away(self) -> str:
        self._away_until = max(self._away_until, time.monotonic() + AWAY_S)
        return (
            f"sent without a lease: the shared Prefect server did not answer within {self.answer_timeout_s:g} s; "
            "another machine may have sent it too"
        )


class _SharedTarget:
    """The variables of one target: its lease, and the records of what was sent."""

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

    async def take(self, alert: Alert, interval: timedelta, lease_s: float) -> tuple[Variable | None, AlertShare]:
        """Take the lease; return it with what is left to send. Without the lease, nothing is left."""
        held_id, held_since = None, 0.0
        while True:
            self._restart_deadline()
            lease = await self._create(self._lease_name, {"folder": self._folder, "host": self._host})
            reported, now = await self.read_reported(interval)
            share = _build_share(alert, reported, now, interval)
            if lease is not None or share.alert is None:
                return lease, share
            response = await self._ask("GET", f"/variables/name/{self._lease_name}", accept=404)
            if response.status_code == 404:  # noqa: PLR2004 - HTTP's "not found": the lease was returned just now
                continue
            held = Variable.model_validate(response.json())
            if held.id != held_id:
                held_id, held_since = held.id, time.monotonic()
            held_s = max((now - held.created).total_seconds(), time.monotonic() - held_since)
            if held_s >= lease_s:
                await self._delete(held.id)
            else:
                # Prefect does not report that a variable was deleted.
                await asyncio.sleep(min(POLL_S, lease_s - held_s))

    async def finish(self, lease: Variable, share: AlertShare) -> None:
        """Record what was sent, return the lease, and delete old records."""
        self._restart_deadline()
        for receipt in share.receipts:
            if share.alert is not None and receipt.status is DeliveryStatus.SENT:
                facts = (
                    (_shorten(alert_item.incident.fingerprint), fact)
                    for alert_item in share.alert.items
                    for fact in _list_reported_facts(alert_item)
                )
                await self.record(share.alert.id, facts, receipt)
        await self._delete(lease.id)
        for variable_id in self._expired:
            await self._delete(variable_id)

    async def read_reported(self, interval: timedelta) -> tuple[Mapping[str, ReportedFault], datetime]:
        """Read what was reported about each fault within ``interval``, and the time, by the server's clock."""
        like = {"variables": {"name": {"like_": self._record_name}}, "sort": "CREATED_DESC", "limit": MAX_ROWS}
        response = await self._ask("POST", "/variables/filter", like)
        now = parsedate_to_datetime(response.headers["date"])
        variables = _VARIABLES.validate_python(response.json())
        self._expired = [variable.id for variable in variables if now - variable.created >= interval]
        reported: dict[str, ReportedFault] = {}
        for variable in reversed(variables):
            try:
                record = SentRecord.model_validate(variable.value)
            except ValidationError:
                continue  # a person changed it, or another version wrote it: then it is reported again
            if variable.id not in self._expired:
                _add_record(reported, record, variable.created, is_own=record.folder == self._folder)
        return reported, now

    async def record(self, alert_id: str, facts: Iterable[tuple[str, str]], receipt: Receipt | None = None) -> None:
        """Record ``facts``, each with its fault, as reported by this machine, in as many variables as they need."""
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
            await self._create(f"{self._record_name}-{self._nonce()}", record.model_dump(mode="json"))

    async def _create(self, name: str, value: object) -> Variable | None:
        """Create a variable; return ``None`` if its name exists."""
        body = {"name": name, "value": value, "tags": ["lookout"]}
        response = await self._ask("POST", "/variables/", body, accept=409)
        return Variable.model_validate(response.json()) if response.is_success else None

    async def _delete(self, variable_id: uuid.UUID) -> None:
        await self._ask("DELETE", f"/variables/{variable_id}", accept=404)

    async def _ask(self, method: str, path: str, body: object = None, *, accept: int = 200) -> httpx.Response:
        """Send a request; raise one of `_NO_ANSWER` if time is up or the code is no success and not ``accept``."""
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


def _build_share(
    alert: Alert, reported: Mapping[str, ReportedFault], now: datetime, interval: timedelta
) -> AlertShare:
    """Build the part of ``alert`` that no other machine has reported."""
    faults = [reported.get(_shorten(alert_item.incident.fingerprint)) for alert_item in alert.items]
    pairs = list(zip(alert.items, faults, strict=True))
    left = [
        alert_item for alert_item, fault in pairs if fault is None or not fault.covers(alert_item, now, interval)
    ]
    if not left:
        fault = max((fault for fault in faults if fault is not None), key=lambda fault: fault.at)
        record, at = fault.newest, f"{fault.at:%Y-%m-%d %H:%M} UTC"
        return AlertShare(None, note=f"{SENT_ELSEWHERE}, {record.host}, as {record.alert_id} at {at}")
    # A reply about faults that another machine reported first belongs in the thread of that message.
    places = {(fault.opening.channel, fault.opening.thread) if fault else (None, None) for _, fault in pairs}
    channel, thread = places.pop() if len(places) == 1 else (None, None)
    if thread is None or alert.reason in THREAD_REASONS or alert.thread is not None:
        channel, thread = None, None
    whole = len(left) == len(alert.items)
    return AlertShare(alert if whole else alert.with_items(left), channel=channel, thread=thread)


def _add_record(reported: dict[str, ReportedFault], record: SentRecord, at: datetime, *, is_own: bool) -> None:
    """Add a record to earlier ones; an end begins a new story, and so does the first message after it."""
    for key, facts in record.facts.items():
        fault = reported.get(key)
        if fault is None or fault.is_over or OVER in facts:
            fault = reported[key] = ReportedFault(opening=record, newest=record, at=at, is_over=OVER in facts)
        fault.is_own = fault.is_own or is_own
        if not is_own:
            fault.newest, fault.at = record, at
            fault.facts.update(facts)


def _list_reported_facts(alert_item: AlertItem) -> list[str]:
    """List the facts that a message with ``alert_item`` tells: who knows severity 3 need not hear of 2."""
    if alert_item.incident.is_resolved:
        return [OVER]
    return [*map(str, range(1, alert_item.incident.severity)), *_list_facts(alert_item)]


def _list_facts(alert_item: AlertItem) -> list[str]:
    """List the facts that an open fault's message states: severity, failed cases, the gate's reasons, a rise."""
    observation = alert_item.observation
    rise = f"rise {observation.seen_at:%Y-%m-%d}"  # several machines see the same night's rise
    texts = [*observation.failed_cases, *observation.verdict_reasons, *([rise] if observation.multiplied else [])]
    return [
        str(int(alert_item.incident.severity)),
        *(hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts),
    ]


def _shorten(fingerprint: str) -> str:
    return fingerprint[:16]
