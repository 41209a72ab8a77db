"""A chat API that streams its answer as named events.

The events are ``piece`` for each word of the text, then ``note`` without text, then ``closed``.
"""

from __future__ import annotations

import json

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

PATH = "/v2/dialog/turn"


class EventChat(ThreadedServer):
    """A server that answers each ``POST`` at `PATH` with ``text``, and each ``GET`` with an empty HTTP 200.

    If ``gone`` is true, a ``POST`` gets HTTP 404. If ``strict`` is true, the server resets the connection unless
    the request body has the field ``utterance``, a name that a client cannot guess.
    """

    def __init__(self, text: str, *, strict: bool = False) -> None:
        super().__init__()
        self.text = text
        self.strict = strict
        self.gone = False
        self.asked = 0

    def application(self) -> web.Application:
        """Return the routes, which all have the path `PATH`."""
        made = web.Application()
        made.router.add_post(PATH, self._turn)
        made.router.add_get(PATH, self._nothing)
        return made

    async def _nothing(self, _request: web.Request) -> web.Response:
        return web.Response()

    async def _turn(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.gone:
            raise web.HTTPNotFound
        body = json.loads(await request.read())
        if self.strict and "utterance" not in body:
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for word in self.text.split(" "):
            await self._send(response, "piece", {"part": {"text": f"{word} "}})
        await self._send(response, "note", {"part": {}, "step": 3})
        await self._send(response, "closed", {"reason": "complete"})
        return response

    async def _send(self, response: web.StreamResponse, name: str, data: object) -> None:
        await response.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
