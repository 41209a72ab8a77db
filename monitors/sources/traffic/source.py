"""Define the interface of a conversation source: any store of the questions that real users asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable

from monitors.platforms.platform import Score
from monitors.records.traffic import Conversation, SourceWarning

RECENT: Final = timedelta(hours=1)
"""The length of the most recent period that `TrafficSource.check_readable` requests."""


class TrafficSource(Protocol):
    """Stored conversations of real users. Reading these conversations sends no request to the app."""

    @property
    def name(self) -> str:
        """Return the location of the source, for messages, without secrets."""
        ...

    def read_conversations(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """Yield all conversations that were completed from ``since`` to ``until``, in any order.

        The source uses limited memory, and may yield a conversation twice. For an item that cannot be read, the
        source yields a warning without any text from the item. Raises `SourceUnavailable` if the source, or a part
        of the source, cannot be read. In this case, conversations are missing, and the next run must read the same
        period again. Raises `ConfigError` for an invalid setting.
        """
        ...

    async def check_readable(self, now: datetime) -> None:
        """Check that the source can be read: read the start of the newest file of each pattern, or one page.

        Raises the same errors as `read_conversations`. Does not start a browser or block the event loop.
        """
        ...


@runtime_checkable
class ScoreKeeper(Protocol):
    """A source in which Lookout can store scores for its conversations."""

    async def write_back(self, conversation: Conversation, scores: Sequence[Score]) -> None:
        """Store the scores of a conversation. A new value replaces the old value. Raises `SourceUnavailable`.

        ``conversation`` must be the conversation that the source yielded, with its original ``origin_id``.
        """
        ...
