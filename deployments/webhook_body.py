"""A request's body, bounded in size and time before anybody looks at it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

from deployments.triggers.delivery import Headers, Refusal, Refused

MOST_BODY_BYTES: Final = 2 * 2**20
"""A push of 2,048 commits, the most that GitHub lists, has about 1 kB for each."""
BODY_DEADLINE_S: Final = 5.0
"""Half of what GitHub gives a receiver for everything; two megabytes take less on any line a server has."""


def headers_of(request: Request) -> Headers:
    """All values of every header, by lower-case name."""
    return {name: tuple(request.headers.getlist(name)) for name in request.headers}


async def read_body(request: Request) -> bytes:
    """The whole body. Raises `Refused` when it is too large, too slow, or cut off; what came is let go."""
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or int(length[:20]) > MOST_BODY_BYTES:
        raise Refused(Refusal.TOO_LARGE, "too large")
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            return await _read(request)
    except TimeoutError:
        raise Refused(Refusal.TOO_SLOW, "too slow") from None
    except ClientDisconnect:
        raise Refused(Refusal.CUT_OFF, "the body was cut off") from None


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise Refused(Refusal.TOO_LARGE, "too large")
    return bytes(body)
