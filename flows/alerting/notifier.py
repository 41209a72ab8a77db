"""What an alert needs: the incidents, the sender, the target, and the operator actions that change them.

`apply_actions` carries out operator actions and reads their silences before any alert is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from monitors.alerts.operator_actions import settle
from monitors.alerts.sender import AlertSender
from monitors.alerts.settings import AlertSettings
from monitors.config.file import Config
from monitors.records.incidents import Capability
from monitors.records.operator_actions import ActionSubject, PersonAction, Settlement
from warehouse.database.store import Store
from warehouse.journal.journal import Journal
from warehouse.queries.operator_actions import ActionResults, append_action, carry_out

LOCK_WAIT_S = 30.0
"""As long as for messages: a load of a whole nightly run takes seconds."""


@dataclass(frozen=True)
class OperatorActions:
    """Stores operator actions and carries them out.

    ``account_patterns`` gives a target's own patterns of account numbers, for drafts; ``now`` is the clock.
    """

    store: Store
    settings: AlertSettings
    account_patterns: Callable[[str], Sequence[str]]
    now: Callable[[], datetime]


def people_of(config: Config, store: Store, now: Callable[[], datetime]) -> OperatorActions:
    """The store that carries out operator actions."""

    def account_patterns(target: str) -> tuple[str, ...]:
        configured = config.targets.get(target)
        return configured.graders.account_patterns if configured else ()

    return OperatorActions(store=store, settings=config.alerts, account_patterns=account_patterns, now=now)


def act(people: OperatorActions, action: PersonAction) -> None:
    """Store an action. Durable when this returns, without waiting for anyone; `apply_actions` carries it out."""
    append_action(people.store.journal, action)


def apply_actions(people: OperatorActions, *, wait_s: float = LOCK_WAIT_S) -> ActionResults:
    """Carry out what waits, each action once across all processes; return all silences too.

    Raises `WarehouseBusy`: then the actions still wait, and nothing is lost.
    """

    def decision(subject: ActionSubject) -> Settlement:
        return settle(subject, now=people.now(), settings=people.settings, account_patterns=people.account_patterns)

    return carry_out(people.store, people.store.journal, decision, wait_s=wait_s)


@dataclass(frozen=True)
class Notifier:
    """One target's messages during one run. ``terminal`` prints what nothing else takes; ``now`` is the clock.

    ``people`` carries out operator actions before any alert is decided. ``owner`` is the part of the monitor that
    opens what it sends. ``production`` says that the target is one.
    """

    target: str
    run_id: str
    settings: AlertSettings
    store: Store
    journal: Journal
    sender: AlertSender
    terminal: AlertSender
    people: OperatorActions
    now: Callable[[], datetime]
    owner: Capability = Capability.VERIFY
    production: bool = False
