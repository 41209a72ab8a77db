"""What is remembered of a followed log: where reading stands, and which entries nobody was told of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from monitors.records.logs import HallucinationEntry, LogCursor, LoggedHallucination
from warehouse.store import READ_WAIT_S, Store, Table


def log_cursor(store: Store, log: str, *, wait_s: float = READ_WAIT_S) -> LogCursor | None:
    """Where reading of ``log`` stands, as far as segments are loaded; ``None`` before the first look."""
    found = store.query(
        "select record from log_cursors where log = ? order by sequence desc limit 1", [log], wait_s=wait_s
    )
    return LogCursor.model_validate_json(str(found.rows[0][0])) if found.rows else None


def untold(store: Store, target: str, *, most: int, wait_s: float = READ_WAIT_S) -> Sequence[LoggedHallucination]:
    """Entries that people are to be told of and for which there is no incident yet, oldest first."""
    found = store.query(
        """
        select target, fingerprint, read_at, tell, record from hallucinations h
        where target = ? and tell and fingerprint not in (
          select fingerprint from incident_history where target = h.target
        )
        order by coalesce(logged_at, read_at), id limit ?
        """,
        [target, most],
        wait_s=wait_s,
    )
    return [_logged(row) for row in found.rows]


def entry_times(store: Store, log: str, since: datetime, *, wait_s: float = READ_WAIT_S) -> Sequence[datetime]:
    """When the entries of ``log`` that were read since a time had been written.

    By their own account, unless it cannot be: an entry that was read as it came was not written a week before, nor
    after that. Then, and where it says nothing, it is when it was read.
    """
    found: Table = store.query(
        """
        select case when tell and not logged_at between read_at - interval 7 day and read_at then read_at
                    else coalesce(logged_at, read_at) end as moment
        from hallucinations where log = ? and read_at >= ?::timestamptz
        """,
        [log, since.isoformat()],
        wait_s=wait_s,
    )
    return [moment for (moment,) in found.rows if isinstance(moment, datetime)]


def _logged(row: tuple[object, ...]) -> LoggedHallucination:
    target, fingerprint, read_at, tell, record = row
    return LoggedHallucination.model_validate(
        {
            "target": target,
            "fingerprint": fingerprint,
            "read_at": read_at,
            "tell": tell,
            "entry": HallucinationEntry.model_validate_json(str(record)),
        }
    )
