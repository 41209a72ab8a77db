"""Test that the browser's proxy connects only to addresses that the address guard allows.

If the owner configured a network proxy, the connection goes through the network proxy.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from syrupy.assertion import SnapshotAssertion

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied
from monitors.probes.browser.proxy import GuardedProxy

FAILED, NOT_ALLOWED, UNREACHABLE, REFUSED, UNSUPPORTED = 1, 2, 4, 5, 7
NOWHERE = "nowhere.example.com"


async def _known(host: str) -> list[str]:
    return {"inside.example.com": ["10.0.0.5"], "app.example.com": ["127.0.0.1"]}.get(host, [])


def guard_of(*configured: str) -> AddressGuard:
    return AddressGuard(configured, private_network=True, resolve=_known)


@asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """Yield the port of a server that sends the received bytes back twice."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(2 * await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def network_proxy(status: str = "200 OK") -> AsyncGenerator[tuple[int, list[bytes]]]:
    """Yield the port of a company proxy, and the headers of the requests that it received.

    The proxy answers every request itself instead of connecting to the host.
    """
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if status.startswith("200"):
            writer.write(b"by proxy: " + await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


async def ask(proxy: GuardedProxy, host: str, port: int, *, command: int = 1, text: bytes = b"hi") -> bytes | int:
    """Return the response that comes through the proxy, or the SOCKS reply if the proxy makes no connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.address.rpartition(":")[2]))
    try:
        name = host.encode()
        writer.write(bytes((5, 1, 0)))
        writer.write(bytes((5, command, 0, 3, len(name))) + name + port.to_bytes(2))
        assert await reader.readexactly(2) == bytes((5, 0))
        reply = await reader.readexactly(10)
        if reply[1]:
            return reply[1]
        writer.write(text)
        return await reader.read()
    finally:
        writer.close()


async def test_the_proxy_connects_only_where_the_guard_allows() -> None:
    async with echo() as port, GuardedProxy(guard_of(f"http://app.example.com:{port}")) as proxy:
        assert await ask(proxy, "app.example.com", port) == b"hihi"
        assert proxy.refused == {}
        for host, at in (("127.0.0.2", port), ("app.example.com", port + 1), ("inside.example.com", 443)):
            assert await ask(proxy, host, at) == NOT_ALLOWED
            assert isinstance(proxy.last_failure, AccessDenied)
    assert list(proxy.refused) == [f"127.0.0.2:{port}", f"app.example.com:{port + 1}", "inside.example.com:443"]


async def test_unreachable_addresses_are_reported_by_cause(
    unused_tcp_port: int, snapshot: SnapshotAssertion
) -> None:
    async with GuardedProxy(guard_of(f"http://app.example.com:{unused_tcp_port}")) as proxy:
        assert await ask(proxy, "app.example.com", unused_tcp_port) == REFUSED
        assert isinstance(proxy.last_failure, ConnectionRefusedError)
        assert await ask(proxy, NOWHERE, 443) == UNREACHABLE
        assert str(proxy.last_failure) == snapshot
        assert await ask(proxy, "app.example.com", unused_tcp_port, command=3) == UNSUPPORTED  # UDP
    assert proxy.refused == {}


async def test_the_owners_proxy_is_used_and_resolves_what_this_machine_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with network_proxy() as (port, heads), GuardedProxy(guard_of()) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://ann:s%40cret@127.0.0.1:{port}")
        assert await ask(proxy, NOWHERE, 443) == b"by proxy: hi"
        assert await ask(proxy, "inside.example.com", 443) == NOT_ALLOWED
        assert await ask(proxy, "127.0.0.1", 443) == NOT_ALLOWED
    assert len(heads) == 1
    assert heads[0].startswith(f"CONNECT {NOWHERE}:443 HTTP/1.1\r\nHost: {NOWHERE}:443\r\n".encode())
    assert base64.b64encode(b"ann:s@cret") in heads[0]


async def test_the_owners_proxy_is_passed_by_where_he_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        echo() as at,
        network_proxy() as (port, heads),
        GuardedProxy(guard_of(f"http://app.example.com:{at}")) as proxy,
    ):
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
        assert await ask(proxy, "app.example.com", at) == b"by proxy: hi"
        monkeypatch.setenv("NO_PROXY", "app.example.com")
        assert await ask(proxy, "app.example.com", at) == b"hihi"
    assert len(heads) == 1


@pytest.mark.parametrize(
    ("address", "why"),
    [("socks5://127.0.0.1:9", "must have an http or https address"), (None, "the network's proxy answered 403")],
)
async def test_a_proxy_that_refuses_is_reported(
    monkeypatch: pytest.MonkeyPatch, address: str | None, why: str
) -> None:
    async with network_proxy("403 Forbidden") as (port, _), GuardedProxy(guard_of()) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", address or f"http://127.0.0.1:{port}")
        assert await ask(proxy, NOWHERE, 443) == UNREACHABLE
        assert why in str(proxy.last_failure)


async def test_a_stream_that_breaks_there_breaks_here_and_does_not_look_ended() -> None:
    async def breaking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)  # the rest is left unread, so that closing resets
        writer.transport.abort()

    server = await asyncio.start_server(breaking, "127.0.0.1", 0, limit=1)
    port = server.sockets[0].getsockname()[1]
    async with server, GuardedProxy(guard_of(f"http://app.example.com:{port}")) as proxy:
        with pytest.raises(ConnectionResetError):
            await ask(proxy, "app.example.com", port, text=bytes(4_000_000))


async def test_whenever_it_is_closed_no_connection_stays_open() -> None:
    """Whenever the proxy is closed, it closes its connections itself and leaves none to the garbage collection."""
    async with echo() as port:
        guard = guard_of(f"http://app.example.com:{port}")
        gc.collect()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for turns in range(40):
                for hang_up in (False, True):
                    async with asyncio.timeout(10):
                        await _closed_after(GuardedProxy(guard), port, turns, hang_up=hang_up)
            gc.collect()
    assert [str(warning.message) for warning in seen] == []


async def _closed_after(proxy: GuardedProxy, port: int, turns: int, *, hang_up: bool) -> None:
    """Open a connection through the proxy, and close the proxy after ``turns`` turns of the event loop.

    The count begins with the request or, if ``hang_up`` is true, when the browser hangs up.
    """
    await proxy.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.address.rpartition(":")[2]))
    writer.write(bytes((5, 1, 0)) + bytes((5, 1, 0, 3, 15)) + b"app.example.com" + port.to_bytes(2))
    if hang_up:
        await reader.readexactly(12)
        writer.close()
    for _ in range(turns):
        await asyncio.sleep(0)
    await proxy.close()
    writer.close()
