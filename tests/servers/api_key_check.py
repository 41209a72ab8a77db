"""An application whose APIs (JSON, event stream, jobs, Gradio) and export require a key in a header."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer


class Keyed(ThreadedServer):
    """A server that responds with ``status`` unless a request has the header ``header`` with the value ``value``.

    ``seen`` contains the path and headers of each request. If ``repeats`` is true, answers contain the key; a
    stream splits the key into two parts. ``POST /away`` redirects to the URL ``leads_to``.
    """

    def __init__(self, header: str, value: str, *, status: int = 401, repeats: bool = False) -> None:
        super().__init__()
        self.header, self.value = header, value
        self.status, self.repeats = status, repeats
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.leads_to = ""

    def application(self) -> web.Application:
        made = web.Application(middlewares=[self._door])
        made.router.add_post("/json", self._json)
        made.router.add_post("/sse", self._sse)
        made.router.add_post("/jobs", self._start)
        made.router.add_get("/jobs/1", self._report)
        made.router.add_post("/gradio_api/call/chat", self._gradio)
        made.router.add_get("/gradio_api/call/chat/1", self._gradio_said)
        made.router.add_get("/export", self._export)
        made.router.add_post("/away", self._away)
        return made

    @property
    def answer(self) -> str:
        """Return the answer to every question."""
        return f"The waiting period is 24 months. {self.value if self.repeats else ''}".strip()

    @property
    def _door(self) -> Any:
        @web.middleware
        async def door(request: web.Request, handler: Any) -> web.StreamResponse:
            self.seen.append((request.path, dict(request.headers)))
            if request.headers.get(self.header) != self.value:
                return web.json_response({"error": "no"}, status=self.status)
            return await handler(request)

        return door

    async def _json(self, _request: web.Request) -> web.Response:
        return web.json_response({"answer": self.answer, "model": self.value if self.repeats else "m"})

    async def _sse(self, request: web.Request) -> web.StreamResponse:
        half = len(self.answer) - len(self.value) // 2
        pieces = [json.dumps({"answer": piece}) for piece in (self.answer[:half], self.answer[half:])]
        return await self._events(request, *(f"data: {piece}" for piece in pieces), "data: [DONE]")

    async def _start(self, _request: web.Request) -> web.Response:
        return web.json_response({"id": "1", "status": "queued"}, status=202)

    async def _report(self, _request: web.Request) -> web.Response:
        steps = [{"name": "call", "args": self.answer}]
        return web.json_response({"id": "1", "status": "done", "report": self.answer, "steps": steps})

    async def _gradio(self, _request: web.Request) -> web.Response:
        return web.json_response({"event_id": "1"})

    async def _gradio_said(self, request: web.Request) -> web.StreamResponse:
        return await self._events(request, f"event: complete\ndata: {json.dumps([self.answer])}")

    async def _export(self, _request: web.Request) -> web.Response:
        return web.json_response({"items": []})

    async def _away(self, _request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": self.leads_to})

    async def _events(self, request: web.Request, *events: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            await response.write(f"{event}\n\n".encode())
        return response
