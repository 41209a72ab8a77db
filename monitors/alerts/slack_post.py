"""What is posted where: an alert or a digest made ready for Slack, before anything is sent."""

from __future__ import annotations

from typing import Final

from monitors.alerts.compose import channel_of, thread_of
from monitors.alerts.digest import Digest
from monitors.alerts.digest_blocks import digest_text
from monitors.alerts.sender import channel_for
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack_blocks import SlackText, slack_text
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Alert, NotifyReason

BROADCAST: Final = frozenset({NotifyReason.WORSE, NotifyReason.REMINDER})
"""Said in the thread and shown in the channel too: nobody watches an old thread."""


class Post(Record):
    """One message, ready. ``id`` is the visible one; ``channel`` is empty for a webhook, which has its own."""

    id: Identifier
    said: SlackText
    made_at: UtcTime
    channel: str = ""
    thread: str | None = None
    broadcast: bool = False

    def outside_its_thread(self) -> Post:
        """The same for the channel itself: for when its thread is gone."""
        return self.model_copy(update={"thread": None, "broadcast": False})

    def without_layout(self) -> Post:
        """The same as plain text: for when Slack refuses the layout."""
        return self.model_copy(update={"said": SlackText(text=self.said.text, blocks=())})


def alert_post(alert: Alert, settings: AlertSettings, *, thread: str | None, channel: str | None) -> Post:
    """Make ``alert`` ready; ``thread`` and ``channel`` as `AlertSender.send` has them."""
    thread = thread or thread_of(alert)
    home = (channel or channel_of(alert)) if thread else None
    return Post(
        id=alert.id,
        said=slack_text(alert, settings),
        made_at=alert.created_at,
        channel=home or channel_for(alert, settings) or "",
        thread=thread,
        broadcast=thread is not None and alert.reason in BROADCAST,
    )


def digest_post(digest: Digest, settings: AlertSettings) -> Post:
    """Make ``digest`` ready: a message of its own in the alerts' channel."""
    return Post(
        id=digest.id, said=digest_text(digest), made_at=digest.made_at, channel=settings.slack_channel or ""
    )
