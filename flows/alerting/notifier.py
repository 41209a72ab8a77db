"""The context of an alert: the store, the sender, the target, and the operator actions.

`apply_actions` carries out operator actions and reads their silences before any alert is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from flows.alerting.shared_server import SharedServer
from monitors.alerts.operator_actions import compute_action_changes
from monitors.alerts.sender import AlertSender
from monitors.alerts.settings import AlertSettings
from monitors.config.file import Config
from monitors.records.incidents import Capability
from monitors.records.operator_actions import ActionChanges, ActionContext, OperatorAction, Silence
from monitors.records.targets import Environment
from warehouse.database.store import Store
from warehouse.journal.journal import Journal
from warehouse.queries.incidents import list_all_silences
from warehouse.queries.operator_actions import ActionResults, append_action, carry_out_actions

LOCK_WAIT_S = 30.0
"""Loading a whole nightly run takes seconds."""


@dataclass(frozen=True)
class OperatorActions:
    """Stores operator actions and carries them out.

    ``account_patterns`` gives a target's own patterns of account numbers, for drafts; ``now`` is the clock.
    ``silences`` and ``production_targets`` are those of the configuration.
    """

    store: Store
    settings: AlertSettings
    account_patterns: Callable[[str], Sequence[str]]
    now: Callable[[], datetime]
    silences: tuple[Silence, ...] = ()
    production_targets: frozenset[str] = frozenset()

    def list_silences(self) -> tuple[Silence, ...]:
        """List all silences, those of people first: also expired ones, newest first."""
        return (*list_all_silences(self.store), *self.silences)


def build_operator_actions(config: Config, store: Store, now: Callable[[], datetime]) -> OperatorActions:
    """Build the `OperatorActions` of a configuration over ``store``."""

    def account_patterns(target: str) -> tuple[str, ...]:
        configured = config.targets.get(target)
        return configured.graders.account_patterns if configured else ()

    return OperatorActions(
        store=store,
        settings=config.alerts,
        account_patterns=account_patterns,
        now=now,
        silences=tuple(silence.build_silence() for silence in config.silences),
        production_targets=frozenset(
            name for name, target in config.targets.items() if target.environment is Environment.PRODUCTION
        ),
    )


def store_action(actions: OperatorActions, action: OperatorAction) -> None:
    """Store an action durably, without waiting for a lock; `apply_actions` carries it out."""
    append_action(actions.store.journal, action)


def apply_actions(actions: OperatorActions, *, wait_s: float = LOCK_WAIT_S) -> ActionResults:
    """Carry out the waiting actions, each once across all processes; return their results and all silences.

    Raises `WarehouseBusy`; then the actions still wait, and nothing is lost.
    """

    def resolve(context: ActionContext) -> ActionChanges:
        return compute_action_changes(
            context, now=actions.now(), settings=actions.settings, account_patterns=actions.account_patterns
        )

    results = carry_out_actions(actions.store, actions.store.journal, resolve, wait_s=wait_s)
    return results._replace(silences=(*results.silences, *actions.silences))


@dataclass(frozen=True)
class Notifier:
    """Sends one target's alerts during one run.

    ``terminal`` prints what no other path accepts; ``now`` is the clock.

    ``actions`` carries out operator actions before any alert is decided. ``owner`` is the part of the monitor that
    opens the incidents. ``production`` is true for a production target. ``shared_server`` is the Prefect server
    that other machines may use too; ``None`` for the local one of this machine.
    """

    target: str
    run_id: str
    settings: AlertSettings
    store: Store
    journal: Journal
    sender: AlertSender
    terminal: AlertSender
    actions: OperatorActions
    now: Callable[[], datetime]
    owner: Capability = Capability.VERIFY
    production: bool = False
    shared_server: SharedServer | None = None
