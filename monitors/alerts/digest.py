"""The nightly digest: one message a day that says how things stand, even when nothing is wrong."""

from __future__ import annotations

from datetime import datetime

from monitors.alerts.message import short_commit, utc
from monitors.alerts.wording import RECOVERED_MARK, SEVERITY_MARKS, TRAFFIC_CASE, UNKNOWN_MARK, format_fault
from monitors.plural import plural
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Incident, IncidentState, Link, Redacted

LISTED = 10
"""Open incidents named one by one; the rest is counted."""


class DigestFigure(Record):
    """One figure of the nightly run with its words: ``severity-3 rate``, ``0.3 % [0.1, 0.8]``."""

    label: str
    value: str


class Digest(Record):
    """What one nightly run found. ``incidents`` are open now; ``recovered`` were resolved since the last one.

    ``note`` is anything the reader must know of the nightly run itself: that the budget cut it short, say.
    ``unknown`` says in two or three words what the run could not establish: then it is no good news that nothing is
    open.
    """

    id: Identifier
    target: Identifier
    run_id: Identifier
    made_at: UtcTime
    figures: tuple[DigestFigure, ...] = ()
    incidents: tuple[Incident, ...] = ()
    recovered: int = 0
    note: Redacted | None = None
    unknown: str = ""
    links: tuple[Link, ...] = ()

    @property
    def open_incidents(self) -> tuple[Incident, ...]:
        """The unresolved ones, worst first, then oldest."""
        unresolved = [incident for incident in self.incidents if incident.state is not IncidentState.RESOLVED]
        return tuple(
            sorted(unresolved, key=lambda incident: (-incident.severity, incident.opened_at, incident.fingerprint))
        )


def digest_headline(digest: Digest) -> str:
    """``🔴 3 open, 1 of them SEV 3 · suraksha-demo · night of 2026-03-01``."""
    unresolved = digest.open_incidents
    place = f"{digest.target} · night of {digest.made_at:%Y-%m-%d}"
    doubt = f", {digest.unknown}" if digest.unknown else ""
    if not unresolved:
        return f"{UNKNOWN_MARK if doubt else RECOVERED_MARK} Nothing open{doubt} · {place}"
    worst = unresolved[0].severity
    grave = sum(incident.severity is worst for incident in unresolved)
    return f"{SEVERITY_MARKS[worst]} {len(unresolved):,} open, {grave:,} of them SEV {int(worst)}{doubt} · {place}"


def digest_lines(digest: Digest) -> tuple[str, ...]:
    """One line per open incident, the worst first; the last one counts what is not named."""
    unresolved = digest.open_incidents
    lines = [_format_incident(incident, digest.made_at) for incident in unresolved[:LISTED]]
    if len(unresolved) > LISTED:
        lines.append(f"… and {plural(len(unresolved) - LISTED, 'more', 'more')}")
    return tuple(lines)


def _format_incident(incident: Incident, now: datetime) -> str:
    days = max(0, (now - incident.opened_at).days)
    commit = incident.first_commit
    since = f"deploy {short_commit(commit)}" if commit else utc(incident.opened_at)
    word = "found" if (incident.case_id or "").startswith(TRAFFIC_CASE) and not commit else "since"
    pieces = [
        f"{SEVERITY_MARKS[incident.severity]} {format_fault(incident)}",
        incident.case_id or "",
        f"{plural(days, 'day') if days else 'new'}, {word} {since}",
        "acknowledged" if incident.state is IncidentState.ACKNOWLEDGED else "",
    ]
    return " · ".join(piece for piece in pieces if piece)
