"""What telling people needs: where incidents are kept, how messages are sent, and for whom this is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from flows.people import People
from monitors.alerts.sender import AlertSender
from monitors.alerts.settings import AlertSettings
from warehouse.journal import Journal
from warehouse.store import Store


@dataclass(frozen=True)
class Desk:
    """One target's messages during one run. ``terminal`` prints what nothing else takes; ``now`` is the clock.

    ``people`` is where what people did is carried out before anything is told.
    """

    target: str
    run_id: str
    settings: AlertSettings
    store: Store
    journal: Journal
    sender: AlertSender
    terminal: AlertSender
    people: People
    now: Callable[[], datetime]
