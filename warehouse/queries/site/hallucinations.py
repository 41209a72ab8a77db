"""Queries for the entries of an application's own hallucination log that a page of the site shows."""

from __future__ import annotations

from datetime import datetime

from monitors.records.base import Record, UtcTime
from monitors.records.incidents import IncidentState
from warehouse.database.store import Store


# Shares its fields with BlockedReply because its columns are flat, with the state of the incident.
class LogEntryShown(Record):
    """An entry of a hallucination log, with the state of its incident.

    A field is ``None`` if the log has no value for it.
    """

    target: str
    fingerprint: str
    logged_at: UtcTime | None
    read_at: UtcTime
    notify: bool
    user_text: str | None
    blocked_reply: str | None
    reasons: tuple[str, ...]
    unsupported_claims: tuple[str, ...]
    chunk_count: int | None
    top_score: float | None
    policy_ids: tuple[str, ...]
    severity: int | None
    incident_state: IncidentState | None


_ENTRIES = (
    " from hallucinations h where ($target is null or target = $target)"
    " and ($since is null or coalesce(logged_at, read_at) >= $since::timestamptz)"
    " and ($until is null or coalesce(logged_at, read_at) < $until::timestamptz)"
)


def load_log_entries_page(
    store: Store, target: str | None, since: datetime | None, until: datetime | None, *, rows: int, offset: int
) -> tuple[tuple[LogEntryShown, ...], int]:
    """Load one page of log entries, newest first. Also return the number of all matching entries.

    An entry matches if its time is at ``since`` or later, and before ``until``.
    """
    wanted = {
        "target": target,
        "since": since.isoformat() if since else None,
        "until": until.isoformat() if until else None,
    }
    total = store.query(f"select count(*) {_ENTRIES}", wanted).rows[0][0]
    fields = LogEntryShown.model_fields
    names = ", ".join(f"p.{name}" for name in fields if name not in {"severity", "incident_state"})
    table = store.query(
        f"with page as (select h.*, coalesce(logged_at, read_at) as at_time {_ENTRIES}"  # noqa: S608 - ours
        " order by at_time desc, log, id desc limit $rows offset $offset)"
        f" select {names}, i.severity, i.state from page p left join incidents i using (fingerprint)"
        " order by p.at_time desc, p.log, p.id desc",
        {**wanted, "rows": rows, "offset": offset},
    )
    listed = (LogEntryShown.model_validate(dict(zip(fields, row, strict=True))) for row in table.rows)
    return tuple(listed), int(str(total))


def list_log_targets(store: Store) -> tuple[str, ...]:
    """List the targets that have log entries."""
    return tuple(str(row[0]) for row in store.query("select distinct target from hallucinations order by 1").rows)
