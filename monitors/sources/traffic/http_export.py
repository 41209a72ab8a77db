"""Read conversations from a paginated JSON export over HTTP.

Retries, time and size are limited. Pages are requested only from the host in the settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, Self, cast

import httpx

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, ConfigError, SourceUnavailable
from monitors.http_client import MAX_REDIRECTS, MEGABYTE_BYTES, BodyTooLarge, GuardedClient
from monitors.json_path import collect_values
from monitors.plural import plural
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind
from monitors.request_headers import NO_HEADERS, RequestHeaders
from monitors.retry import TryAgain, parse_retry_after_s, retry_with_pauses
from monitors.sources.traffic.items import (
    LocatedItem,
    Visits,
    Window,
    looks_like_html,
    parse_conversations,
    parse_json,
)
from monitors.sources.traffic.settings import HttpTraffic, TimeFormat
from monitors.sources.traffic.source import RECENT

_RETRY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""HTTP statuses after which a request is retried (RFC 9110, RFC 6585). Common proxies send 520 to 524 and 529."""
_REFUSED_STATUSES: Final = frozenset({401, 403})


class ExportPage(NamedTuple):
    """One page of an export: its JSON, its headers in lower case, and a digest to detect repeated pages."""

    document: Any
    headers: Mapping[str, str]
    sha256: str


