"""Test that remote content is fetched with limits of time, size, redirects and addresses, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from contextlib import suppress

import httpx
import pytest
from aiohttp import web

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied
from monitors.http_client import (
    MAX_REDIRECTS,
    BodyTooLarge,
    DeadlinePassed,
    GuardedClient,
    RedirectRefused,
    describe_http_error,
)
from monitors.request_headers import RequestHeaders
from tests.servers.threaded_server import ThreadedServer

KEY = RequestHeaders(key="headers", values={"X-Key": "k", "Authorization": "Bearer k"})
TEXT = b"the same text over and over. " * 100_000


class Hostile(ThreadedServer):
    """A server that misbehaves on some paths. On ``/`` it returns the ``Authorization`` header of the request.

    Paths with faults: ``/to?url=…``, ``/hops/3``, ``/drips``, ``/endless``, ``/packed/gzip``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str | None] = []

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/to", self._redirect)
        app.router.add_get("/hops/{left}", self._hop)
        app.router.add_get("/drips", self._drip)
        app.router.add_get("/endless", self._stream_without_end)
        app.router.add_get("/packed/{encoding}", self._pack)
        app.router.add_get("/", self._note_key)
        return app

    async def _redirect(self, request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": request.query["url"]})

    async def _hop(self, request: web.Request) -> web.Response:
        left = int(request.match_info["left"])
        return web.Response(status=307, headers={"Location": f"/hops/{left - 1}"}) if left else web.Response()

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        return await self._write_for_ever(request, b"x", 0.05)

    async def _stream_without_end(self, request: web.Request) -> web.StreamResponse:
        return await self._write_for_ever(request, b"x" * 65_536, 0)

    async def _write_for_ever(self, request: web.Request, piece: bytes, pause_s: float) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(piece)
                await asyncio.sleep(pause_s)
        return response

    async def _pack(self, request: web.Request) -> web.Response:
        encoding = request.match_info["encoding"]
        raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        packed = {
            "gzip": gzip.compress(TEXT),
            "deflate": zlib.compress(TEXT),
            "raw-deflate": raw.compress(TEXT) + raw.flush(),
            "br": b"never asked for",
            "broken": b"never packed",
        }[encoding]
        name = {"raw-deflate": "deflate", "broken": "gzip"}.get(encoding, encoding)
        return web.Response(body=packed, headers={"Content-Encoding": name})

    async def _note_key(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("X-Key"))
        return web.Response(text=str(request.headers.get("Authorization")))


@pytest.fixture
def server():
    with Hostile() as running:
        yield running


def open_client(server: Hostile, *allowed: str, deadline_s: float = 20, max_bytes: int = 10**7) -> GuardedClient:
    guard = AddressGuard([server.url, *allowed])
    return GuardedClient(guard, deadline_s=deadline_s, max_bytes=max_bytes, headers=KEY, addresses=[server.url])


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw-deflate"])
async def test_a_packed_body_is_unpacked_and_bounded_as_it_grows(server, encoding):
    async with open_client(server) as client:
        assert (await client.get(f"{server.url}/packed/{encoding}")).content == TEXT
    async with open_client(server, max_bytes=10**6) as client:
        with pytest.raises(BodyTooLarge, match="more than 1 MB"):
            await client.get(f"{server.url}/packed/{encoding}")


@pytest.mark.parametrize("encoding", ["br", "broken"])
async def test_an_encoding_that_cannot_be_bounded_is_refused(server, encoding):
    async with open_client(server) as client:
        with pytest.raises(httpx.DecodingError):
            await client.get(f"{server.url}/packed/{encoding}")


async def test_a_body_without_an_end_has_a_size(server):
    async with open_client(server) as client:
        with pytest.raises(BodyTooLarge):
            await client.get(f"{server.url}/endless")


async def test_a_body_that_drips_has_a_deadline_as_a_whole(server):
    async with open_client(server, deadline_s=0.4) as client:
        with pytest.raises(DeadlinePassed):
            await client.get(f"{server.url}/drips")
        async with client.stream("GET", f"{server.url}/drips") as response:
            with pytest.raises(DeadlinePassed):
                await response.aread()


async def test_redirects_are_bounded(server):
    async with open_client(server) as client:
        assert (await client.get(f"{server.url}/hops/{MAX_REDIRECTS}")).status_code == 200
        with pytest.raises(httpx.TooManyRedirects) as refused:
            await client.get(f"{server.url}/hops/{MAX_REDIRECTS + 1}")
    assert describe_http_error(refused.value) == "the server redirected more than 5 times"


@pytest.mark.parametrize(
    "to", ["data:text/html,x", "file:///etc/passwd", "http://[::1", "http:///x", "gopher://h/x"]
)
async def test_a_redirect_to_no_web_page_is_refused_as_the_servers_fault(server, to):
    async with open_client(server) as client:
        with pytest.raises(RedirectRefused):
            await client.get(f"{server.url}/to", params={"url": to})


async def test_a_redirect_inside_is_refused_before_anything_is_sent_there(server):
    with Hostile() as inside:
        async with open_client(server) as client:
            with pytest.raises(AccessDenied):
                await client.get(f"{server.url}/to", params={"url": inside.url})
        assert inside.keys == []


async def test_credentials_stay_with_the_configured_origin(server):
    with Hostile() as elsewhere:
        async with open_client(server, elsewhere.url) as client:
            assert (await client.get(server.url)).text == "Bearer k"
            assert (await client.get(f"{server.url}/to", params={"url": elsewhere.url})).text == "None"
        assert (server.keys, elsewhere.keys) == (["k"], [None])


async def test_the_address_that_was_checked_is_the_one_connected_to(server):
    """The client connects to the address that it checked, even if the name resolves to another address later."""
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) < 4 else ["127.0.0.2"]

    url = server.url.replace("127.0.0.1", "bot.internal")
    guard = AddressGuard([url], resolve=resolve)
    async with GuardedClient(guard, deadline_s=5, max_bytes=1000) as client:
        assert (await client.get(url)).status_code == 200
    assert asked == ["bot.internal"] * 2


async def test_a_name_that_turns_inside_between_check_and_connection_is_refused(server):
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])

    async def resolve(_host: str) -> list[str]:
        return next(answers)

    url = server.url.replace("127.0.0.1", "bot.example.com")
    async with GuardedClient(AddressGuard([url], resolve=resolve), deadline_s=5, max_bytes=1000) as client:
        with pytest.raises(AccessDenied):
            await client.get(url)
    assert server.keys == []


async def test_a_configured_proxy_resolves_for_itself(server, monkeypatch):
    """A configured proxy gets the host name and resolves it. Lookout does not resolve the name itself."""
    monkeypatch.setenv("http_proxy", server.url)

    async def resolve(_host: str) -> list[str]:
        return []

    async with GuardedClient(AddressGuard([], resolve=resolve), deadline_s=5, max_bytes=1000) as client:
        assert (await client.get("http://bot.example.com/")).status_code == 200
    assert server.keys == [None]
