"""What people did is carried out, and their quiet is kept: before anything is told, and as soon as one acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from monitors.alerts.person_actions import settle
from monitors.alerts.settings import AlertSettings
from monitors.records.people import Matter, PersonAction, Settlement
from warehouse.people import CarriedOut, append_action, carry_out
from warehouse.store import Store

LOCK_WAIT_S = 30.0
"""As for messages: a load of a whole night takes seconds."""


@dataclass(frozen=True)
class People:
    """Where people's actions are kept and carried out.

    ``account_patterns`` gives a target's own patterns of account numbers, for drafts; ``now`` is the clock.
    """

    store: Store
    settings: AlertSettings
    account_patterns: Callable[[str], Sequence[str]]
    now: Callable[[], datetime]


def act(people: People, action: PersonAction) -> None:
    """Keep an action. Durable when this returns, without waiting for anyone; `catch_up` carries it out."""
    append_action(people.store.journal, action)


def catch_up(people: People, *, wait_s: float = LOCK_WAIT_S) -> CarriedOut:
    """Carry out what waits, each action once across all processes; tells all silences too.

    Raises `WarehouseBusy`: then it still waits, and nothing is lost.
    """

    def decision(matter: Matter) -> Settlement:
        return settle(matter, now=people.now(), settings=people.settings, account_patterns=people.account_patterns)

    return carry_out(people.store, people.store.journal, decision, wait_s=wait_s)
