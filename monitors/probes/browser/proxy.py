"""Run a SOCKS proxy for the browser. The proxy connects only to the hosts and ports that the guard allows.

All connections of a page use this proxy: frames, workers, web sockets and redirects. The proxy resolves a host
name, checks the address and connects to the checked address. The name cannot change to another address between the
check and the connection. Playwright's `route` is not used, because it sees neither IP addresses nor the web sockets
of workers. Each browser context has its own proxy. Therefore, the evidence of a case lists only the connections of
its page.

If the local network has a proxy (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), connections also use the
network's proxy. The network's proxy then resolves the names that this machine cannot resolve.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import logging
import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from monitors.address_guard import AddressGuard, format_host_and_port
from monitors.errors import AccessDenied

log = logging.getLogger(__name__)

CONNECT_DEADLINE_S: Final = 30.0
"""Maximum seconds to connect to one address of a host. Chromium itself waits for four minutes."""
MAX_REFUSED_PLACES: Final = 200
"""Maximum number of refused hosts and ports that are recorded for one page. A page may scan a network."""
_MAX_CONNECTIONS: Final = 256
"""Maximum number of connections of one page. With a proxy, Chromium opens at most 32 connections and 255 web
sockets.
"""
_CHUNK: Final = 262_144
_VERSION, _NO_LOGIN, _CONNECT, _DONE = 5, 0, 1, 0
_FAILED, _NOT_ALLOWED, _UNREACHABLE, _REFUSED, _UNSUPPORTED = 1, 2, 4, 5, 7
"""SOCKS 5 reply codes (RFC 1928, section 6)."""

_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class _Upstream:
    """The proxy of the local network."""

    host: str
    port: int
    encrypted: bool
    login: str


class _Failed(Exception):
    """Raised if a connection failed. ``reply`` is the SOCKS code that is sent to the browser."""

    def __init__(self, why: str, reply: int = _FAILED) -> None:
        super().__init__(why)
        self.reply = reply


class GuardedProxy:
    """The proxy of one page. Use it as an async context manager or with `start` and `close`.

    ``refused`` maps each host and port that the guard refused to the reason. ``last_failure`` is the error of the
    newest failed connection.
    """

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.last_failure: Exception | None = None
        self.refused: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def start(self) -> Self:
        """Start listening. Only this machine can connect."""
        self._server = await asyncio.start_server(self._accept_connection, "127.0.0.1", 0, limit=_CHUNK)
        return self

    @property
    def address(self) -> str:
        """Return the address of the proxy for the browser: ``socks5://127.0.0.1:<port>``."""
        assert self._server is not None, "start() comes first"
        return f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MAX_CONNECTIONS:
            writer.close()
            return
        task = asyncio.ensure_future(self._serve_connection((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(
            lambda _task: writer.close()
        )  # also for a connection that was closed before it began

    async def _serve_connection(self, browser: _Ends) -> None:
        reader, writer = browser
        try:
            host, port = await _read_socks_request(reader, writer)
            server = await self._connect_if_allowed(host, port)
        except _Failed as error:
            writer.write(_format_socks_reply(error.reply))
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass  # the browser closed the connection
        else:
            writer.write(_format_socks_reply(_DONE))
            await _copy_both_directions(browser, server)
        finally:
            writer.close()

    async def _connect_if_allowed(self, host: str, port: int) -> _Ends:
        """Connect to a host and port that the guard allows. On failure, store the reason and raise `_Failed`."""
        place = format_host_and_port((host, port))
        try:
            addresses = await self._guard.resolve_allowed(host, port)
            connection = await self._connect_to_first_reachable(host, port, addresses)
        except AccessDenied as error:
            self._record_refusal(place, error)
            raise _Failed(str(error), _NOT_ALLOWED) from error
        except (OSError, _Failed) as error:
            self.last_failure = error
            refused = isinstance(error, ConnectionRefusedError)
            raise _Failed(str(error), _REFUSED if refused else _UNREACHABLE) from error
        return connection

    def _record_refusal(self, place: str, error: AccessDenied) -> None:
        self.last_failure = error
        if place not in self.refused and len(self.refused) < MAX_REFUSED_PLACES:
            self.refused[place] = str(error)
            if place not in self._guard.refused:  # once for all pages of a run
                self._guard.refused.add(place)
                log.warning("%s", error)

    async def _connect_to_first_reachable(self, host: str, port: int, addresses: tuple[str, ...]) -> _Ends:
        upstream = _find_network_proxy(host, port)
        if upstream is not None:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                return await _open_tunnel(upstream, host, port)
        if not addresses:
            raise _Failed("the host name cannot be resolved")
        last_error: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_DEADLINE_S):  # `wait_for` loses a late cancellation
                    return await asyncio.open_connection(address, port, limit=_CHUNK)
            except OSError as error:  # including TimeoutError
                last_error = error
        assert last_error is not None
        raise last_error


async def _read_socks_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Return the host and port that the browser requests. Raises `_Failed` for an unexpected request."""
    version, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    if version != _VERSION:
        raise _Failed("no SOCKS 5")
    writer.write(bytes((_VERSION, _NO_LOGIN)))
    _, command, _, kind = await reader.readexactly(4)
    match kind:
        case 1:
            host = socket.inet_ntop(socket.AF_INET, await reader.readexactly(4))
        case 4:
            host = socket.inet_ntop(socket.AF_INET6, await reader.readexactly(16))
        case _:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii", "replace")
    port = int.from_bytes(await reader.readexactly(2))
    if command != _CONNECT:
        raise _Failed("this proxy only accepts CONNECT", _UNSUPPORTED)
    return host, port


def _format_socks_reply(code: int) -> bytes:
    return bytes((_VERSION, code, 0, 1)) + bytes(6)


async def _copy_both_directions(browser: _Ends, server: _Ends) -> None:
    """Copy bytes in both directions until one side closes its connection."""
    ways = {
        asyncio.ensure_future(_copy_bytes(browser[0], server[1])),
        asyncio.ensure_future(_copy_bytes(server[0], browser[1])),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server[1].close()  # before anything is awaited: closing the proxy cancels this task a second time
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _copy_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
    except OSError:
        _abort_stream(sink)


def _abort_stream(sink: asyncio.StreamWriter) -> None:
    """Abort the connection instead of closing it normally.

    After a normal close, a stream that broke on one side would look complete to the browser.
    """
    end = sink.get_extra_info("socket")
    if end is not None:
        # The socket is closed already.
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sink.transport.abort()


def _find_network_proxy(host: str, port: int) -> _Upstream | None:
    """Return the proxy for a host from the environment, or ``None``. Raises `_Failed` for an unsupported scheme."""
    proxies = getproxies()
    scheme = "http" if port == 80 else "https"  # noqa: PLR2004 - HTTP's port; other ports are mostly encrypted
    address = proxies.get(scheme) or proxies.get("all")
    if not address or _is_loopback_host(host) or proxy_bypass(f"{host}:{port}"):
        return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _Failed(
            f"the network's proxy must have an http or https address with a host (scheme: {parts.scheme})"
        )
    encrypted = parts.scheme == "https"
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return _Upstream(parts.hostname, parts.port or (443 if encrypted else 80), encrypted, login)


def _is_loopback_host(host: str) -> bool:
    """Return whether the host is this machine. Connections to this machine do not use the network's proxy."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):  # a host name, which is not this machine
        return ipaddress.ip_address(host).is_loopback
    return False


async def _open_tunnel(upstream: _Upstream, host: str, port: int) -> _Ends:
    """Open a connection through the proxy of the local network.

    Raises `_Failed` if the proxy refuses the connection.
    """
    trust = ssl.create_default_context() if upstream.encrypted else None
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port, ssl=trust, limit=_CHUNK)
    place = format_host_and_port((host, port))
    head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
    if upstream.login:
        head += f"Proxy-Authorization: Basic {base64.b64encode(upstream.login.encode()).decode()}\r\n"
    try:
        writer.write(f"{head}\r\n".encode())
        status = (await reader.readuntil(b"\r\n\r\n")).split(maxsplit=2)
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise _Failed("the network's proxy closed the connection") from error
    except BaseException:  # the deadline passed, or the page is closed
        writer.close()
        raise
    if status[1:2] != [b"200"]:
        writer.close()
        code = status[1][:3].decode("ascii", "replace") if len(status) > 1 else "nothing"
        raise _Failed(f"the network's proxy answered {code}")
    return reader, writer
