"""A testbed for alerts, with a real warehouse, a local Slack server and a clock that the test controls."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console

from flows.alerting.notifier import Notifier, OperatorActions
from monitors.alerts.sender import AlertSender, DeliveryPath, FallbackSender
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.client import SlackBot, SlackWebhook
from monitors.alerts.terminal import TerminalSender
from monitors.records.incidents import Alert, Capability
from tests.flows.messages import load_alerts
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store


class AlertingTestbed:
    """A warehouse, a Slack server and a clock for any number of consecutive runs.

    The object itself is the clock.
    """

    def __init__(self, folder: Path, slack: SlackServer, **settings: object) -> None:
        self.now = NIGHT
        self.slack = slack
        self.printed = io.StringIO()
        values = {
            "slack_channel": "C0ALERTS",
            "slack_api_url": slack.api_url,
            "send_retries": 0,
            "send_timeout_s": 10.0,
        }
        self.settings = AlertSettings.model_validate(values | settings)
        self.store: Store = store_in(folder, clock=self)  # type: ignore[arg-type] - any clock will do

    def __call__(self) -> datetime:
        """Return the current time, which advances by one millisecond at every call."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def skip(self, **span: float) -> None:
        """Move the clock ahead by ``timedelta(**span)``."""
        self.now += timedelta(**span)

    def bot(self, **changes: object) -> SlackBot:
        """Build the sender of a Slack bot with the settings of this testbed."""
        return SlackBot(self.settings.model_copy(update=changes), token=TOKEN, now=self)

    def webhook(self) -> SlackWebhook:
        """Build the sender of a Slack incoming webhook."""
        return SlackWebhook(self.settings, url=self.slack.webhook_url, now=self)

    @property
    def terminal(self) -> TerminalSender:
        """Build the terminal channel, which prints into `printed`."""
        return TerminalSender(self.settings, console=Console(file=self.printed, width=140), now=self)

    def notifier(
        self,
        run_id: str = "run-1",
        paths: Sequence[AlertSender] | None = None,
        owner: Capability = Capability.VERIFY,
    ) -> Notifier:
        """Build the notifier of the run ``run_id``.

        The notifier tries the senders ``paths`` in this order. By default, it uses only the bot.
        """
        ways = [
            DeliveryPath(f"way {number}", sender) for number, sender in enumerate(paths or [self.bot()], start=1)
        ]
        return Notifier(
            target="demo",
            run_id=run_id,
            settings=self.settings,
            store=self.store,
            journal=self.store.journal,
            sender=FallbackSender(ways),
            terminal=self.terminal,
            actions=OperatorActions(
                store=self.store, settings=self.settings, account_patterns=lambda _: (), now=self
            ),
            now=self,
            owner=owner,
        )

    def receipts(self) -> list[tuple[str, str]]:
        """Return the status and the detail of every delivery attempt, oldest first."""
        self.store.load_pending(5)
        rows = self.store.query("select status, detail from receipts order by tried_at, alert_id").rows
        return [(str(status), str(detail)) for status, detail in rows]

    def alerts(self) -> list[Alert]:
        """Return the stored alerts, oldest first."""
        return load_alerts(self.store)
