"""Read conversations from a web page with links to conversations. Each conversation has a separate page.

The caller provides the browser, which runs the script of this module in the pages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

import httpx

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, BrowserMissing, ConfigError, ProbeError, SourceUnavailable
from monitors.http_client import MEGABYTE_BYTES, GuardedClient, describe_http_error
from monitors.plural import plural
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind, UnusableReason
from monitors.sources.traffic.files import strip_secrets
from monitors.sources.traffic.items import LocatedItem, Window, parse_conversations
from monitors.sources.traffic.settings import PageTraffic
from monitors.sources.traffic.times import parse_time

_MISSING_STATUSES: Final = (404, 410)
_MAX_CONVERSATION_LENGTH: Final = timedelta(days=1)
"""Assumed maximum duration of a conversation.

If the list shows that a conversation began longer than this before the window, the page of the conversation is not
opened.
"""


class ScriptRunner(Protocol):
    """A browser that can run a script on a page."""

    def evaluate(self, address: str, script: str, argument: object, /) -> Awaitable[Any]:
        """Load a page, call the script with the argument, and return the result. Raises `ProbeError`."""
        ...


class _Link(NamedTuple):
    url: str
    id: str
    time: str | None


class PageTrafficSource:
    """A `TrafficSource` that reads web pages.

    ``open_browser`` opens a browser each time the source is read.
    """

    def __init__(
        self, settings: PageTraffic, open_browser: Callable[[], AbstractAsyncContextManager[ScriptRunner]]
    ) -> None:
        self._settings = settings
        self._open_browser = open_browser
        self.name = strip_secrets(settings.url)

    async def read_conversations(
        self, since: datetime, until: datetime
    ) -> AsyncGenerator[Conversation | SourceWarning]:
        """See `TrafficSource.read_conversations`.

        If the page of a conversation cannot be opened, a warning reports this, and all other pages are read.
        """
        window, opened, failed = Window(since, until), 0, 0
        async with self._open_browser() as browser:
            async for link in self._read_links(browser):
                if not _may_be_in_window(window, link):
                    continue
                item = await self._read_conversation_page(browser, link)
                opened, failed = opened + 1, failed + isinstance(item, SourceWarning)
                for record in parse_conversations([item], self._settings.fields, window):
                    yield record
        if opened and failed == opened:
            raise SourceUnavailable(f"{self.name}: 0 of {plural(opened, 'conversation')} opened")

    async def check_readable(self, now: datetime) -> None:
        """See `TrafficSource.check_readable`.

        The method requests the page without a browser and cannot run the page's scripts. Therefore, it reports only
        a page that is missing or has a server error. It does not report HTTP status 403 and 429, because some pages
        refuse a program and accept a browser.
        """
        del now
        url, deadline_s = self._settings.url, self._settings.page_deadline_s
        guard = AddressGuard((url,), private_network=self._settings.private_network)
        try:
            async with (
                GuardedClient(guard, deadline_s=deadline_s, max_bytes=MEGABYTE_BYTES) as client,
                client.stream("GET", url) as response,
            ):
                is_page_missing = response.is_server_error or response.status_code in _MISSING_STATUSES
        except AccessDenied as error:
            raise SourceUnavailable(f"{self.name}: {error}") from None
        except httpx.HTTPError as error:
            raise SourceUnavailable(f"{self.name}: {describe_http_error(error)}") from None
        if is_page_missing:
            raise SourceUnavailable(f"{self.name}: answered HTTP {response.status_code}")

    async def _read_links(self, browser: ScriptRunner) -> AsyncGenerator[_Link]:
        """Yield the links to conversations on all list pages, each link once."""
        address, requested, yielded_urls = self._settings.url, set[str](), set[str]()
        for _ in range(self._settings.most_pages):
            requested.add(address)
            list_page = await self._read_list_page(browser, address)
            links = [_Link(**link) for link in list_page["links"]]
            if not links and not yielded_urls:
                raise SourceUnavailable(
                    f"{self.name}: the page shows no link to a conversation. If the page has such links, set "
                    "traffic.selectors.link"
                )
            for link in links:
                if link.url not in yielded_urls:
                    yielded_urls.add(link.url)
                    yield link
            next_address = cast("str | None", list_page["next"])
            if next_address is None or next_address in requested:
                return
            if not self._is_same_host(next_address):
                raise SourceUnavailable(f"{self.name}: the next page is not on the host of this source's `url`")
            address = next_address
        raise ConfigError(
            f"traffic.most_pages = {self._settings.most_pages:,}: {self.name} has more pages. Raise this limit"
        )

    async def _read_list_page(self, browser: ScriptRunner, address: str) -> dict[str, Any]:
        try:
            return await browser.evaluate(address, load_page_script(), self._build_script_argument("list"))
        except ProbeError as error:
            raise SourceUnavailable(f"{strip_secrets(address)}: {error}") from None

    async def _read_conversation_page(self, browser: ScriptRunner, link: _Link) -> LocatedItem | SourceWarning:
        place = strip_secrets(link.url)
        if not self._is_same_host(link.url):
            return _build_page_warning(place, "the page is not on the host of this source's `url`")
        try:
            page = await browser.evaluate(link.url, load_page_script(), self._build_script_argument("conversation"))
        except BrowserMissing as error:
            raise SourceUnavailable(str(error)) from None
        except ProbeError as error:
            return _build_page_warning(place, str(error))
        fields = {"id": page["id"] or link.id, "messages": page["messages"]}
        ended = page["completed_at"] or _find_last_time(page["messages"]) or link.time
        return LocatedItem(place, fields | ({"completed_at": ended} if ended else {}))

    def _build_script_argument(self, part: str) -> dict[str, object]:
        deadline_ms = self._settings.page_deadline_s * 1000
        return {"part": part, "selectors": self._settings.selectors.model_dump(), "deadlineMs": deadline_ms}

    def _is_same_host(self, url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(self._settings.url).netloc


@cache
def load_page_script() -> str:
    """Return the JavaScript that reads a page."""
    return Path(__file__).with_name("past_conversations.js").read_text(encoding="utf-8")


def _may_be_in_window(window: Window, link: _Link) -> bool:
    listed_at = parse_time(link.time)
    return listed_at is None or window.since - _MAX_CONVERSATION_LENGTH <= listed_at < window.until


def _find_last_time(messages: list[dict[str, Any]]) -> str | None:
    return next((message["time"] for message in reversed(messages) if message["time"]), None)


def _build_page_warning(place: str, detail: str) -> SourceWarning:
    return SourceWarning(
        kind=SourceWarningKind.PAGE_UNREADABLE, place=place, detail=detail, reason=UnusableReason.BROKEN
    )
