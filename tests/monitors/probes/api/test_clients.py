"""Test that conversations over HTTP share no cookies, and that a broken client is not used again."""

from __future__ import annotations

import httpx
import pytest
from aiohttp import web

from monitors.address_guard import AddressGuard
from monitors.probes.api.driver import HttpClientPool
from monitors.probes.settings import ProbeSettings
from monitors.request_headers import NO_HEADERS, RequestHeaders
from tests.servers.threaded_server import ThreadedServer


class Remembering(ThreadedServer):
    """A server that sets a cookie and returns the cookie, the client port and the headers that it received."""

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/", self._page)
        return app

    async def _page(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        port = request.transport.get_extra_info("peername")[1]
        response = web.json_response({"cookie": request.cookies.get("who"), "port": port, **request.headers})
        response.set_cookie("who", "the first one")
        return response


async def test_a_client_is_lent_again_with_its_connection_and_headers_but_without_cookies() -> None:
    sent = RequestHeaders(key="probe.headers", values={"X-Key": "k"})
    with Remembering() as server:
        clients = HttpClientPool(ProbeSettings(), sent, server.url, AddressGuard([server.url]))
        async with clients.lend_client() as first:
            seen = (await first.get(server.url)).json()
            again = (await first.get(server.url)).json()
        async with clients.lend_client() as second:
            other = (await second.get(server.url)).json()
        await clients.aclose()
    assert (seen["cookie"], again["cookie"], other["cookie"]) == (None, "the first one", None)
    assert second is first
    assert {one["port"] for one in (seen, again, other)} == {seen["port"]}
    assert other["X-Key"] == "k"


async def test_conversations_at_once_have_a_client_each_and_a_failed_one_is_closed() -> None:
    clients = HttpClientPool(ProbeSettings(), NO_HEADERS, "http://127.0.0.1", AddressGuard(["http://127.0.0.1"]))
    with pytest.raises(httpx.ReadError):
        async with clients.lend_client() as failed:
            raise httpx.ReadError("broke off")
    assert failed.is_closed
    async with clients.lend_client() as one, clients.lend_client() as other:
        assert one is not other
        assert not one.is_closed
    await clients.aclose()
    assert one.is_closed
    assert other.is_closed
