"""Planned outcomes of requests to a local server: normal, error, lost connection, or no response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def fated(
    fate: str, request: web.Request, handler: Handler, *, closing: asyncio.Event, text: str
) -> web.StreamResponse:
    """Give a request its planned outcome ``fate``, and return the response.

    ``ok`` calls ``handler``. A status such as ``503``, or ``429 after 7`` with Retry-After, returns an error with
    the message ``text``. ``lost before`` and ``lost after`` close the connection before or after ``handler`` is
    called. ``hang`` gives no response until ``closing`` is set, and then calls ``handler``.
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
