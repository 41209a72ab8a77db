"""Queries for stored facts about live traffic and about hallucination logs.

The facts about traffic are the conversations that nightly runs read, and the results of these runs. The facts about
a log are the read position, and the entries that still need an alert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from monitors.records.logs import HallucinationEntry, LogCursor, LoggedHallucination
from monitors.records.nightly import NightlyReport
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store, Table, parse_record_text


def iterate_known_conversation_hashes(
    store: Store, target: str, source: str, since: datetime, *, except_run: str, wait_s: float = DEFAULT_READ_WAIT_S
) -> Iterator[int]:
    """Yield the hashed ids of conversations that a nightly run has read and that ended at ``since`` or later.

    Conversations of ``except_run`` are skipped. Each conversation id is converted to a 64-bit number: the first
    eight bytes of its MD5 hash, in little-endian order. Millions of such numbers fit into a few megabytes. The
    numbers are in ascending order.
    """
    with store.database.open_for_reading(wait_s) as connection:
        result = connection.execute(
            "select md5_number_upper(id) as number from conversations"
            " where target = ? and source = ? and completed_at >= ?::timestamptz and run_id <> ? order by number",
            [target, source, since.isoformat(), except_run],
        )
        while rows := result.fetchmany(_ROWS_PER_FETCH):
            yield from (int(number) for (number,) in rows)


_ROWS_PER_FETCH = 10_000
"""The number of rows that are fetched from DuckDB at a time."""


def list_recent_nightly_reports(
    store: Store, target: str, count: int, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[NightlyReport, ...]:
    """List the last ``count`` nightly reports of a target, newest first. Raises `WarehouseDamaged`."""
    table = store.query(
        "select record from nightly_runs where target = $target"
        " order by due_at desc, finished_at desc, run_id desc limit $count",
        {"target": target, "count": count},
        wait_s=wait_s,
    )
    return tuple(_parse_report(row) for row in table.rows)


def find_nightly_report(store: Store, run_id: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> NightlyReport | None:
    """Find the report of a nightly run by its id.

    Raises `WarehouseDamaged` if the report has another format.
    """
    table = store.query("select record from nightly_runs where run_id = ?", [run_id], wait_s=wait_s)
    return _parse_report(table.rows[0]) if table.rows else None


def _parse_report(row: Sequence[object]) -> NightlyReport:
    return parse_record_text(row[0], NightlyReport, "nightly report", "its figures are still in `nightly_trend`")


def find_log_cursor(store: Store, log: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> LogCursor | None:
    """Return the stored read position of ``log``, or ``None`` before the first poll."""
    table = store.query(
        "select record from log_cursors where log = ? order by sequence desc limit 1", [log], wait_s=wait_s
    )
    return LogCursor.model_validate_json(str(table.rows[0][0])) if table.rows else None


def list_log_entries_awaiting_alert(
    store: Store, target: str, *, limit: int, wait_s: float = DEFAULT_READ_WAIT_S
) -> Sequence[LoggedHallucination]:
    """List the log entries that need an alert and have no incident yet, oldest first."""
    table = store.query(
        """
        select target, fingerprint, read_at, notify, record from hallucinations h
        where target = ? and notify and fingerprint not in (
          select fingerprint from incident_history where target = h.target
        )
        order by coalesce(logged_at, read_at), id limit ?
        """,
        [target, limit],
        wait_s=wait_s,
    )
    return [_build_entry(row) for row in table.rows]


def list_entry_times(
    store: Store, log: str, since: datetime, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> Sequence[datetime]:
    """Return the times of the entries of ``log`` that were read at ``since`` or later.

    The time of an entry is the time that the entry states. Two kinds of entries have the time at which they were
    read instead:

    - Entries that state no time.
    - Entries that people are notified of, if the stated time is impossible. A time is impossible if it is after the
      time of reading, or more than a week before the time of reading.
    """
    table: Table = store.query(
        """
        select case when notify and not logged_at between read_at - interval 7 day and read_at then read_at
                    else coalesce(logged_at, read_at) end as moment
        from hallucinations where log = ? and read_at >= ?::timestamptz
        """,
        [log, since.isoformat()],
        wait_s=wait_s,
    )
    return [moment for (moment,) in table.rows if isinstance(moment, datetime)]


def _build_entry(row: tuple[object, ...]) -> LoggedHallucination:
    target, fingerprint, read_at, notify, record = row
    return LoggedHallucination.model_validate(
        {
            "target": target,
            "fingerprint": fingerprint,
            "read_at": read_at,
            "notify": notify,
            "entry": HallucinationEntry.model_validate_json(str(record)),
        }
    )
