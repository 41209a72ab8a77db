"""Queries for the incidents that the site shows, and for the runs that the page of an incident links to."""

from __future__ import annotations

from collections.abc import Iterable

from monitors.records.base import Record, UtcTime
from monitors.records.grades import FailureKind
from monitors.records.incidents import Incident, IncidentKind, IncidentState
from warehouse.database.store import Store


# Shares its fields with FaultIdentity because it is a row of a list, with the state and the times.
class IncidentRowShown(Record):
    """An incident in a list, in its current state."""

    fingerprint: str
    kind: IncidentKind
    target: str
    state: IncidentState
    severity: int
    title: str
    case_id: str | None
    failure_kind: FailureKind | None
    opened_at: UtcTime
    last_seen_at: UtcTime
    resolved_at: UtcTime | None
    occurrences: int


class IncidentFilter(Record):
    """The incidents to show. ``None`` selects all. ``unresolved`` hides resolved incidents."""

    target: str | None = None
    state: str | None = None
    severity: int | None = None
    kind: str | None = None
    unresolved: bool = False


_INCIDENTS = (
    " from incidents where ($target is null or target = $target) and ($state is null or state = $state)"
    " and ($severity is null or severity = $severity) and ($kind is null or kind = $kind)"
    " and (not $unresolved or state <> 'resolved')"
)
_WORST_FIRST = "order by state = 'resolved', severity desc, last_seen_at desc, fingerprint"


def load_incidents_page(
    store: Store, wanted: IncidentFilter, *, rows: int, offset: int
) -> tuple[tuple[IncidentRowShown, ...], int]:
    """Load one page of incidents. Unresolved incidents come first, then the most severe.

    Also return the number of all matching incidents.
    """
    asked = wanted.model_dump()
    names = ", ".join(IncidentRowShown.model_fields)
    total = store.query(f"select count(*) {_INCIDENTS}", asked).rows[0][0]
    table = store.query(
        f"select {names} {_INCIDENTS} {_WORST_FIRST} limit $rows offset $offset",
        {**asked, "rows": rows, "offset": offset},
    )
    fields = IncidentRowShown.model_fields
    listed = (IncidentRowShown.model_validate(dict(zip(fields, row, strict=True))) for row in table.rows)
    return tuple(listed), int(str(total))


def find_incident(store: Store, fingerprint: str) -> Incident | None:
    """Find the current state of an incident. Returns ``None`` if no incident has this fingerprint."""
    table = store.query("select record from incidents where fingerprint = $key", {"key": fingerprint})
    return Incident.model_validate_json(str(table.rows[0][0])) if table.rows else None


def list_incident_targets(store: Store) -> tuple[str, ...]:
    """List the targets of all incidents, sorted by name."""
    return tuple(str(row[0]) for row in store.query("select distinct target from incidents order by 1").rows)


def select_stored_runs(store: Store, run_ids: Iterable[str]) -> frozenset[str]:
    """Return those of ``run_ids`` whose run is in the warehouse. Only these runs have a page."""
    table = store.query(
        "select run_id from runs where list_contains(string_split($runs, ','), run_id)",
        {"runs": ",".join(sorted(set(run_ids)))},
    )
    return frozenset(str(row[0]) for row in table.rows)
