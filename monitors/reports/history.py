"""What is known about a failing case from before: since which deploy, and how often it was seen."""

from __future__ import annotations

from collections.abc import Iterable

from monitors.records.incidents import Incident, IncidentState
from monitors.reports.wording import moment, plural


def known_incidents(incidents: Iterable[Incident]) -> dict[str, Incident]:
    """By case id, the incident that has been open longest. What is resolved says nothing about this run."""
    current = [incident for incident in incidents if incident.state is not IncidentState.RESOLVED]
    newest_first = sorted(current, key=lambda incident: incident.opened_at, reverse=True)
    return {incident.case_id: incident for incident in newest_first if incident.case_id}


def since_words(incident: Incident | None, commit: str | None) -> str:
    """Since which deploy a fault is known, or nothing where its incident is not. ``commit`` is the graded one."""
    if incident is None:
        return ""
    if commit is not None and incident.first_commit == commit:
        return f"new with this deploy, {commit}"
    deploy = f"deploy {incident.first_commit}" if incident.first_commit else "an unknown deploy"
    return f"since {deploy}, {moment(incident.opened_at)}, seen in {plural(incident.occurrences, 'run')}"
