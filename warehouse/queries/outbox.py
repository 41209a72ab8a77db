"""Decisions that only one process may make, for example to open an incident or to send a message.

Each decision is made in one short transaction under the lock. The caller gets the target's incidents, decides, and
records the result. The result is written to the journal and to the tables together. If the process is killed, the
result is stored either completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import duckdb

from monitors.errors import WarehouseBusy
from monitors.records.base import Identifier, Record
from monitors.records.incidents import Alert, Incident, Receipt
from warehouse.database.connection import transaction
from warehouse.database.load import insert_segments
from warehouse.database.stage import NamedSegment
from warehouse.database.store import Store, read_incidents
from warehouse.journal.journal import OUTBOX, Journal
from warehouse.journal.rows import AlertRow, IncidentRow, IncidentVersion, OutboxRow, ReceiptRow
from warehouse.journal.segments import SUFFIX


class SendLease(Record):
    """Messages that only one worker may send until ``expires_at``. After this time, other workers may send them.

    ``tried`` contains the ids of messages that were already claimed before. Such a message may already have been
    delivered.
    """

    owner: Identifier
    expires_at: datetime
    alerts: tuple[Alert, ...]
    tried: frozenset[str] = frozenset()


class IncidentTransaction:
    """A transaction in which a caller decides about the incidents of one target and records the result."""

    def __init__(self, incidents: Mapping[str, Incident]) -> None:
        self.incidents = incidents
        """The incidents at the beginning of the transaction, keyed by fingerprint."""
        self.changed: list[Incident] = []
        self.alerts: list[Alert] = []

    def record(self, incidents: Iterable[Incident], alerts: Iterable[Alert] = ()) -> None:
        """Add changed incidents and unsent alerts to this transaction.

        The incidents and alerts are stored when the ``with`` block ends.
        """
        self.changed += incidents
        self.alerts += alerts


@contextmanager
def open_incident_transaction(
    store: Store, journal: Journal, target: str, *, wait_s: float
) -> Generator[IncidentTransaction]:
    """Open a transaction in which the caller decides about the target's incidents.

    At the end of the ``with`` block, the result is stored and survives a crash. If the block raises an error, the
    result is discarded. The function waits at most ``wait_s`` seconds for the lock, and raises `WarehouseBusy` if
    the lock is still held.
    """
    with store.database.open_for_writing(wait_s) as connection:
        store.load_pending_segments_into(connection, OUTBOX)
        with transaction(connection):
            book = IncidentTransaction(read_incidents(connection, target))
            yield book
            versions = [
                IncidentRow(row=IncidentVersion(sequence=number, incident=incident))
                for number, incident in enumerate(book.changed, start=compute_next_sequence(connection))
            ]
            rows: list[OutboxRow] = [*versions, *(AlertRow(row=alert) for alert in book.alerts)]
            if rows:
                append_and_insert_rows(connection, journal, rows)
        store.save_ledger_if_complete(connection)


def claim_alerts(
    store: Store,
    *,
    owner: str,
    lease_s: float,
    limit: int,
    wait_s: float,
    is_gone: Callable[[str], bool] = lambda _: False,
    is_printing: bool = False,
    except_ids: Collection[str] = (),
) -> SendLease:
    """Claim up to ``limit`` unsent messages, most severe first. Only this worker may then send them.

    - The claim lasts ``lease_s`` seconds, or until the messages have a receipt.
    - If the worker dies, another worker can claim the messages when the claim ends. If ``is_gone`` returns true for
      the name of the dead worker, the messages can be claimed at once. A message may then be sent twice, with the
      same id, but is never lost.
    - If ``is_printing`` is true, messages that an earlier attempt could not send are skipped, because printing them
      would not notify anyone.
    - Messages in ``except_ids`` are skipped.

    Raises `WarehouseBusy` if the lock is still held after ``wait_s`` seconds.
    """
    with store.database.open_for_writing(wait_s) as connection:
        store.load_pending_segments_into(connection, OUTBOX)
        now = store.clock()
        expires_at = now + timedelta(seconds=lease_s)
        with transaction(connection):
            _end_leases_of_gone_workers(connection, now, is_gone)
            wanted = {"now": now, "latest": expires_at + timedelta(seconds=lease_s), "limit": limit}
            rows = connection.execute(
                _FREE, wanted | {"is_printing": is_printing, "except_ids": list(except_ids)}
            ).fetchall()
            for alert_id, _, _ in rows:
                connection.execute(_LEASE, [owner, now, expires_at, alert_id])
        store.save_ledger_if_complete(connection)
    alerts = tuple(Alert.model_validate_json(str(record)) for _, record, _ in rows)
    tried = frozenset(str(alert_id) for alert_id, _, claimed in rows if claimed)
    return SendLease(owner=owner, expires_at=expires_at, alerts=alerts, tried=tried)


def record_receipt(store: Store, journal: Journal, receipt: Receipt, *, wait_s: float) -> None:
    """Store the receipt of an alert.

    The receipt survives a crash, even if the warehouse is locked when the receipt is stored.
    """
    journal.append_outbox([ReceiptRow(row=receipt)])
    try:
        with store.database.open_for_writing(wait_s) as connection:
            store.load_pending_segments_into(connection, OUTBOX)
            store.save_ledger_if_complete(connection)
    except WarehouseBusy:
        return  # the receipt is in the journal, and every decision and claim reads the journal first


def _end_leases_of_gone_workers(
    connection: duckdb.DuckDBPyConnection, now: datetime, is_gone: Callable[[str], bool]
) -> None:
    """End the leases of workers that no longer run.

    ``is_gone`` is called with the name of a worker, and returns whether this worker no longer runs.
    """
    owners = connection.execute("select distinct owner from leases where expires_at > ?", [now]).fetchall()
    for (owner,) in owners:
        if is_gone(str(owner)):
            connection.execute("update leases set expires_at = ? where owner = ?", [now, owner])


_FREE = """
select id, record, exists (select 1 from leases l where l.alert_id = a.id) as claimed from alerts a
where id in (select id from unsent_alerts where state = 'waiting')
  and not list_contains($except_ids::varchar[], id)
  and not exists (
    select 1 from leases l
    where l.alert_id = a.id and l.expires_at > $now and l.expires_at <= $latest
      and l.receipts = (select count(*) from receipts r where r.alert_id = l.alert_id)
  )
  and not ($is_printing and exists (select 1 from receipts r where r.alert_id = a.id and r.status = 'failed'))
order by severity desc, created_at, id
limit $limit
"""

_LEASE = """
insert or replace into leases (owner, claimed_at, expires_at, alert_id, receipts)
select $1, $2, $3, $4, (select count(*) from receipts where alert_id = $4)
"""


def compute_next_sequence(connection: duckdb.DuckDBPyConnection) -> int:
    """Compute the next sequence number of an incident version. The caller holds the lock."""
    row = connection.execute("select coalesce(max(sequence), 0) + 1 from incident_history").fetchone()
    return int(row[0]) if row else 1


def append_and_insert_rows(
    connection: duckdb.DuckDBPyConnection, journal: Journal, rows: Sequence[OutboxRow]
) -> None:
    """Write ``rows`` to the journal and to the tables, in the caller's transaction."""
    name = f"{OUTBOX}/{journal.append_outbox(rows)}{SUFFIX}"
    insert_segments(connection, journal, [NamedSegment(name, journal.read(name))])
