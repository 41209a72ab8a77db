"""Builds the summary of what failed during a silence, while alerts were withheld."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.message import format_utc
from monitors.alerts.redact import redact
from monitors.alerts.wording import ABOUT_THE_MONITOR
from monitors.records.base import Blame
from monitors.records.incidents import (
    Alert,
    AlertItem,
    FaultIdentity,
    Incident,
    NotifyReason,
    Observation,
    RunSummary,
)
from monitors.records.operator_actions import Silence
from monitors.records.recurrence import Period


def build_silence_summary(
    incidents: Sequence[Incident], silence: Silence, period: Period, *, now: datetime, production: bool
) -> tuple[Alert, ...]:
    """Build one message about the ``incidents`` of a target, and one message about internal incidents of Lookout.

    The messages contain the silence and its period instead of a run id. Therefore every process builds the same
    message ids.
    """
    times = f"from {format_utc(period.starts_at)} to {format_utc(period.ends_at)}"
    text = redact(f"Silence {silence.id}, {silence.recurrence}, {times}: {silence.comment} ({silence.author})")
    return group_items_into_alerts(
        [_build_silenced_item(incident) for incident in incidents],
        target=incidents[0].target,
        run_id=f"{silence.id}@{period.starts_at:%Y%m%dT%H%MZ}",
        now=now,
        summary=RunSummary(changed=(text,), production=production),
    )


def _build_silenced_item(incident: Incident) -> AlertItem:
    identity = {name: getattr(incident, name) for name in FaultIdentity.model_fields}
    observation = Observation(
        **identity,
        run_id=incident.last_run_id,
        seen_at=incident.last_seen_at,
        blame=Blame.MONITOR if incident.kind in ABOUT_THE_MONITOR else Blame.APP,
        commit=incident.first_commit,
        reason=redact(f"Run {incident.last_run_id} saw this fault last. Lookout sent no alert."),
    )
    return AlertItem(incident=incident, observation=observation, reason=NotifyReason.SILENCED)
