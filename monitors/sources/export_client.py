"""One page of an export over HTTP: asked again where that can help, bounded in time and size, true to its host."""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, Self

import httpx

from monitors.errors import SourceUnavailable
from monitors.sources.json_bytes import looks_like_html, parsed
from monitors.sources.traffic_settings import HttpTraffic

_MEGABYTE: Final = 1_000_000
_REDIRECTS: Final = 5
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that say: later. RFC 9110, RFC 6585; the 52x are those of common proxies."""
_REFUSED: Final = frozenset({401, 403, 407})


class Page(NamedTuple):
    """A page of an export: its JSON, the headers in lower case, and a digest to know it again by."""

    document: Any
    headers: Mapping[str, str]
    sha256: str


class _Later(Exception):
    """It did not work this time. ``pause_s`` is how long the server wants to be left alone, where it says."""

    def __init__(self, why: str, pause_s: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.pause_s = pause_s


class ExportClient:
    """Asks for pages. Its messages never hold the token, nor an address's parameters."""

    def __init__(
        self, client: httpx.AsyncClient, settings: HttpTraffic, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._client = client
        self._settings = settings
        self._sleep = sleep

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, settings: HttpTraffic, token: str | None, sleep: Callable[[float], Awaitable[None]]
    ) -> AsyncGenerator[Self]:
        """A client while its ``with`` block lasts."""
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        async with httpx.AsyncClient(headers=headers, timeout=settings.request_deadline_s) as client:
            yield cls(client, settings, sleep)

    async def page(self, url: str) -> Page:
        """The page; `SourceUnavailable` when it does not come however often it is asked for."""
        for left in reversed(range(self._settings.attempts)):
            try:
                return await self._within_deadline(url)
            except _Later as later:
                if not left:
                    tries = self._settings.attempts
                    raise SourceUnavailable(f"{bare_url(url)}: {later.why}, after {tries} tries") from None
                await self._sleep(self._pause_s(later, self._settings.attempts - left))
        raise AssertionError("the last try returns or raises")

    def _pause_s(self, later: _Later, tries: int) -> float:
        wanted = later.pause_s if later.pause_s is not None else 2.0 ** (tries - 1)
        return min(wanted, self._settings.retry_most_s)

    async def _within_deadline(self, url: str) -> Page:
        deadline_s = self._settings.request_deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                return await self._once(url)
        except (TimeoutError, httpx.TimeoutException):
            raise _Later(f"no whole answer within {deadline_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Later(f"cannot be reached ({type(error).__name__})") from None

    async def _once(self, url: str) -> Page:
        for _ in range(_REDIRECTS):
            async with self._client.stream("GET", url) as response:
                if response.has_redirect_location:
                    url = same_host(url, response.headers["location"], "redirects to")
                    continue
                self._check_status(url, response)
                body = await self._body(url, response)
                document = await self._document(body, response)
                return Page(document, dict(response.headers), hashlib.sha256(body).hexdigest())
        raise SourceUnavailable(f"{bare_url(url)}: redirects go on and on")

    def _check_status(self, url: str, response: httpx.Response) -> None:
        status = response.status_code
        if status in _AGAIN:
            raise _Later(f"answered HTTP {status}", retry_after_s(response.headers))
        if status in _REFUSED:
            named = self._settings.token_env
            what = f"is the token in {named} still good?" if named else "name the token's variable in token_env"
            raise SourceUnavailable(f"{bare_url(url)}: answered HTTP {status}; {what}")
        if not response.is_success:
            raise SourceUnavailable(f"{bare_url(url)}: answered HTTP {status}")

    async def _body(self, url: str, response: httpx.Response) -> bytes:
        body, most = bytearray(), self._settings.page_most_mb * _MEGABYTE
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                raise SourceUnavailable(
                    f"{bare_url(url)}: a page of more than {most / _MEGABYTE:g} MB; ask for fewer items "
                    "(traffic.size_parameter, traffic.size) or raise traffic.page_most_mb"
                )
        return bytes(body)

    async def _document(self, body: bytes, response: httpx.Response) -> Any:
        try:
            return await asyncio.to_thread(_read, body)  # a large page takes a while
        except ValueError as error:
            kind = response.headers.get("content-type", "").split(";")[0].strip() or "no type"
            hint = "; is it a login page?" if looks_like_html(body) else f": {error}"
            raise _Later(f"answered {kind[:60]}, expected JSON{hint}") from None


def _read(body: bytes) -> Any:
    """The document; bytes that are no UTF-8 become U+FFFD, so that they cost no more than themselves."""
    try:
        return parsed(body)
    except ValueError:
        return parsed(body.decode("utf-8", "replace").encode())


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header: a number, or a time by the server's own clock (its Date header)."""
    wanted = headers.get("retry-after", "").strip()
    if wanted.isdecimal():
        return float(wanted[:9])
    try:
        until, now = (email.utils.parsedate_to_datetime(one) for one in (wanted, headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None


def same_host(url: str, link: str, does: str) -> str:
    """Where a link leads; `SourceUnavailable` where that is another host: no token goes there.

    The step from http to https on one host is taken.
    """
    here = httpx.URL(url)
    try:
        there = here.join(link)
    except (httpx.InvalidURL, ValueError):
        raise SourceUnavailable(f"{bare_url(url)}: {does} what is no address") from None
    same = there.host == here.host and there.scheme == here.scheme and there.port == here.port
    upgraded = there.host == here.host and (here.scheme, there.scheme) == ("http", "https")
    if not same and not upgraded:
        raise SourceUnavailable(
            f"{bare_url(url)}: {does} another host ({there.scheme}://{there.host}), which is not configured"
        )
    return str(there)


def bare_url(url: str) -> str:
    """The address without its parameters, which may be secret."""
    return str(httpx.URL(url).copy_with(query=None, fragment=None, username=None, password=None))
