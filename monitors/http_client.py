"""Define the HTTP client for servers outside of Lookout: apps, logs, exports and version endpoints.

The client connects only to addresses that an `AddressGuard` permits. It follows at most `MAX_REDIRECTS` redirects,
only to http and https, and sends credentials only to the configured hosts. One time limit applies to the whole
request, including its redirects and its body. One size limit applies to the decompressed body.

The client raises `AccessDenied` if the guard refuses a connection. Any other error is an `httpx.HTTPError`, such as
`DeadlinePassed`, `BodyTooLarge` and `RedirectRefused`. `describe_http_error` returns a readable description of such
an error.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import httpcore
import httpx

from monitors.address_guard import AddressGuard
from monitors.request_headers import NO_HEADERS, RequestHeaders

MAX_REDIRECTS: Final = 5
MEGABYTE_BYTES: Final = 1_000_000
MAX_CONNECT_S: Final = 5.0
"""Maximum time in seconds for connecting to one IP address of a host, if the host has another address to try."""
ACCEPTED_ENCODINGS: Final = "gzip, deflate"
"""Encodings that this module decompresses piece by piece, to limit the body's size. httpx has no such limit."""
_PIECE_BYTES: Final = 1 << 16
_ENDS_AT: Final = "lookout_ends_at"
"""The key of the deadline in a request's ``extensions``. httpx copies the extensions to redirected requests."""


class DeadlinePassed(httpx.ReadTimeout):
    """Raised if the complete response did not arrive before the deadline."""


class BodyTooLarge(httpx.TransportError):
    """Raised if the decompressed body is larger than the limit."""


class RedirectRefused(httpx.TransportError):
    """Raised if the server redirects to an address that is invalid, or is not http or https."""


def describe_http_error(error: Exception) -> str:
    """Return a readable description of a failed request, without an address or a secret."""
    match error:
        case DeadlinePassed() | BodyTooLarge() | RedirectRefused():
            return str(error)
        case httpx.TooManyRedirects():
            return f"the server redirected more than {MAX_REDIRECTS} times"
        case TimeoutError():
            return "the request took too long"
        case _:
            return type(error).__name__


