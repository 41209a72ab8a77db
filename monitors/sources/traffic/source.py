"""Define what a source of conversations is: any store of what real users asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable

from monitors.platforms.platform import Score
from monitors.records.traffic import Conversation, SourceWarning

RECENT: Final = timedelta(hours=1)
"""The conversations that `TrafficSource.check_readable` requests."""


class TrafficSource(Protocol):
    """Stored conversations of real users. Reading them sends no request to the app."""

    @property
    def name(self) -> str:
        """The place of the source, for messages, without secrets."""
        ...

    def read_conversations(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """Yield all conversations that were completed from ``since`` to ``until``, in any order.

        Memory is limited, and a conversation may come twice. An item that cannot be read becomes a warning that
        does not quote it. Raises `SourceUnavailable` if the source, or a part of it, cannot be read. Then
        conversations are missing, so the next run must read the same period again. Raises `ConfigError` for a
        wrong setting.
        """
        ...

    async def check_readable(self, now: datetime) -> None:
        """Read a small part of the source: the newest file of each pattern, or one page of the last hour.

        Raises as `read_conversations` does. It starts no browser and does not block the event loop.
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
