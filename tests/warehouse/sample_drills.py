"""Builds fire drills for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from monitors.alerts.redact import redact
from monitors.records.self_checks import DrillReport, DrillStation, StationResult, StationState

BEGAN = datetime(2026, 11, 23, 3, 12, tzinfo=UTC)


def station(
    name: DrillStation, state: StationState = StationState.PASSED, found: str = "it works", to_do: str = ""
) -> StationResult:
    """Return the result of one station of a drill."""
    return StationResult(station=name, state=state, took_s=0.5, found=redact(found), to_do=to_do)


def drill(drill_id: str = "drill-1", **changes: Any) -> DrillReport:
    """Return a drill that passed in 11 seconds."""
    whole = DrillReport(
        drill_id=drill_id,
        started_at=BEGAN,
        finished_at=BEGAN,
        fault="a limit from an outdated index",
        stations=(station(DrillStation.BROWSER), station(DrillStation.SLACK)),
        message_after_s=11.2,
        finished=True,
        version="1.0",
    )
    return whole.model_copy(update=changes)
