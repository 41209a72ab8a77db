"""The requests of the job driver: bounded in time and size, each failure told apart by what it means."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from monitors.errors import AccessDenied, AnswerIncomplete, PageNotUnderstood, ProbeError, Unreachable
from monitors.probes.address_guard import AddressGuard
from monitors.probes.inpage import clean
from monitors.probes.job_settings import JobSettings
from monitors.records.base import Record

GONE = (404, 410)
WALLS = (401, 402, 403, 407)
TOO_MANY, ERRORS_FROM, APP_ERRORS_FROM = 429, 400, 500
MEGABYTE = 1_000_000
CHUNK = 65_536


class Stumble(Exception):
    """A look that told nothing and may be repeated; ``error`` is what it means when it stays so.

    ``after_s`` is the pause that the app asked for.
    """

    def __init__(self, error: ProbeError, *, after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s


class Body(Record):
    """What a request brought."""

    url: str
    text: str


class JobHttp:
    """Speaks to one app. Messages name an address without its query, which may hold a key."""

    def __init__(
        self, settings: JobSettings, headers: Mapping[str, str] | None, guard: AddressGuard | None = None
    ) -> None:
        self._settings = settings
        self._client = httpx.AsyncClient(
            headers=dict(headers or {}),
            timeout=httpx.Timeout(settings.request_deadline_s, read=None),  # reading has limits of its own
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=True,
            event_hooks=guard.hooks() if guard else None,
        )

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def posted(self, url: str, body: Any, key: str) -> AsyncGenerator[httpx.Response]:
        """The reply to a start, its body unread. ``key`` is the same when the same start is sent again.

        Raises `Unreachable` or `AccessDenied`: a start is not repeated here, it may have begun.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                sending = self._client.stream("POST", url, json=body, headers={"Idempotency-Key": key})
                async with sending as response:
                    self._check_start(response)
                    limit.reschedule(None)  # what comes after the head has limits of its own
                    yield response
        except Stumble as stumble:
            raise stumble.error from stumble
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"the job could not be started: {_why(error)} at {bare(url)}") from error

    async def look(self, url: str) -> Body:
        """What stands at an address. Raises `Stumble` for what may pass, a `ProbeError` for what will not."""
        async with self._got(url) as response:
            return await self.body_of(response)

    @asynccontextmanager
    async def events(self, url: str) -> AsyncGenerator[httpx.Response]:
        """An event stream that has begun; raises as `look` does."""
        async with self._got(url) as response:
            yield response

    async def cancel(self, url: str) -> None:
        """Asks the app to stop; whether it does is its own affair."""
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                await self._client.post(url)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return  # the deadline has passed all the same, and that is what is reported

    async def body_of(self, response: httpx.Response) -> Body:
        """The whole body; `PageNotUnderstood` when it is longer than the settings want to read."""
        async with asyncio.timeout(self._settings.request_deadline_s):
            read = await self._bytes_of(response)
        return Body(url=clean(str(response.url)), text=clean(read.decode("utf-8", "replace")))

    async def _bytes_of(self, response: httpx.Response) -> bytes:
        most = self._settings.report_most_mb * MEGABYTE
        read = bytearray()
        async for piece in response.aiter_bytes(CHUNK):
            read += piece
            if len(read) > most:
                raise PageNotUnderstood(
                    f"{bare(str(response.url))} sent more than probe.job.report_most_mb = "
                    f"{self._settings.report_most_mb:g} MB"
                )
        return bytes(read)

    @asynccontextmanager
    async def _got(self, url: str) -> AsyncGenerator[httpx.Response]:
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                async with self._client.stream("GET", url) as response:
                    self._check(response)
                    limit.reschedule(None)  # what comes after the head has limits of its own
                    yield response
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(f"no address: {bare(url)!r}; see probe.job") from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise Stumble(Unreachable(f"{bare(url)} does not answer: {_why(error)}")) from error

    def _check_start(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in GONE:
            raise Unreachable(f"{bare(str(response.url))} answered HTTP {status}: no jobs are taken there")
        self._check(response)

    def _check(self, response: httpx.Response) -> None:
        status, where = response.status_code, bare(str(response.url))
        if status < ERRORS_FROM:
            return
        if status in WALLS:
            raise AccessDenied(f"{where} answered HTTP {status}: a login or quota wall")
        if status == TOO_MANY:
            raise Stumble(AccessDenied(f"{where} answered HTTP 429: a quota wall"), after_s=_asked_pause(response))
        if status in GONE:
            raise Stumble(AnswerIncomplete(f"the app lost the job: {where} answered HTTP {status}"))
        if status >= APP_ERRORS_FROM:
            raise Stumble(Unreachable(f"{where} answered HTTP {status}"), after_s=_asked_pause(response))
        raise PageNotUnderstood(
            f"{where} answered HTTP {status}: does it want another request than probe.job says?"
        )


def bare(url: str) -> str:
    """The address without user, query and fragment, as far as a message may show it."""
    return clean(re.sub(r"//[^/@]*@|[?#].*", lambda part: "//" if part[0].startswith("//") else "", url))[:300]


def _asked_pause(response: httpx.Response) -> float | None:
    asked = response.headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdigit() else None


def _why(error: Exception) -> str:
    return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