class ExportClient:
    """Requests the pages of an export. Messages contain neither the token nor the parameters of an address."""

    def __init__(
        self,
        client: GuardedClient,
        settings: HttpTraffic,
        headers: RequestHeaders,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._client = client
        self._settings = settings
        self._headers = headers
        self._sleep = sleep

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        settings: HttpTraffic,
        headers: RequestHeaders,
        sleep: Callable[[float], Awaitable[None]],
        guard: AddressGuard,
    ) -> AsyncGenerator[Self]:
        """Open a client for the ``with`` block.

        The client follows redirects itself, and checks their addresses with `resolve_link_on_same_host`.
        """
        async with GuardedClient(
            guard,
            deadline_s=settings.request_deadline_s,
            max_bytes=int(settings.page_most_mb * MEGABYTE_BYTES),
            headers=headers,
            addresses=[settings.url, re.sub(r"^http:", "https:", settings.url)],
            plain_headers={"Accept": "application/json"},
            max_redirects=0,
        ) as client:
            yield cls(client, settings, headers, sleep)

    async def fetch_page(self, url: str) -> ExportPage:
        """Return a page. Raises `SourceUnavailable` if all attempts fail."""
        request, tries = partial(self._fetch_within_deadline, url), self._settings.attempts
        max_pause_s = self._settings.retry_most_s
        try:
            return await retry_with_pauses(
                request, tries=tries, first_pause_s=1.0, max_pause_s=max_pause_s, sleep=self._sleep
            )
        except TryAgain as last:
            raise SourceUnavailable(
                f"{strip_url_secrets(url)}: {last}, after {plural(tries, 'try', 'tries')}"
            ) from None

    async def _fetch_within_deadline(self, url: str) -> ExportPage:
        deadline_s = self._settings.request_deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                return await self._fetch_once(url)
        except AccessDenied as error:
            raise SourceUnavailable(f"{strip_url_secrets(url)}: {error}") from None
        except BodyTooLarge:
            raise SourceUnavailable(
                f"{strip_url_secrets(url)}: a page is larger than {self._settings.page_most_mb:g} MB. Request "
                "fewer items (traffic.size_parameter, traffic.size) or raise traffic.page_most_mb"
            ) from None
        except (TimeoutError, httpx.TimeoutException):
            raise TryAgain(f"no complete answer within {deadline_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise TryAgain(f"cannot be reached ({type(error).__name__})") from None

    async def _fetch_once(self, url: str) -> ExportPage:
        for _ in range(MAX_REDIRECTS):
            async with self._client.stream("GET", url) as response:
                if response.has_redirect_location:
                    url = resolve_link_on_same_host(url, response.headers["location"], "redirects to")
                    continue
                self._check_status(url, response)
                body = await response.aread()
                document = await self._parse_document(body, response)
                return ExportPage(document, dict(response.headers), hashlib.sha256(body).hexdigest())
        raise SourceUnavailable(f"{strip_url_secrets(url)}: too many redirects")

    def _check_status(self, url: str, response: httpx.Response) -> None:
        status = response.status_code
        if status in _RETRY_STATUSES:
            raise TryAgain(f"answered HTTP {status}", parse_retry_after_s(response.headers))
        if status in _REFUSED_STATUSES:
            raise SourceUnavailable(f"{strip_url_secrets(url)}: answered {self._headers.explain_refusal(status)}")
        if not response.is_success:
            raise SourceUnavailable(f"{strip_url_secrets(url)}: answered HTTP {status}")

    async def _parse_document(self, body: bytes, response: httpx.Response) -> Any:
        try:
            return await asyncio.to_thread(_parse_body, body)  # a large page takes a while
        except ValueError as error:
            kind = response.headers.get("content-type", "").split(";")[0].strip() or "no type"
            hint = " (possibly a login page)" if looks_like_html(body) else f": {error}"
            raise TryAgain(f"answered {kind[:60]} instead of JSON{hint}") from None


def _parse_body(body: bytes) -> Any:
    """Return the parsed JSON.

    Bytes that are not UTF-8 are replaced with U+FFFD, and the remaining bytes are read.
    """
    try:
        return parse_json(body)
    except ValueError:
        return parse_json(body.decode("utf-8", "replace").encode())


def resolve_link_on_same_host(url: str, link: str, action: str) -> str:
    """Return the absolute address of a link. ``action`` states in errors where the link comes from.

    Raises `SourceUnavailable` if the link leads to another host, because the token must not be sent to another
    host. A change from http to https on the same host is allowed.
    """
    base = httpx.URL(url)
    try:
        target = base.join(link)
    except (httpx.InvalidURL, ValueError):
        raise SourceUnavailable(f"{strip_url_secrets(url)}: {action} an invalid address") from None
    is_same_origin = target.host == base.host and target.scheme == base.scheme and target.port == base.port
    is_upgraded = target.host == base.host and (base.scheme, target.scheme) == ("http", "https")
    if not is_same_origin and not is_upgraded:
        origin = f"{target.scheme}://{target.netloc.decode('ascii')}"
        raise SourceUnavailable(
            f"{strip_url_secrets(url)}: {action} another server ({origin}). Lookout sends the token only to the "
            "server in `url`. If the other server is correct, set its address in `url`"
        )
    return str(target)


def strip_url_secrets(url: str) -> str:
    """Return the address without the parts that may be secret: parameters, user and password."""
    return str(httpx.URL(url).copy_with(query=None, fragment=None, username=None, password=None))


_LINK: Final = re.compile(r"<([^<>]*)>\s*;[^,<]*?\brel\s*=\s*\"?next\b\"?", re.IGNORECASE)
"""Matches the link to the next page in a Link header (RFC 8288)."""
_HAS_MORE_PATHS: Final = ("has_more", "hasMore", "meta.has_more", "paging.has_more")


_PAGING_HINT: Final = "Set page_parameter, next_link or cursor of this source"
_COMMON_PAGE_SIZES: Final = frozenset({10, 20, 25, 30, 50, 100, 200, 250, 500, 1_000, 2_000, 5_000, 10_000})
"""Common page sizes. If the number of items on a page is one of these sizes, more pages may follow."""
_TOTAL_PATHS: Final = ("total", "total_count", "totalCount", "meta.total", "paging.total", "pagination.total")


def build_first_url(settings: HttpTraffic, window: Window) -> str:
    """Return the address of the first page, with parameters for the period."""
    parameters: dict[str, str] = {}
    for parameter, time in ((settings.since_parameter, window.since), (settings.until_parameter, window.until)):
        if parameter is not None:
            parameters[parameter] = _format_time(time, settings.time_format)
    if settings.size_parameter is not None:
        parameters[settings.size_parameter] = str(settings.size)
    if settings.page_parameter is not None:
        parameters[settings.page_parameter] = str(settings.first_page)
    return set_parameters(settings.url, parameters)


def find_next_url(settings: HttpTraffic, url: str, page: ExportPage, number: int) -> str | None:
    """Return the address of the next page, or ``None`` after the last page.

    ``page`` was read from ``url``, and ``number`` is the position of this page, counted from 0. Raises
    `SourceUnavailable` if the next page is on another host.
    """
    if settings.page_parameter is not None:
        return set_parameters(url, {settings.page_parameter: str(settings.first_page + number + 1)})
    link = _LINK.search(page.headers.get("link", ""))
    if link is not None:
        return resolve_link_on_same_host(url, link[1], "the next page is at")
    if any(more is False for path in _HAS_MORE_PATHS for more in collect_values(page.document, path)):
        return None
    return _find_next_link(settings, url, page.document)


def _find_next_link(settings: HttpTraffic, url: str, document: Any) -> str | None:
    for path in settings.next_link:
        for next_page in collect_values(document, path):
            if isinstance(next_page, str) and next_page.startswith(("http://", "https://", "/", "?")):
                return resolve_link_on_same_host(url, next_page, "the next page is at")
    for path in settings.cursor:
        for next_page in collect_values(document, path):
            if (isinstance(next_page, str) and next_page) or (
                isinstance(next_page, int) and not isinstance(next_page, bool)
            ):
                return set_parameters(url, {settings.cursor_parameter: str(next_page)})
    return None


def explain_missing_pages(settings: HttpTraffic, page: ExportPage, items: int) -> str | None:
    """Return why more pages may follow, although only one page was found.

    Return ``None`` if ``page`` is probably the last page. ``items`` is the number of items on the page.
    """
    document = page.document
    if settings.page_parameter is not None or page.headers.get("link"):
        return None
    says_more = any(value is True for path in _HAS_MORE_PATHS for value in collect_values(document, path))
    total = next(
        (value for path in _TOTAL_PATHS for value in collect_values(document, path) if _is_count(value)), None
    )
    if says_more or (total is not None and total > items):
        return f"the page has {plural(items, 'item')} and reports further items. {_PAGING_HINT}"
    has_paging_keys = any(
        collect_values(document, path) for path in (*_HAS_MORE_PATHS, *settings.next_link, *settings.cursor)
    )
    is_full = items == settings.size if settings.size_parameter is not None else items in _COMMON_PAGE_SIZES
    if has_paging_keys or total is not None or not is_full:
        return None
    count = f"{plural(items, 'item')} (a full page)"
    return f"the page has {count} and no link to a next page, but there may be more items. {_PAGING_HINT}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def find_items(document: Any, settings: HttpTraffic, url: str) -> list[Any]:
    """Return the items of a page. Raises `SourceUnavailable` if the page contains no list of items."""
    for path in settings.items:
        for value in collect_values(document, path):
            if isinstance(value, list):
                return cast("list[Any]", value)
    keys = list(cast("dict[str, Any]", document)) if isinstance(document, dict) else []
    shown_keys = ", ".join(key for key in keys[:20] if re.fullmatch(r"[A-Za-z_]{1,30}", key)) or "not shown"
    raise SourceUnavailable(
        f"{strip_url_secrets(url)}: no list of items at traffic.items = {', '.join(settings.items)}. "
        f"The keys of the page are {shown_keys}"
    )


def set_parameters(url: str, parameters: Mapping[str, str]) -> str:
    """Return the address with these parameters set."""
    return str(httpx.URL(url).copy_merge_params(dict(parameters))) if parameters else url


def _format_time(time: datetime, time_format: TimeFormat) -> str:
    match time_format:
        case TimeFormat.ISO:
            return time.isoformat().replace("+00:00", "Z")
        case TimeFormat.EPOCH_S:
            return str(int(time.timestamp()))
        case TimeFormat.EPOCH_MS:
            return str(int(time.timestamp() * 1000))


class HttpTrafficSource:
    """A `TrafficSource` that reads an export. ``headers`` are sent only to the host of the export."""

    def __init__(
        self,
        settings: HttpTraffic,
        *,
        headers: RequestHeaders = NO_HEADERS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        guard: AddressGuard | None = None,
    ) -> None:
        self._settings = settings
        self._guard = guard or AddressGuard([settings.url])
        self._headers = headers
        self._sleep = sleep
        self.name = strip_url_secrets(settings.url)

    async def read_conversations(
        self, since: datetime, until: datetime
    ) -> AsyncGenerator[Conversation | SourceWarning]:
        """See `TrafficSource.read_conversations`.

        A page is requested only when the caller requests more conversations.
        """
        window = Window(since, until)
        async with (
            ExportClient.connect(self._settings, self._headers, self._sleep, self._guard) as client,
            aclosing(self._read_pages(client, window)) as pages,
        ):
            visits = Visits(self._settings.fields, window)
            async for number, items, doubt in pages:
                placed = _locate_items(items, number)
                for record in parse_conversations(placed, self._settings.fields, window, visits):
                    yield record
                if doubt is not None:
                    yield SourceWarning(kind=SourceWarningKind.PAGES_MAY_FOLLOW, place=self.name, detail=doubt)
            for located in visits.build():
                yield located.record

    async def check_readable(self, now: datetime) -> None:
        """See `TrafficSource.check_readable`."""
        url = build_first_url(self._settings, Window(now - RECENT, now))
        async with ExportClient.connect(self._settings, self._headers, self._sleep, self._guard) as client:
            page = await client.fetch_page(url)
        find_items(page.document, self._settings, url)

    async def _read_pages(
        self, client: ExportClient, window: Window
    ) -> AsyncGenerator[tuple[int, list[Any], str | None]]:
        """Yield the number and the items of each page, with ``None`` as the third value.

        If only one page was found, yield its number once more, without items. The third value is then the reason
        why more pages may follow, or ``None`` if this page is probably the last one.
        """
        url, requested, last_sha256 = build_first_url(self._settings, window), set[str](), ""
        for number in range(self._settings.most_pages):
            requested.add(url)
            page = await client.fetch_page(url)
            items = find_items(page.document, self._settings, url)
            if self._settings.page_parameter is not None and (not items or page.sha256 == last_sha256):
                return  # after the last page, servers send an empty page or the last page again
            yield number + 1, items, None
            next_page_url = find_next_url(self._settings, url, page, number)
            if next_page_url is None and number == 0:
                yield number + 1, [], explain_missing_pages(self._settings, page, len(items))
            if next_page_url is None or (next_page_url in requested and not items):
                return
            if next_page_url in requested:
                raise SourceUnavailable(f"{self.name}: page {number + 1} links to an earlier page as its next page")
            url, last_sha256 = next_page_url, page.sha256
        raise ConfigError(
            f"traffic.most_pages = {self._settings.most_pages:,}: {self.name} has more pages, which Lookout did "
            "not read. Raise this limit, or restrict the time of the export (since_parameter, until_parameter)"
        )


def _locate_items(items: list[Any], number: int) -> Iterator[LocatedItem]:
    return (LocatedItem(f"page {number}, item {index}", item) for index, item in enumerate(items, start=1))
