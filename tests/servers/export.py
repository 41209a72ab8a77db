"""A local server that exports items as pages of JSON, with several kinds of pagination and planned faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

Answer = Callable[[web.Request], web.StreamResponse]


class ExportServer(ThreadedServer):
    """An export with ``size`` items on each page, and a path for each kind of pagination, such as ``/cursor``.

    ``faults`` are the responses to the next requests, in order. ``asked`` contains the path and query of each
    request, and ``tokens`` its Authorization header. ``answers`` are the responses for paths below ``/other/``.
    """

    def __init__(self, items: list[Any], *, size: int = 3, token: str | None = None) -> None:
        super().__init__()
        self.items = items
        self.size = size
        self.token = token
        self.faults: list[Answer] = []
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []

    def application(self) -> web.Application:
        """Return the application, with routes for each kind of pagination, a slow response and ``answers``."""
        application = web.Application()
        application.router.add_get("/numbered", self._numbered)
        application.router.add_get("/clamped", self._clamped)
        application.router.add_get("/cursor", self._cursor)
        application.router.add_get("/links", self._links)
        application.router.add_get("/headers", self._headers)
        application.router.add_get("/slow", self._slow)
        application.router.add_get("/other/{name}", self._other)
        application.middlewares.append(self._watched)
        return application

    @property
    def _watched(self) -> Any:
        @web.middleware
        async def watched(request: web.Request, handler: Any) -> web.StreamResponse:
            self.asked.append(request.path_qs)
            self.tokens.append(request.headers.get("Authorization"))
            if self.token is not None and self.tokens[-1] != f"Bearer {self.token}":
                return web.json_response({"error": "expired"}, status=401)
            if self.faults:
                return self.faults.pop(0)(request)
            answer: web.StreamResponse = await handler(request)
            return answer

        return watched

    def _page(self, number: int) -> list[Any]:
        return self.items[number * self.size : (number + 1) * self.size]

    def _is_last(self, number: int) -> bool:
        return (number + 1) * self.size >= len(self.items)

    async def _numbered(self, request: web.Request) -> web.Response:
        return web.json_response({"data": self._page(int(request.query.get("page", "1")) - 1)})

    async def _clamped(self, request: web.Request) -> web.Response:
        last = (len(self.items) - 1) // self.size
        return web.json_response(self._page(min(int(request.query.get("page", "1")) - 1, last)))

    async def _cursor(self, request: web.Request) -> web.Response:
        number = int(request.query.get("cursor", "c0")[1:])
        after = None if self._is_last(number) else f"c{number + 1}"
        return web.json_response({"conversations": self._page(number), "meta": {"next_cursor": after}})

    async def _links(self, request: web.Request) -> web.Response:
        number = int(request.query.get("p", "0"))
        after = None if self._is_last(number) else f"/links?p={number + 1}"
        return web.json_response({"results": self._page(number), "links": {"next": after}})

    async def _headers(self, request: web.Request) -> web.Response:
        number = int(request.query.get("p", "0"))
        links = '<?p=0>; rel="first"' + ("" if self._is_last(number) else f', <?p={number + 1}>; rel="next"')
        return web.json_response(self._page(number), headers={"Link": links})

    async def _slow(self, _request: web.Request) -> web.Response:
        await self.closing.wait()
        return web.json_response([])

    async def _other(self, request: web.Request) -> web.StreamResponse:
        return self.answers[request.match_info["name"]](request)


def status(code: int, **headers: str) -> Answer:
    """Return a handler that responds with the HTTP status ``code``."""
    return lambda _request: web.Response(status=code, headers=headers, text="no")


def body(content: str | bytes, content_type: str = "application/json") -> Answer:
    """Return a handler that responds with the body ``content``."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda _request: web.Response(body=raw, content_type=content_type)


def document(value: Any) -> Answer:
    """Return a handler that responds with ``value`` as JSON."""
    return body(json.dumps(value))


def cut_off(request: web.Request) -> web.StreamResponse:
    """Close the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