class GuardedClient(httpx.AsyncClient):
    """An `httpx.AsyncClient` with the limits of this module.

    ``headers`` are sent only to the hosts of ``addresses``. ``plain_headers`` are sent to all hosts. If
    ``max_redirects`` is 0, a redirect is returned as the response. ``timeout`` limits single steps, such as
    connecting.
    """

    def __init__(
        self,
        guard: AddressGuard,
        *,
        deadline_s: float,
        max_bytes: int,
        headers: RequestHeaders = NO_HEADERS,
        addresses: Iterable[str] = (),
        plain_headers: Mapping[str, str] | None = None,
        max_redirects: int = MAX_REDIRECTS,
        timeout: httpx.Timeout | None = None,
        limits: httpx.Limits | None = None,
        verify: ssl.SSLContext | bool = True,
        auth: tuple[str, str] | None = None,
        base_url: str = "",
    ) -> None:
        self._guard, self._deadline_s, self._max_bytes = guard, deadline_s, max_bytes
        super().__init__(
            headers={"Accept-Encoding": ACCEPTED_ENCODINGS, **(plain_headers or {}), **headers.values},
            timeout=timeout or httpx.Timeout(deadline_s),
            limits=limits or httpx.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=max_redirects > 0,
            max_redirects=max_redirects,
            event_hooks={
                "request": [self._check_address, headers.build_header_removal_hook(addresses)],
                "response": [self._limit_response, self._check_redirect],
            },
            verify=verify,
            auth=auth,
            base_url=base_url,
        )
        pool = cast("Any", self._transport)._pool  # noqa: SLF001 - httpx has no public way to a network backend
        assert isinstance(pool, httpcore.AsyncConnectionPool), (
            "internal error: Lookout cannot check the connections of this version of httpx"
        )
        cast("Any", pool)._network_backend = _GuardedBackend(guard)  # noqa: SLF001 - as above; proxies keep their own

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request as `httpx.AsyncClient.send` does. Raises the errors of this module."""
        ends_at = asyncio.get_running_loop().time() + self._deadline_s
        request.extensions = {**request.extensions, _ENDS_AT: ends_at}
        try:
            async with asyncio.timeout_at(ends_at):
                return await super().send(request, stream=stream, **options)
        except TimeoutError:
            raise self._build_deadline_error() from None

    async def _check_address(self, request: httpx.Request) -> None:
        await self._guard.check(str(request.url))

    async def _limit_response(self, response: httpx.Response) -> None:
        """Limit the size of the body before httpx reads it. The limit also applies to the body of a redirect."""
        response.stream = _BoundedStream(
            cast("httpx.AsyncByteStream", response.stream),
            encoding=response.headers.pop("content-encoding", "identity").strip().lower(),
            max_bytes=self._max_bytes,
            ends_at=response.request.extensions[_ENDS_AT],
            late=self._build_deadline_error(),
        )

    async def _check_redirect(self, response: httpx.Response) -> None:
        """Raise `RedirectRefused` if the response redirects to an invalid address, or not to http or https."""
        if not self.follow_redirects or not response.has_redirect_location:
            return
        try:
            location = httpx.URL(response.headers["location"])
            target = response.url.join(location)
        except (httpx.InvalidURL, ValueError):
            raise RedirectRefused("the server redirects to an invalid address") from None
        if target.scheme not in {"http", "https"} or not target.host or (location.scheme and not location.host):
            raise RedirectRefused(
                f"the server redirects to an address that is not a valid web address ({target.scheme[:20]}:)"
            )

    def _build_deadline_error(self) -> DeadlinePassed:
        return DeadlinePassed(f"no complete answer within {self._deadline_s:g} s")


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the IP addresses that the guard has checked.

    The host name is not resolved a second time, because the second lookup could return another address.
    """

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._backend = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = tuple(dict.fromkeys(await self._guard.resolve_allowed(host, port)))
        if not addresses:
            raise httpcore.ConnectError("the host name does not resolve")
        for address in addresses[:-1]:
            wait_s = MAX_CONNECT_S if timeout is None else min(timeout, MAX_CONNECT_S)
            try:
                return await self._backend.connect_tcp(address, port, wait_s, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._backend.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        # Part of the interface. httpcore only sleeps between tries, and this client has one try.
        await self._backend.sleep(seconds)


class _BoundedStream(httpx.AsyncByteStream):
    """The decompressed body of a response, with limits for its size and its time."""

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        *,
        encoding: str,
        max_bytes: int,
        ends_at: float,
        late: DeadlinePassed,
    ) -> None:
        self._stream, self._encoding = stream, encoding
        self._max_bytes, self._ends_at, self._late = max_bytes, ends_at, late

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unpacker, size, raw_pieces = _choose_unpacker(self._encoding), 0, aiter(self._stream)
        while True:
            try:
                async with asyncio.timeout_at(self._ends_at):
                    raw = await anext(raw_pieces, None)
            except TimeoutError:
                raise self._late from None
            if raw is None:
                return
            for piece in unpacker(raw):
                size += len(piece)
                if size > self._max_bytes:
                    raise BodyTooLarge(f"the server sent more than {self._max_bytes / MEGABYTE_BYTES:g} MB")
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _choose_unpacker(encoding: str) -> Any:
    match encoding:
        case "" | "identity":
            return lambda raw: (raw,)  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType] - bytes
        case "gzip" | "x-gzip":
            return _Unpacker(zlib.MAX_WBITS | 16).unpack
        case "deflate":
            return _Unpacker(zlib.MAX_WBITS).unpack
        case _:
            raise httpx.DecodingError("the body has an encoding that Lookout did not request")


class _Unpacker:
    """Decompresses data in small pieces, because a compressed megabyte may contain a gigabyte."""

    def __init__(self, window_bits: int) -> None:
        self._unpacking = zlib.decompressobj(window_bits)
        self._may_be_raw = window_bits == zlib.MAX_WBITS

    def unpack(self, raw: bytes) -> Iterator[bytes]:
        try:
            yield from self._unpack_pieces(raw)
        except zlib.error:
            if not self._may_be_raw:
                raise httpx.DecodingError("the body does not match its declared encoding") from None
            self._unpacking, self._may_be_raw = zlib.decompressobj(-zlib.MAX_WBITS), False  # deflate without a head
            yield from self.unpack(raw)

    def _unpack_pieces(self, raw: bytes) -> Iterator[bytes]:
        while raw and not self._unpacking.eof:
            piece = self._unpacking.decompress(raw, _PIECE_BYTES)
            self._may_be_raw = False
            raw = self._unpacking.unconsumed_tail
            if piece:
                yield piece
