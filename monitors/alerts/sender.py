"""The interface of alert senders, the choice of a channel, and the fallback to another channel."""

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
        """Return whether messages reach people. Printed messages do not reach people."""
        ...

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Deliver ``alert``.

        With ``thread`` and ``channel``, the message is a reply in that thread. Without them, the alert's incidents
        determine the channel. If ``again`` is true, the message of an earlier attempt may have arrived. A sender
        that can search for the earlier message does so first.
        """
        ...

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Deliver the nightly digest. Raises the errors of `send`."""
        ...

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Replace an earlier message with ``alert``. ``channel`` and ``ts`` are from the receipt of that message.

        A repeated call has the same result. Raises `NotifyRejected` if the message no longer exists, or if this
        sender cannot edit messages.
        """
        ...


def choose_channel(alert: Alert, settings: AlertSettings) -> str | None:
    """Return the configured channel for ``alert``.

    An alert about a failed drill goes to the monitor's owners, like an alert about a fault of the monitor.
    """
    is_failed_drill = alert.kind is IncidentKind.DRILL and alert.severity is not Severity.MINOR
    if alert.kind in ABOUT_THE_MONITOR or is_failed_drill:
        return settings.choose_monitor_channel()
    return settings.slack_channel


REFUSED_PREFIX: Final = "refused by "
"""The beginning of a receipt's ``detail`` if another channel refused the message before."""
ARRIVED_BEFORE: Final = "found: an earlier try had arrived"
"""The ``detail`` of a receipt if the message was already in the channel and was not posted again."""


class DeliveryPath(NamedTuple):
    """A way to deliver messages: a readable name and a sender."""

    name: str
    sender: AlertSender


class FallbackSender:
    """Tries several channels in order. The next channel is used only if a channel permanently refuses the message.

    After a temporary error, the message is stored and retried in the same channel. Threads exist only in the
    first channel.
    """

    def __init__(self, paths: Sequence[DeliveryPath]) -> None:
        if not paths:
            raise ValueError("internal error: a sender needs at least one channel")
        self._paths = tuple(paths)

    @property
    def notifies(self) -> bool:
        """Return whether messages reach people on at least one of the delivery paths."""
        return any(path.sender.notifies for path in self._paths)

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Deliver ``alert`` as `AlertSender.send` does.

        Raises `NotifyRejected` with all reasons if every path refuses it.
        """
        refusals: list[str] = []
        for number, path in enumerate(self._paths):
            place = (thread, channel) if number == 0 else (None, None)
            message = alert if number == 0 else alert.remove_threads()
            try:
                receipt = await path.sender.send(message, thread=place[0], channel=place[1], again=again)
            except NotifyRejected as error:
                refusals.append(f"{path.name}: {error}")
            else:
                return _note_earlier_refusals(receipt, path, refusals)
        raise NotifyRejected("; ".join(refusals))

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Deliver the digest as `AlertSender.send_digest` does.

        If a channel permanently refuses the digest, the next channel is used.
        """
        refusals: list[str] = []
        for path in self._paths:
            try:
                receipt = await path.sender.send_digest(digest, again=again)
            except NotifyRejected as error:
                refusals.append(f"{path.name}: {error}")
            else:
                return _note_earlier_refusals(receipt, path, refusals)
        raise NotifyRejected("; ".join(refusals))

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Replace a message as `AlertSender.update` does.

        Only messages that were sent by the first path can be edited.
        """
        await self._paths[0].sender.update(alert, channel=channel, ts=ts)


def _note_earlier_refusals(receipt: Receipt, sent_by: DeliveryPath, refusals: Sequence[str]) -> Receipt:
    if not refusals:
        return receipt
    detail = f"{REFUSED_PREFIX}{'; '.join(refusals)}; sent by {sent_by.name}"
    return receipt.with_detail(detail)
