"""A local server for static files, with or without support for range requests."""

from __future__ import annotations

import re

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer


class FileServer(ThreadedServer):
    """A server of ``files``, which are keyed by path.

    If ``ranges`` is false, the server ignores range requests and sends no length. If ``token`` is set, requests
    without this bearer token get HTTP 401. ``statuses`` maps paths to error statuses, and ``moved`` to redirect
    targets.
    """

    def __init__(self, files: dict[str, bytes], *, ranges: bool = True, token: str | None = None) -> None:
        super().__init__()
        self.files = files
        self.ranges = ranges
        self.token = token
        self.statuses: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.tokens: list[str | None] = []
        self.asked: list[str] = []

    def application(self) -> web.Application:
        """Return the application, which serves ``files`` and records all requests."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._serve_file)
        return application

    async def _serve_file(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.asked.append(f"{request.method} {path}")
        self.tokens.append(request.headers.get("Authorization"))
        if path in self.moved:
            raise web.HTTPFound(self.moved[path])
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        if path in self.statuses:
            return web.Response(status=self.statuses[path], text="no")
        if path not in self.files:
            return web.Response(status=404)
        return await self._whole(request, self.files[path]) if not self.ranges else self._part(request, path)

    def _part(self, request: web.Request, path: str) -> web.Response:
        content = self.files[path]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
        headers = {"Accept-Ranges": "bytes"}
        if wanted is None:
            return web.Response(body=content, headers=headers)
        first, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        if first >= len(content):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return web.Response(status=206, body=content[first : last + 1], headers=headers)

    async def _whole(self, request: web.Request, content: bytes) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        if request.method != "HEAD":
            await response.write(content)
        await response.write_eof()
        return response
