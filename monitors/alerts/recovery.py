"""The end of an incident: what was seen is gone, as a run that could tell has shown."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from monitors.alerts.redact import redact
from monitors.alerts.scope import Scope
from monitors.alerts.wording import ABOUT_THE_MONITOR
from monitors.records.base import Blame
from monitors.records.incidents import (
    AlertItem,
    Incident,
    IncidentKind,
    IncidentState,
    NotifyReason,
    Observation,
)

CLEARED_WORDS: Final[dict[IncidentKind, str]] = {
    IncidentKind.CASE_FAILURE: "Asked again, and this fault did not come back.",
    IncidentKind.HALLUCINATION: "Closed: nothing more was seen of it.",
    IncidentKind.DEPLOY_FAILURE: "The application serves again.",
    IncidentKind.APP_DOWN: "The application answers again.",
    IncidentKind.GATE_FAIL: "The gate passes again.",
    IncidentKind.DRIFT: "The test finds no drift any more.",
    IncidentKind.JUDGE_VOID: "The judge catches its canaries again.",
    IncidentKind.MONITOR_FAULT: "The run came through.",
}


def recovered(incident: Incident, scope: Scope) -> AlertItem:
    """Resolve ``incident`` by the run of ``scope``; whether it is told is for the caller to decide."""
    resolved = close(incident, scope.ended_at)
    seen = Observation(
        fingerprint=incident.fingerprint,
        kind=incident.kind,
        target=incident.target,
        run_id=scope.run_id,
        seen_at=scope.ended_at,
        severity=incident.severity,
        blame=Blame.MONITOR if incident.kind in ABOUT_THE_MONITOR else Blame.APP,
        failure_kind=incident.failure_kind,
        case_id=incident.case_id,
        commit=scope.commit,
        title=incident.title,
        reason=redact(_words(incident, scope)),
    )
    return AlertItem(incident=resolved, observation=seen, reason=NotifyReason.RECOVERED)


def close(incident: Incident, at: datetime) -> Incident:
    """Resolve without a word. ``resolved_at`` is never before the fault was last seen."""
    return incident.model_copy(
        update={"state": IncidentState.RESOLVED, "resolved_at": max(at, incident.last_seen_at)}
    )


def _words(incident: Incident, scope: Scope) -> str:
    if scope.words is not None:
        return scope.words
    if incident.kind is not IncidentKind.CASE_FAILURE:
        return CLEARED_WORDS[incident.kind]
    if incident.case_id in scope.passed:
        return "Asked again and answered correctly."
    return CLEARED_WORDS[incident.kind] + " The case still fails in another way."
