"""Queries about drills, which test the alert path with a planted failure."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from monitors.errors import WarehouseDamaged
from monitors.records.incidents import Receipt
from monitors.records.self_checks import DrillReport
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store


def find_last_drill(store: Store, *, wait_s: float = DEFAULT_READ_WAIT_S) -> DrillReport | None:
    """Return the report of the newest drill, or ``None`` before the first drill.

    Raises `WarehouseDamaged` if the report has an unknown format.
    """
    table = store.query("select record from drills order by started_at desc, drill_id desc limit 1", wait_s=wait_s)
    if not table.rows:
        return None
    try:
        return DrillReport.model_validate_json(str(table.rows[0][0]))
    except ValidationError as error:
        raise WarehouseDamaged("this version of Lookout cannot read the report of the newest drill") from error


def has_drill_row(store: Store, drill_id: str, *, wait_s: float = DEFAULT_READ_WAIT_S) -> bool:
    """Return whether the drill is in the warehouse."""
    return bool(
        store.query("select 1 from drills where drill_id = $drill", {"drill": drill_id}, wait_s=wait_s).rows
    )


def list_receipts(store: Store, alert_id: str) -> tuple[Receipt, ...]:
    """List the receipts of the attempts to send an alert, oldest first."""
    table = store.query(
        "select alert_id, status, tried_at, channel, thread, detail from receipts where alert_id = $alert"
        " order by tried_at",
        {"alert": alert_id},
    )
    names = ("alert_id", "status", "at", "channel", "thread", "detail")
    return tuple(Receipt.model_validate(dict(zip(names, row, strict=True))) for row in table.rows)


def load_backlog_of_other_alerts(store: Store, alert_id: str) -> tuple[int, datetime | None]:
    """Return how many alerts other than ``alert_id`` wait to be sent, and the time of the oldest of these."""
    table = store.query(
        "select count(*), min(created_at) from unsent_alerts where state = 'waiting' and id <> $alert",
        {"alert": alert_id},
    )
    count, oldest = table.rows[0]
    return int(str(count)), oldest if isinstance(oldest, datetime) else None
