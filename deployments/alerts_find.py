"""Which incidents a person means: by the id in a message, or by the beginning of an incident's own."""

from __future__ import annotations

import re
from typing import Final

from monitors.errors import ConfigError
from monitors.records.incidents import Incident
from warehouse.incident_story import all_incidents
from warehouse.messages import alert_shown
from warehouse.store import Store

SHOWN_CHARACTERS: Final = 8
"""Of an incident's id in lists: 32 bits, enough for a lifetime of incidents."""
FEWEST_CHARACTERS: Final = 4

_ALERT: Final = re.compile(r"LK-[A-Z2-7]{8}", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"[0-9a-f]{1,64}", re.IGNORECASE)


def short_id(incident: Incident) -> str:
    """As it is shown, and as it may be typed."""
    return incident.fingerprint[:SHOWN_CHARACTERS]


def meant(store: Store, given: str) -> tuple[Incident, ...]:
    """The incidents of a message (``LK-ABCDEFGH``), or the one whose id begins so. Raises `ConfigError`."""
    if _ALERT.fullmatch(given):
        return _of_message(store, given.upper())
    if not _BEGINNING.fullmatch(given) or len(given) < FEWEST_CHARACTERS:
        raise ConfigError(
            f"{given!r} is no id: the one at the end of a message (LK-…) is accepted, or the first characters of "
            "an incident's, at least 4, as `lookout alerts list` shows them"
        )
    found = [one for one in all_incidents(store, resolved_too=True) if one.fingerprint.startswith(given.lower())]
    if not found:
        raise ConfigError(f"no incident's id begins with {given}; `lookout alerts list --all` shows all")
    if len(found) > 1:
        few = ", ".join(one.fingerprint[:12] for one in found[:5])
        raise ConfigError(f"several incidents begin with {given}: {few}; give more characters")
    return (found[0],)


def _of_message(store: Store, alert_id: str) -> tuple[Incident, ...]:
    shown = {item.incident.fingerprint for alert in alert_shown(store, alert_id) for item in alert.items}
    found = tuple(one for one in all_incidents(store, resolved_too=True) if one.fingerprint in shown)
    if not found:
        raise ConfigError(f"no message {alert_id} is known here; `lookout alerts list --all` shows all incidents")
    return found
