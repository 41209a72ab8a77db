"""Delivery without credentials: the message is printed, and the receipt says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rich.console import Console

from monitors.alerts.settings import AlertSettings
from monitors.alerts.terminal import terminal_panel
from monitors.records.incidents import Alert, DeliveryStatus, Receipt


class TerminalSender:
    """Prints alerts on ``console`` as a person would see them in Slack."""

    def __init__(self, settings: AlertSettings, *, console: Console, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._console = console
        self._now = now

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Print ``alert``. A terminal has neither threads nor channels; the arguments are for other senders."""
        del thread, channel, again
        self._console.print(terminal_panel(alert, self._settings))
        return Receipt(
            alert_id=alert.id,
            status=DeliveryStatus.PRINTED,
            at=self._now(),
            detail="printed: no Slack credentials are set",
        )
