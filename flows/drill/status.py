"""Describes the state of drills: whether the last drill passed, failed or is overdue, or whether there was none."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from monitors.config.sections import DrillSettings
from monitors.plural import plural
from monitors.records.self_checks import DrillReport

MAX_DRILL_DURATION: Final = timedelta(hours=1)
"""Maximum duration of a drill. A drill that has not ended by then counts as killed."""


class DrillState(StrEnum):
    """The state of drills: the last drill passed, failed or is overdue, or no drill has finished yet."""

    PROVED = "proved"
    FAILED = "failed"
    OVERDUE = "overdue"
    NEVER = "never"


class DrillStatus(NamedTuple):
    """The state of drills, a description of this state, and the next command to run."""

    state: DrillState
    text: str
    to_do: str = ""


def build_drill_status(report: DrillReport | None, settings: DrillSettings, now: datetime) -> DrillStatus:
    """Build the drill status at ``now`` from the report of the newest drill."""
    if report is None:
        return DrillStatus(DrillState.NEVER, "there was no drill yet", "lookout drill")
    done = f"{report.started_at:%Y-%m-%d %H:%M} UTC"
    failed = report.failed
    if failed is not None:
        return DrillStatus(
            DrillState.FAILED, f"failed at {failed.station.place}, {done}: {failed.found}", failed.to_do
        )
    age = now - report.started_at
    if settings.enabled and settings.cron and age > timedelta(days=settings.missing_after_days):
        text = (
            f"the last drill was {plural(age.days, 'day')} ago ({done}), so the schedule or the worker does not run"
        )
        return DrillStatus(DrillState.OVERDUE, text, "lookout drill")
    if not report.finished and age < MAX_DRILL_DURATION:
        return DrillStatus(
            DrillState.NEVER, f"a drill that began at {done} is still running or was killed", "lookout drill"
        )
    if not report.passed:
        return DrillStatus(DrillState.FAILED, f"the drill of {done} did not finish", "lookout drill")
    seconds = f"{report.message_after_s:.1f} s" if report.message_after_s is not None else "an unknown time"
    return DrillStatus(
        DrillState.PROVED, f"passed {done}: Slack accepted the alert {seconds} after the wrong answer"
    )
