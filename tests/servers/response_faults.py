"""Planned outcomes of a request to a local server.

A request is executed, refused, lost before or after its effect, or never answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def fated(
    fate: str, request: web.Request, handler: Handler, *, closing: asyncio.Event, text: str
) -> web.StreamResponse:
    """Return the response to a request with a planned fate, or close its connection.

    A fate is ``ok``, a status such as ``503``, ``429 after 7`` (Retry-After), ``lost before`` or ``lost after`` its
    effect, or ``hang`` until the server is ``closing``. A response with an error status has the body ``text``.
    """
    if fate == "hang":
        await closing.wait()
    if fate == "lost before":
        return _lost(request)
    if fate[0].isdigit():
        status, _after, seconds = fate.partition(" after ")
        headers = {"Retry-After": seconds} if seconds else None
        return web.json_response({"message": text, "detail": text}, status=int(status), headers=headers)
    response = await handler(request)
    return _lost(request) if fate == "lost after" else response


def _lost(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
