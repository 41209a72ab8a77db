"""What is known of fire drills."""

from __future__ import annotations

from pydantic import ValidationError

from monitors.errors import WarehouseDamaged
from monitors.records.drills import DrillReport
from warehouse.database.store import READ_WAIT_S, Store


def last_drill(store: Store, *, wait_s: float = READ_WAIT_S) -> DrillReport | None:
    """The newest drill; ``None`` before the first. Raises `WarehouseDamaged` for a report of another form."""
    found = store.query("select record from drills order by started_at desc, drill_id desc limit 1", wait_s=wait_s)
    if not found.rows:
        return None
    try:
        return DrillReport.model_validate_json(str(found.rows[0][0]))
    except ValidationError as error:
        raise WarehouseDamaged("the newest drill has a report of another form") from error
