"""The protocol of a source of live traffic: any store of real users' conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from monitors.platforms.platform import Score
from monitors.records.traffic import Conversation, SourceWarning


class TrafficSource(Protocol):
    """Stored conversations. Reading them sends no request to the application."""

    @property
    def name(self) -> str:
        """The location for messages, without secrets."""
        ...

    def read_conversations(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """Yield every conversation completed in [``since``, ``until``), in any order, in bounded memory.

        The same conversation may come twice. A bad item becomes a warning that does not quote it, and reading
        continues.
        `SourceUnavailable` means that the source, or a part of it, could not be read: the yielded conversations
        are valid but incomplete, so the watermark must not move. `ConfigError` names an unsuitable setting.
        """
        ...


@runtime_checkable
class ScoreKeeper(Protocol):
    """A source to which scores can be written back."""

    async def write_back(self, conversation: Conversation, scores: Sequence[Score]) -> None:
        """Store the scores beside the conversation (idempotent; a new value replaces the old one).

        ``conversation`` is in its original form, not in its stored form. Raises `SourceUnavailable` if writing
        fails.
        """
        ...
