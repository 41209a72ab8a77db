"""Inhibition: one fault that explains others mutes them, so that an outage is one page and not fifty."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from monitors.alerts.wording import GRAVE
from monitors.records.incidents import Incident, IncidentKind, IncidentState

MUTING: Final = frozenset({IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE})
"""While one of these is open, the application's quality is not news."""

MUTED: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})


def targets_in_outage(current: Iterable[Incident]) -> frozenset[str]:
    """Targets with an open outage among ``current``."""
    return frozenset(
        incident.target
        for incident in current
        if incident.kind in MUTING and incident.state is not IncidentState.RESOLVED
    )


def is_inhibited(incident: Incident, outages: frozenset[str]) -> bool:
    """Whether an outage of its target explains ``incident``. What is grave is told all the same."""
    if incident.kind not in MUTED or incident.failure_kind in GRAVE:
        return False
    return incident.target in outages
