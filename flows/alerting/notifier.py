"""The context of the alerting functions: the store, the sender, the target, and the operator actions.

An operator action is a person's reaction to an alert, for example "acknowledge" or "silence".
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
"""Maximum wait for the warehouse's lock, in seconds. Loading a nightly run holds the lock for several seconds."""


@dataclass(frozen=True)
class OperatorActions:
    """The context for storing operator actions and for carrying them out.

    ``account_patterns`` returns the patterns of a target's account numbers. These numbers are redacted in drafts.
    ``silences`` and ``production_targets`` come from the configuration.
    """

    store: Store
    settings: AlertSettings
    account_patterns: Callable[[str], Sequence[str]]
    now: Callable[[], datetime]
    silences: tuple[Silence, ...] = ()
    production_targets: frozenset[str] = frozenset()

    def list_silences(self) -> tuple[Silence, ...]:
        """List all silences, including expired ones. Silences set by people come first, newest first."""
        return (*list_all_silences(self.store), *self.silences)


def build_operator_actions(config: Config, store: Store, now: Callable[[], datetime]) -> OperatorActions:
    """Build the `OperatorActions` for a configuration and its store."""

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


def store_operator_action(actions: OperatorActions, action: OperatorAction) -> None:
    """Append an action to the journal without waiting for a lock.

    `apply_waiting_actions` carries out the action.
    """
    append_action(actions.store.journal, action)


def apply_waiting_actions(actions: OperatorActions, *, wait_s: float = LOCK_WAIT_S) -> ActionResults:
    """Carry out each stored operator action only once, even if several processes call this function.

    Return the outcomes of the actions, and all silences. Raises `WarehouseBusy` if another process holds the lock
    for longer than ``wait_s`` seconds. In this case, the next call carries out the actions.
    """

    def resolve(context: ActionContext) -> ActionChanges:
        return compute_action_changes(
            context, now=actions.now(), settings=actions.settings, account_patterns=actions.account_patterns
        )

    results = carry_out_actions(actions.store, actions.store.journal, resolve, wait_s=wait_s)
    return results._replace(silences=(*results.silences, *actions.silences))


@dataclass(frozen=True)
class Notifier:
    """The context for sending the alerts about one target during one run.

    ``terminal`` prints alerts that no other sender accepts. ``owner`` is the part of Lookout that opens the
    incidents. ``production`` is true for a production target. ``shared_server`` is a Prefect server that other
    machines also use, or ``None`` if this machine has its own server.
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
