"""Server-sent events, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator

from monitors.records.base import Record


class Event(Record):
    """One event. Without a name of its own it is a ``message``."""

    name: str = "message"
    data: str


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    """Events as they arrive. One that the end of the stream cuts off is dropped, as the standard says."""
    name, data = "", list[str]()
    async for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(name=name or "message", data="\n".join(data))
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
