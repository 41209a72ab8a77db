"""Server-sent events, line by line."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator

from monitors.errors import PageNotUnderstood
from monitors.records.base import Record

LINE_END = re.compile(r"\r\n|\n|\r(?!$)")
"""What ends a line, by the standard; a carriage return at the end of a piece may be half of one."""


MOST_CHARACTERS = 20_000_000
"""In one line; the longest report that anybody would read is a hundredth of it."""


class Event(Record):
    """One event. Without a name of its own it is a ``message``."""

    name: str = "message"
    data: str


async def lines_in(pieces: AsyncIterator[str], most: int = MOST_CHARACTERS) -> AsyncGenerator[str]:
    """Whole lines. Only CR and LF end one: an answer may hold U+2028, at which Python and httpx would split.

    `PageNotUnderstood` when one is longer than ``most`` characters.
    """
    begun: list[str] = []
    length = 0
    async for piece in pieces:
        whole = LINE_END.split(begun.pop() + piece if begun and begun[-1].endswith("\r") else piece)
        for end in whole[:-1]:
            yield "".join((*begun, end))
            begun, length = [], 0
        begun.append(whole[-1])
        length += len(whole[-1])
        if length > most:
            raise PageNotUnderstood(f"a line of the stream is longer than {most} characters")
    if any(begun):
        yield "".join(begun).removesuffix("\r")


async def events_in(lines: AsyncIterator[str]) -> AsyncGenerator[Event]:
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
