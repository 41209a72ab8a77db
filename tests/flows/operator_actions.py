"""Build a notifier with a real warehouse and a sender to a local Slack server, for tests of operator actions."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

from rich.console import Console

from flows.alerting.notifier import Notifier, OperatorActions
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot
from monitors.alerts.terminal import TerminalSender
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, at: datetime = NIGHT) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def skip(self, **span: float) -> None:
        self.at += timedelta(**span)


def settings_for(slack: SlackServer, **changes: object) -> AlertSettings:
    values = {"slack_channel": "C0ALERTS", "slack_api_url": slack.api_url, "slack_buttons": True}
    return AlertSettings.model_validate(values | changes)


def build_operator_actions(folder: Path, slack: SlackServer, clock: Clock, *, seed: int = 1) -> OperatorActions:
    store = store_in(folder, seed=seed)
    return OperatorActions(
        store=store, settings=settings_for(slack), account_patterns=lambda _: (r"SRK-\d{6}",), now=clock
    )


def build_notifier(
    people: OperatorActions, clock: Clock, *, run_id: str = "run-1", target: str = "demo"
) -> Notifier:
    store: Store = people.store
    return Notifier(
        target=target,
        run_id=run_id,
        settings=people.settings,
        store=store,
        journal=store.journal,
        sender=SlackBot(people.settings, token=TOKEN, now=clock),
        terminal=TerminalSender(people.settings, console=Console(file=StringIO()), now=clock),
        actions=people,
        now=clock,
    )
