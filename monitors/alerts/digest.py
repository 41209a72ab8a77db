"""The nightly digest: one message a day that says how things stand, also when nothing is wrong."""

from __future__ import annotations

from datetime import datetime

from monitors.alerts.message import short_commit, utc
from monitors.alerts.wording import RECOVERED_MARK, SEVERITY_MARKS, counted, fault_words
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Incident, IncidentState, Link, Redacted

LISTED = 10
"""Open incidents named one by one; the rest is counted."""


class DigestFigure(Record):
    """One figure of the night with its words: ``severity-3 rate``, ``0.3 % [0.1, 0.8]``."""

    label: str
    value: str


class Digest(Record):
    """What one night came to. ``incidents`` are those open now; ``recovered`` those resolved since the last one.

    ``note`` is anything the reader must know of the night itself: that it was cut short by the budget, say.
    """

    id: Identifier
    target: Identifier
    run_id: Identifier
    made_at: UtcTime
    figures: tuple[DigestFigure, ...] = ()
    incidents: tuple[Incident, ...] = ()
    recovered: int = 0
    note: Redacted | None = None
    links: tuple[Link, ...] = ()

    @property
    def open_incidents(self) -> tuple[Incident, ...]:
        """The unresolved ones, worst first, then oldest."""
        still = [one for one in self.incidents if one.state is not IncidentState.RESOLVED]
        return tuple(sorted(still, key=lambda one: (-one.severity, one.opened_at, one.fingerprint)))


def digest_headline(digest: Digest) -> str:
    """``🔴 3 open, 1 of them SEV 3 · suraksha-demo · night of 2026-03-01``."""
    still = digest.open_incidents
    where = f"{digest.target} · night of {digest.made_at:%Y-%m-%d}"
    if not still:
        return f"{RECOVERED_MARK} Nothing open · {where}"
    worst = still[0].severity
    grave = sum(one.severity is worst for one in still)
    return f"{SEVERITY_MARKS[worst]} {len(still):,} open, {grave:,} of them SEV {int(worst)} · {where}"


def digest_lines(digest: Digest) -> tuple[str, ...]:
    """One line per open incident, the worst first; the last one counts what is not named."""
    still = digest.open_incidents
    lines = [_line(one, digest.made_at) for one in still[:LISTED]]
    if len(still) > LISTED:
        lines.append(f"… and {counted(len(still) - LISTED, 'more', 'more')}")
    return tuple(lines)


def _line(incident: Incident, now: datetime) -> str:
    days = max(0, (now - incident.opened_at).days)
    commit = incident.first_commit
    since = f"deploy {short_commit(commit)}" if commit else utc(incident.opened_at)
    pieces = [
        f"{SEVERITY_MARKS[incident.severity]} {fault_words(incident)}",
        incident.case_id or "",
        f"{counted(days, 'day')}, since {since}",
        "acknowledged" if incident.state is IncidentState.ACKNOWLEDGED else "",
    ]
    return " · ".join(piece for piece in pieces if piece)
