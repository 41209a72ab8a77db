"""What every sender of alerts can do, which channel an alert is for, and the fallback to another channel.

What the main channel refuses goes to the next one, and the receipt says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from monitors.alerts.digest import Digest
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import ABOUT_THE_MONITOR
from monitors.errors import NotifyRejected
from monitors.records.base import Severity
from monitors.records.incidents import Alert, IncidentKind, Receipt


class AlertSender(Protocol):
    """Delivers one alert, or raises `NotifyTransient`, `NotifyUnsure` or `NotifyRejected`."""

    @property
    def notifies(self) -> bool:
        """Whether what it delivers reaches people. A terminal, or the log of a CI job, is not a notification."""
        ...

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Deliver ``alert``.

        ``thread`` and ``channel`` are where to reply: an incident's first message, or this run's first alert, which
        its later alerts then follow. Without them the alert's own incidents give them. ``again`` says that an
        earlier try may have arrived (it was killed, or its reply never came): the sender searches for it first
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
    """The configured channel for alerts of this kind.

    That a drill failed is for the monitor's owners; one that passed is quiet.
    """
    is_failed_drill = alert.kind is IncidentKind.DRILL and alert.severity is not Severity.ANNOYING
    if alert.kind in ABOUT_THE_MONITOR or is_failed_drill:
        return settings.channel_for_monitor()
    return settings.slack_channel


REFUSED: Final = "refused by "
"""How the detail of a receipt begins when the message had to go another way."""


class DeliveryPath(NamedTuple):
    """One channel: its name as people know it, and its sender."""

    name: str
    sender: AlertSender


class FallbackSender:
    """Tries ``paths`` in order: only a refusal for good (archived, revoked, not in channel) leads to the next one.

    Trouble that passes does not: the message is stored and tried again, so that an hour without Slack does not
    scatter messages. A thread belongs to the first path only; elsewhere a message stands by itself.
    """

    def __init__(self, paths: Sequence[DeliveryPath]) -> None:
        if not paths:
            raise ValueError("at least one path is needed")
        self._paths = tuple(paths)

    @property
    def notifies(self) -> bool:
        """Whether any path reaches people."""
        return any(path.sender.notifies for path in self._paths)

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """See `AlertSender.send`. `NotifyRejected` when every path refuses, with each one's reason."""
        refusals: list[str] = []
        for number, path in enumerate(self._paths):
            place = (thread, channel) if number == 0 else (None, None)
            message = alert if number == 0 else alert.outside_threads()
            try:
                receipt = await path.sender.send(message, thread=place[0], channel=place[1], again=again)
            except NotifyRejected as error:
                refusals.append(f"{path.name}: {error}")
            else:
                return _unsent(receipt, path, refusals)
        raise NotifyRejected("; ".join(refusals))

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """See `AlertSender.send_digest`; as `send`."""
        refusals: list[str] = []
        for path in self._paths:
            try:
                receipt = await path.sender.send_digest(digest, again=again)
            except NotifyRejected as error:
                refusals.append(f"{path.name}: {error}")
            else:
                return _unsent(receipt, path, refusals)
        raise NotifyRejected("; ".join(refusals))

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """See `AlertSender.update`: what was posted by the first path is edited there."""
        await self._paths[0].sender.update(alert, channel=channel, ts=ts)


def _unsent(receipt: Receipt, path: DeliveryPath, refusals: Sequence[str]) -> Receipt:
    if not refusals:
        return receipt
    detail = f"{REFUSED}{'; '.join(refusals)}; sent by {path.name}"
    return receipt.explain(detail)
