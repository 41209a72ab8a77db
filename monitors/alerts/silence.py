"""Whether a person has asked for quiet about an incident."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from monitors.records.incidents import Incident
from monitors.records.silences import Silence


def is_silenced(incident: Incident, silences: Iterable[Silence], now: datetime) -> bool:
    """Whether any of ``silences`` covers ``incident`` at ``now``."""
    return any(silence.covers(incident, now) for silence in silences)
