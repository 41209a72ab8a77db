"""What every sender of alerts can do, and which channel an alert is for."""

from __future__ import annotations

from typing import Protocol

from monitors.alerts.digest import Digest
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import ABOUT_THE_MONITOR
from monitors.records.incidents import Alert, Receipt


class AlertSender(Protocol):
    """Delivers one alert, or raises `NotifyTransient`, `NotifyUnsure` or `NotifyRejected`."""

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Deliver ``alert``.

        ``thread`` and ``channel`` are where to reply: an incident's first message, or this run's first page, which
        later ones of the same run then follow. Without them the alert's own incidents are asked. ``again`` says
        that an earlier try may have arrived (it was killed, or its reply was lost): the sender looks for it first
        where it can, and does so unasked for a message that is some seconds old.
        """
        ...

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Deliver the nightly digest; fails as `send` does."""
        ...

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Show ``alert`` in place of the message ``ts`` of ``channel``, as its receipt has them; may be repeated.

        `NotifyRejected` where nothing can be edited: it is gone, or this sender has no way to.
        """
        ...


def channel_for(alert: Alert, settings: AlertSettings) -> str | None:
    """The configured channel for alerts of this kind."""
    if alert.kind in ABOUT_THE_MONITOR:
        return settings.channel_for_monitor()
    return settings.slack_channel
