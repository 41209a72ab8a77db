"""Traffic off a page that lists past conversations, each on a page of its own.

The browser is lent: whoever has one opens a page and runs a script in it. The script is here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from monitors.errors import BrowserMissing, ConfigError, ProbeError, SourceUnavailable
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind
from monitors.sources.traffic.files import shown
from monitors.sources.traffic.items import LocatedItem, Window, conversations_of, time_of
from monitors.sources.traffic.settings import PageTraffic

_LONGEST: Final = timedelta(days=1)
"""A list may show when a conversation began: one that began so long before the window is not opened."""


class ScriptRunner(Protocol):
    """A browser, as far as reading needs it."""

    def evaluate(self, address: str, script: str, given: object) -> Awaitable[Any]:
        """Load a page and give what the script, a function of one argument, returns there. Raises `ProbeError`."""
        ...


class _Link(NamedTuple):
    url: str
    id: str
    time: str | None


class PageTrafficSource:
    """A `TrafficSource` over pages. ``open_browser`` lends a browser for one reading."""

    def __init__(
        self, settings: PageTraffic, open_browser: Callable[[], AbstractAsyncContextManager[ScriptRunner]]
    ) -> None:
        self._settings = settings
        self._open_browser = open_browser
        self.name = shown(settings.url)

    async def read(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """See `TrafficSource.read`. A conversation whose page does not open is reported; the others are read."""
        window, opened, failed = Window(since, until), 0, 0
        async with self._open_browser() as browser:
            async for link in self._links(browser):
                if not _may_lie_in(window, link):
                    continue
                item = await self._item(browser, link)
                opened, failed = opened + 1, failed + isinstance(item, SourceWarning)
                for one in conversations_of([item], self._settings.fields, window):
                    yield one
        if opened and failed == opened:
            raise SourceUnavailable(f"{self.name}: none of its {opened:,} conversations opened")

    async def _links(self, browser: ScriptRunner) -> AsyncGenerator[_Link]:
        """Links to conversations on every page of the list, each once."""
        address, asked, seen = self._settings.url, set[str](), set[str]()
        for _ in range(self._settings.most_pages):
            asked.add(address)
            listed = await self._listed(browser, address)
            links = [_Link(**link) for link in listed["links"]]
            if not links and not seen:
                raise SourceUnavailable(
                    f"{self.name}: no link to a conversation was found; if there are any, name them in "
                    "traffic.selectors.link"
                )
            for link in links:
                if link.url not in seen:
                    seen.add(link.url)
                    yield link
            following = cast("str | None", listed["next"])
            if following is None or following in asked:
                return
            if not self._is_here(following):
                raise SourceUnavailable(f"{self.name}: its next page is at another host, which is not configured")
            address = following
        raise ConfigError(f"traffic.most_pages = {self._settings.most_pages:,}: {self.name} has more pages")

    async def _listed(self, browser: ScriptRunner, address: str) -> dict[str, Any]:
        try:
            return await browser.evaluate(address, script(), self._given("list"))
        except ProbeError as error:
            raise SourceUnavailable(f"{shown(address)}: {error}") from None

    async def _item(self, browser: ScriptRunner, link: _Link) -> LocatedItem | SourceWarning:
        place = shown(link.url)
        if not self._is_here(link.url):
            return _page_issue(place, "lies on another host")
        try:
            read = await browser.evaluate(link.url, script(), self._given("conversation"))
        except BrowserMissing as error:
            raise SourceUnavailable(str(error)) from None
        except ProbeError as error:
            return _page_issue(place, str(error))
        known = {"id": read["id"] or link.id, "messages": read["messages"]}
        ended = read["completed_at"] or _last_time(read["messages"]) or link.time
        return LocatedItem(place, known | ({"completed_at": ended} if ended else {}))

    def _given(self, part: str) -> dict[str, object]:
        deadline_ms = self._settings.page_deadline_s * 1000
        return {"part": part, "selectors": self._settings.selectors.model_dump(), "deadlineMs": deadline_ms}

    def _is_here(self, url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(self._settings.url).netloc


@cache
def script() -> str:
    """The JavaScript that reads a page."""
    return Path(__file__).with_name("past_conversations.js").read_text(encoding="utf-8")


def _may_lie_in(window: Window, link: _Link) -> bool:
    listed = time_of(link.time)
    return listed is None or window.since - _LONGEST <= listed < window.until


def _last_time(messages: list[dict[str, Any]]) -> str | None:
    return next((message["time"] for message in reversed(messages) if message["time"]), None)


def _page_issue(place: str, detail: str) -> SourceWarning:
    return SourceWarning(kind=SourceWarningKind.PAGE_UNREADABLE, place=place, detail=detail)
