"""Stored conversations for the tests of traffic sources, and a function that reads a source to its end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from monitors.errors import MonitorError
from monitors.records.traffic import Conversation, SourceWarning
from monitors.sources.traffic.source import TrafficSource
from tests.stable_text import replace_volatile

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def stored(number: int, **changes: Any) -> dict[str, Any]:
    """Return an item of a traffic source: conversation ``number``, completed ``number`` seconds after noon."""
    at = (NOON + timedelta(seconds=number)).isoformat()
    return {"id": f"c-{number}", "completed_at": at, "question": f"q{number}", "answer": f"a{number}", **changes}


def as_lines(*items: Any) -> bytes:
    """Return the items as JSON lines. An item that is already ``bytes`` is not changed."""
    return b"".join((item if isinstance(item, bytes) else json.dumps(item).encode()) + b"\n" for item in items)


class Read:
    """The result of reading a traffic source: conversations, notices, and an error if one ended the reading."""

    def __init__(self) -> None:
        self.conversations: list[Conversation] = []
        self.notices: list[SourceWarning] = []
        self.error: MonitorError | None = None

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.conversations]

    @property
    def error_text(self) -> str:
        """Return the whole message of the error. Port numbers are removed."""
        return replace_volatile(str(self.error))

    @property
    def problems(self) -> list[tuple[str, str]]:
        return [(notice.place, notice.detail) for notice in self.notices]


async def read_all(source: TrafficSource, since: datetime = NOON - DAY, until: datetime = NOON + DAY) -> Read:
    """Read everything from a traffic source. A `MonitorError` that ends the reading is stored in the result."""
    read = Read()
    try:
        async for one in source.read_conversations(since, until):
            if isinstance(one, SourceWarning):
                read.notices.append(one)
            else:
                read.conversations.append(one)
    except MonitorError as error:
        read.error = error
    return read
