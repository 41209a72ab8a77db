"""Stored conversations for tests, and reading a source to its end."""

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
    """An item: conversation ``number``, completed so many seconds after noon."""
    at = (NOON + timedelta(seconds=number)).isoformat()
    return {"id": f"c-{number}", "completed_at": at, "question": f"q{number}", "answer": f"a{number}", **changes}


def as_lines(*items: Any) -> bytes:
    """Items as JSON lines; what is bytes already stands as it is."""
    return b"".join((item if isinstance(item, bytes) else json.dumps(item).encode()) + b"\n" for item in items)


class Read:
    """What came of reading a source: conversations by id in order, notices, and the error that ended it."""

    def __init__(self) -> None:
        self.conversations: list[Conversation] = []
        self.notices: list[SourceWarning] = []
        self.error: MonitorError | None = None

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.conversations]

    @property
    def error_text(self) -> str:
        """The error's whole message, without ports."""
        return replace_volatile(str(self.error))

    @property
    def problems(self) -> list[tuple[str, str]]:
        return [(notice.place, notice.detail) for notice in self.notices]


async def read_all(source: TrafficSource, since: datetime = NOON - DAY, until: datetime = NOON + DAY) -> Read:
    """Everything that a source gives, and the error of ours that it ends with."""
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
