"""The browser's only way out: a SOCKS proxy of our own that connects nowhere but where the target's guard lets it.

Frames, workers, sockets, redirects, prefetches, later navigations: whatever a page opens is one connection here, by
name and port. The name is resolved, judged and connected to in one go, so that it cannot lead elsewhere in between.
(Playwright's `route` sees neither workers' sockets nor preconnects, knows no addresses, and costs each request a
way through Python.) Each browser context has a proxy of its own, so that a case's evidence names what its own page
tried.

Where the owner's network has a proxy (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, less `NO_PROXY`), connections go
through it, by `CONNECT`; it then resolves the names that this machine cannot.
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

from monitors.errors import AccessDenied
from monitors.probes.address_guard import AddressGuard, format_place

log = logging.getLogger(__name__)

CONNECT_DEADLINE_S: Final = 30.0
"""For one address of a name; Chromium itself gives up after four minutes."""
MAX_REFUSED_PLACES: Final = 200
"""Places that are remembered for one page: one that tries a whole network does not fill the record."""
_MAX_CONNECTIONS: Final = 256
"""Connections of one page. Chromium opens no more than 32 through a proxy, and 255 web sockets."""
_CHUNK: Final = 262_144
_VERSION, _NO_LOGIN, _CONNECT, _DONE = 5, 0, 1, 0
_FAILED, _NOT_ALLOWED, _UNREACHABLE, _REFUSED, _UNSUPPORTED = 1, 2, 4, 5, 7
"""Replies of SOCKS 5 (RFC 1928, section 6)."""

_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class _Upstream:
    """The proxy of the owner's network."""

    host: str
    port: int
    encrypted: bool
    login: str


class _Failed(Exception):
    """A connection that cannot be made. ``reply`` is what SOCKS says to it."""

    def __init__(self, why: str, reply: int = _FAILED) -> None:
        super().__init__(why)
        self.reply = reply


class GuardedProxy:
    """One page's way out. Belongs to one event loop; use as an async context manager, or `start` and `close`.

    ``refused`` are the places that the page tried and the guard did not allow, each once, with the reason.
    ``last_failure`` is why the newest connection that failed could not be made.
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
        """Listens on this machine alone."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_CHUNK)
        return self

    @property
    def address(self) -> str:
        """For the browser: ``socks5://127.0.0.1:<port>``."""
        assert self._server is not None, "start() comes first"
        return f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Ends every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MAX_CONNECTIONS:
            writer.close()
            return
        task = asyncio.ensure_future(self._serve((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _task: writer.close())  # also of one that was ended before it began

    async def _serve(self, browser: _Ends) -> None:
        reader, writer = browser
        try:
            host, port = await _read_request(reader, writer)
            server = await self._connect(host, port)
        except _Failed as error:
            writer.write(_format_reply(error.reply))
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass  # the browser hung up
        else:
            writer.write(_format_reply(_DONE))
            await _relay(browser, server)
        finally:
            writer.close()

    async def _connect(self, host: str, port: int) -> _Ends:
        """A connection to where the guard lets go. Raises `_Failed`, and notes why."""
        place = format_place((host, port))
        try:
            addresses = await self._guard.resolve_allowed(host, port)
            connection = await self._dial(host, port, addresses)
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

    async def _dial(self, host: str, port: int, addresses: tuple[str, ...]) -> _Ends:
        upstream = _find_upstream(host, port)
        if upstream is not None:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                return await _open_tunnel(upstream, host, port)
        if not addresses:
            raise _Failed("its name is not known")
        last_error: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_DEADLINE_S):  # `wait_for` loses a cancellation that comes late
                    return await asyncio.open_connection(address, port, limit=_CHUNK)
            except OSError as error:  # TimeoutError included
                last_error = error
        assert last_error is not None
        raise last_error


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """The name and port that the browser asks for. Raises `_Failed` for what a browser does not ask."""
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
        raise _Failed("only connections are made", _UNSUPPORTED)
    return host, port


def _format_reply(code: int) -> bytes:
    return bytes((_VERSION, code, 0, 1)) + bytes(6)


async def _relay(browser: _Ends, server: _Ends) -> None:
    """Hands bytes on both ways until either end is through."""
    ways = {
        asyncio.ensure_future(_copy_bytes(browser[0], server[1])),
        asyncio.ensure_future(_copy_bytes(server[0], browser[1])),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server[1].close()  # before anything is awaited: whoever closes the proxy cancels here a second time
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
    """Breaks off: a stream that broke at one end must not seem ended at the other."""
    end = sink.get_extra_info("socket")
    if end is not None:
        # The socket is closed already.
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sink.transport.abort()


def _find_upstream(host: str, port: int) -> _Upstream | None:
    """The owner's proxy for a place, as the environment names it. `_Failed` for a kind that is not spoken."""
    proxies = getproxies()
    scheme = "http" if port == 80 else "https"  # noqa: PLR2004 - the web's own port; all else is mostly encrypted
    address = proxies.get(scheme) or proxies.get("all")
    if not address or _is_loopback_host(host) or proxy_bypass(f"{host}:{port}"):
        return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _Failed(f"the network's proxy is of a kind that is not spoken ({parts.scheme}); http and https are")
    encrypted = parts.scheme == "https"
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return _Upstream(parts.hostname, parts.port or (443 if encrypted else 80), encrypted, login)


def _is_loopback_host(host: str) -> bool:
    """This machine is never asked for by way of a proxy."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    # A host name is no address, and is not this machine.
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


async def _open_tunnel(upstream: _Upstream, host: str, port: int) -> _Ends:
    """A tunnel through the owner's proxy. Raises `_Failed` when it gives none."""
    trust = ssl.create_default_context() if upstream.encrypted else None
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port, ssl=trust, limit=_CHUNK)
    place = format_place((host, port))
    head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
    if upstream.login:
        head += f"Proxy-Authorization: Basic {base64.b64encode(upstream.login.encode()).decode()}\r\n"
    try:
        writer.write(f"{head}\r\n".encode())
        status = (await reader.readuntil(b"\r\n\r\n")).split(maxsplit=2)
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise _Failed("the network's proxy broke off") from error
    except BaseException:  # the deadline, or the page is through
        writer.close()
        raise
    if status[1:2] != [b"200"]:
        writer.close()
        code = status[1][:3].decode("ascii", "replace") if len(status) > 1 else "nothing"
        raise _Failed(f"the network's proxy answered {code}")
    return reader, writer
