"""One observation folded into what was known of its fault."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from monitors.records.incidents import Incident, IncidentKind, IncidentState, Observation

EVENTS: Final = frozenset({IncidentKind.HALLUCINATION})
"""Kinds that happen once: told once, never reminded, never regressed, closed without a word."""


def worst_by_fingerprint(observations: Iterable[Observation]) -> dict[str, Observation]:
    """Keep the worst observation of each fault, the first among equals."""
    worst: dict[str, Observation] = {}
    for seen in observations:
        known = worst.get(seen.fingerprint)
        if known is None or seen.severity > known.severity:
            worst[seen.fingerprint] = seen
    return worst


def fold(before: Incident | None, seen: Observation) -> Incident:
    """Return the incident after ``seen``.

    Severity never falls while an incident is open, so that a flapping one is not "worse" every other night. A
    run that repeats what it already reported before the incident was resolved does not reopen it.
    """
    if before is None:
        return _opened(seen)
    if before.state is IncidentState.RESOLVED:
        repeats = seen.run_id == before.last_run_id or before.kind in EVENTS
        return before if repeats else _reopened(before, seen)
    return _continued(before, seen)


def _opened(seen: Observation) -> Incident:
    return Incident(
        fingerprint=seen.fingerprint,
        kind=seen.kind,
        target=seen.target,
        state=IncidentState.OPEN,
        severity=seen.severity,
        title=seen.title,
        case_id=seen.case_id,
        failure_kind=seen.failure_kind,
        opened_at=seen.seen_at,
        last_seen_at=seen.seen_at,
        first_commit=seen.commit,
        last_run_id=seen.run_id,
    )


def _reopened(before: Incident, seen: Observation) -> Incident:
    """Begin a new life; ``resolved_at`` stays and tells that there was an earlier one."""
    return _opened(seen).model_copy(update={"resolved_at": before.resolved_at})


def _continued(before: Incident, seen: Observation) -> Incident:
    worse = seen.severity > before.severity
    return before.model_copy(
        update={
            "state": IncidentState.OPEN if worse else before.state,
            "severity": max(before.severity, seen.severity),
            "title": seen.title,
            "last_seen_at": max(before.last_seen_at, seen.seen_at),
            "occurrences": before.occurrences + (seen.run_id != before.last_run_id),
            "last_run_id": seen.run_id,
        }
    )
