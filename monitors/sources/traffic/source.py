"""A source of live traffic: whatever stores conversations that real users had."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from monitors.platforms.platform import Score
from monitors.records.traffic import Conversation, SourceWarning


class TrafficSource(Protocol):
    """Stored conversations. Reading them never asks the application anything."""

    @property
    def name(self) -> str:
        """For messages: where it lies, without secrets."""
        ...

    def read(self, since: datetime, until: datetime) -> AsyncIterator[Conversation | SourceWarning]:
        """Every conversation that was completed in [``since``, ``until``), in any order, in bounded memory.

        The same one may come twice. A bad item becomes a warning that never quotes it, and the rest goes on.
        `SourceUnavailable` says that the source, or part of it, could not be read: what was yielded before stands,
        but what had been completed by ``until`` has not all been seen, so the watermark must stay. `ConfigError`
        says which setting does not fit.
        """
        ...


@runtime_checkable
class ScoreKeeper(Protocol):
    """A source that takes scores back."""

    async def write_back(self, conversation: Conversation, scores: Sequence[Score]) -> None:
        """Store the scores beside the conversation. Twice is once: a retry changes nothing, a new value replaces.

        ``conversation`` is as it was read, not as it is stored. `SourceUnavailable` when it cannot be done.
        """
        ...
