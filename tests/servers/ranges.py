"""A local server for the files of a folder that supports range requests and can inject faults."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer


class RangeServer(ThreadedServer):
    """A server of the files in ``folder``. If ``token`` is set, requests must have this bearer token.

    ``fault`` applies to all requests: ``plain`` (ignores ranges), ``500``, ``cut`` (closes the connection after
    half of the requested range), ``elsewhere`` (redirects to the URL ``other``), ``drips`` (sends single bytes
    without an end), ``endless`` (sends more bytes after the requested range, without an end), ``digits`` (sends a
    length with too many digits).
    """

    def __init__(self, folder: Path, token: str | None = None) -> None:
        super().__init__()
        self.folder, self.token = folder, token
        self.fault: str | None = None
        self.other: str | None = None
        self.bytes_sent = 0
        self.authorizations: list[str | None] = []

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.authorizations.append(request.headers.get("Authorization"))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        if self.fault == "elsewhere":
            return web.Response(status=302, headers={"Location": f"{self.other}/{request.match_info['path']}"})
        if self.fault == "500":
            return web.Response(status=500)
        content = self._content(request.match_info["path"].rpartition("/")[2])
        if content is None:
            return web.Response(status=404)
        if self.fault == "plain":
            return web.Response(body=content)
        return await self._part(request, content)

    def _content(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None

    async def _part(self, request: web.Request, content: bytes) -> web.StreamResponse:
        wanted = request.http_range
        if (wanted.start or 0) >= len(content):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        part = content[wanted]
        last = (wanted.start or 0) + len(part) - 1
        headers = {"Content-Range": f"bytes {wanted.start or 0}-{last}/{len(content)}"}
        self.bytes_sent += len(part)
        if self.fault == "digits":
            headers["Content-Range"] = f"bytes 0-0/{'9' * 5000}"
        if self.fault in {"drips", "endless"}:
            return await self._never_end(request, part, headers)
        if self.fault == "cut" and len(part) > 1:
            response = web.StreamResponse(status=206, headers={**headers, "Content-Length": str(len(part))})
            await response.prepare(request)
            await response.write(part[: len(part) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        return web.Response(status=206, body=part, headers=headers)

    async def _never_end(self, request: web.Request, content: bytes, headers: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(status=206, headers=headers)
        await response.prepare(request)
        if self.fault == "endless":
            await response.write(content)
        with suppress(ConnectionError):
            while True:
                await asyncio.sleep(0.05)
                await response.write(b"x" if self.fault == "endless" else b"")
        return response
