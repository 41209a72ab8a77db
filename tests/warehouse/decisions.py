"""Records decisions about incidents in one call, for tests of the code around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from monitors.records.incidents import Alert, Incident
from warehouse.database.store import Store
from warehouse.journal.journal import Journal
from warehouse.queries.outbox import open_incident_transaction


class OutboxDecision(NamedTuple):
    """The changed incidents and the messages to send. Both can be empty."""

    incidents: tuple[Incident, ...] = ()
    alerts: tuple[Alert, ...] = ()


def decide(
    store: Store,
    journal: Journal,
    target: str,
    decision: Callable[[Mapping[str, Incident]], OutboxDecision],
    *,
    wait_s: float,
) -> OutboxDecision:
    """Call ``decision`` with the target's incidents, store the result, and return the result when it is durable."""
    with open_incident_transaction(store, journal, target, wait_s=wait_s) as book:
        decided = decision(book.incidents)
        book.record(decided.incidents, decided.alerts)
    return decided
