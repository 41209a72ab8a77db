"""Define what a source of conversations is: any store of what real users asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable

from monitors.platforms.platform import Score
from monitors.records.traffic import Conversation, SourceWarning

RECENT: Final = timedelta(hours=1)
"""`TrafficSource.check_readable` requests only the conversations of this last period."""


class TrafficSource(Protocol):
    """Stored conversations of real users. Reading them sends no request to the app."""

    @property
    def name(self) -> str:
        """The place of the source, for messages, without secrets."""
        ...

    def read_conversations(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """Yield all conversations that were completed from ``since`` to ``until``, in any order.

        The source uses limited memory, and may yield a conversation twice. For an item that cannot be read, it
        yields a warning without any text of the item. Raises `SourceUnavailable` if the source, or a part of it,
        cannot be read. Conversations are then missing, and the next run must read the same period again. Raises
        `ConfigError` for a wrong setting.
        """
        ...

    async def check_readable(self, now: datetime) -> None:
        """Check that the source can be read: read the start of the newest file of each pattern, or one page.

        Raises the errors of `read_conversations`. It starts no browser and does not block the event loop.
        """
        ...


@runtime_checkable
class ScoreKeeper(Protocol):
    """A source that stores scores of its conversations."""

    async def write_back(self, conversation: Conversation, scores: Sequence[Score]) -> None:
        """Store the scores of a conversation. A new value replaces the old one. Raises `SourceUnavailable`.

        ``conversation`` has its original form, not the form in which it is stored.
        """
        ...
