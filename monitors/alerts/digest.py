"""The nightly digest: one message a day about the current state, even on days without a fault."""

from __future__ import annotations

from datetime import datetime

from monitors.alerts.message import format_utc, shorten_commit
from monitors.alerts.wording import RECOVERED_MARK, SEVERITY_MARKS, TRAFFIC_CASE, UNKNOWN_MARK, format_fault
from monitors.plural import plural
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Incident, IncidentState, Link, Redacted

MAX_INCIDENTS_LISTED = 10
"""Maximum number of open incidents that the digest lists. All further incidents are only counted."""


class DigestFigure(Record):
    """A figure of the nightly run with its label, for example ``severity-3 rate`` and ``0.3 % [0.1, 0.8]``."""

    label: str
    value: str


class Digest(Record):
    """The content of the nightly digest.

    The digest is due at ``due_at``. If sending fails, the next attempt builds a new digest.

    - ``incidents`` are the incidents that are open now.
    - ``recovered`` is the number of incidents that were resolved since the last digest.
    - ``note`` is a remark about the nightly run, for example that the budget was used up.
    - ``unknown`` states in two or three words what the run could not check. If ``unknown`` is not empty, there may
      be faults even if no incident is open.
    """

    id: Identifier
    target: Identifier
    run_id: Identifier
    made_at: UtcTime
    due_at: UtcTime
    figures: tuple[DigestFigure, ...] = ()
    incidents: tuple[Incident, ...] = ()
    recovered: int = 0
    note: Redacted | None = None
    unknown: str = ""
    links: tuple[Link, ...] = ()

    @property
    def open_incidents(self) -> tuple[Incident, ...]:
        """The unresolved incidents, worst first. Incidents of the same severity are sorted by age, oldest first."""
        unresolved = [incident for incident in self.incidents if incident.state is not IncidentState.RESOLVED]
        return tuple(
            sorted(unresolved, key=lambda incident: (-incident.severity, incident.opened_at, incident.fingerprint))
        )


def format_digest_headline(digest: Digest) -> str:
    """Format the headline: ``🔴 3 open, 1 of them SEV 3 · suraksha-demo · night of 2026-03-01``."""
    unresolved = digest.open_incidents
    place = f"{digest.target} · night of {digest.due_at:%Y-%m-%d}"
    doubt = f", {digest.unknown}" if digest.unknown else ""
    if not unresolved:
        return f"{UNKNOWN_MARK if doubt else RECOVERED_MARK} No open incidents{doubt} · {place}"
    worst = unresolved[0].severity
    grave = sum(incident.severity is worst for incident in unresolved)
    return f"{SEVERITY_MARKS[worst]} {len(unresolved):,} open, {grave:,} of them SEV {int(worst)}{doubt} · {place}"


def format_worst_open_incidents(digest: Digest) -> tuple[str, ...]:
    """Format one line per open incident, worst first. The last line counts the incidents that are not listed."""
    unresolved = digest.open_incidents
    lines = [_format_open_incident(incident, digest.made_at) for incident in unresolved[:MAX_INCIDENTS_LISTED]]
    if len(unresolved) > MAX_INCIDENTS_LISTED:
        lines.append(f"… and {plural(len(unresolved) - MAX_INCIDENTS_LISTED, 'more', 'more')}")
    return tuple(lines)


def _format_open_incident(incident: Incident, now: datetime) -> str:
    days = max(0, (now - incident.opened_at).days)
    commit = incident.first_commit
    since = f"deploy {shorten_commit(commit)}" if commit else format_utc(incident.opened_at)
    word = "found" if (incident.case_id or "").startswith(TRAFFIC_CASE) and not commit else "since"
    pieces = [
        f"{SEVERITY_MARKS[incident.severity]} {format_fault(incident)}",
        incident.case_id or "",
        f"{plural(days, 'day') if days else 'new'}, {word} {since}",
        "acknowledged" if incident.state is IncidentState.ACKNOWLEDGED else "",
    ]
    return " · ".join(piece for piece in pieces if piece)
