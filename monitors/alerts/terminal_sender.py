"""Delivery without credentials: the message is printed, and the receipt says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rich.console import Console

from monitors.alerts.digest import Digest
from monitors.alerts.digest_blocks import digest_plain
from monitors.alerts.settings import AlertSettings
from monitors.alerts.terminal import terminal_panel
from monitors.errors import NotifyRejected
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
        return self._printed(alert.id)

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Print the nightly digest."""
        del again
        self._console.print(digest_plain(digest), highlight=False, markup=False)
        return self._printed(digest.id)

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Nothing: what is printed stays as it is."""
        del alert, channel, ts
        raise NotifyRejected("what a terminal has printed cannot be edited")

    def _printed(self, message_id: str) -> Receipt:
        return Receipt(
            alert_id=message_id,
            status=DeliveryStatus.PRINTED,
            at=self._now(),
            detail="printed: no Slack credentials are set",
        )
