"""Pages for questions, as far apart from each other as the target wants (V6).

None is loaded ahead of its question. Once the cores are busy that gains nothing: 100 questions on two cores
took a pool of pages loaded ahead 84 s at four at once and 86 s at eight, a new context for each 73 s and 81
s. Where the pace (`pace.py`) finds cores idle, it begins another question with them. Loading ahead hid the
load only with one page at a time (1.42 instead of 1.89 times the time of the bare answers), at the price of
sessions at the app that nobody asks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from monitors.errors import BrowserLost
from monitors.probes.chromium import Chromium, closed, within
from monitors.probes.dialogs import element, lost
from monitors.probes.discover import Chat, find_chat, open_chat
from monitors.probes.inpage import script
from monitors.probes.settings import Isolation, ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

VIEWPORT_WIDTH, VIEWPORT_HEIGHT = 1280, 900
OPENING_DEADLINE_S = 15.0
"""For an empty page, which takes 0.2 s on a quiet machine: later the browser itself is taken for hung."""


@dataclass(frozen=True)
class Tab:
    """A page with its context."""

    context: BrowserContext
    page: Page


class Pages:
    """Lends pages. With `Isolation.CONTEXT` each is new; otherwise a page that served well is lent again."""

    def __init__(self, chromium: Chromium, address: str, settings: ProbeSettings) -> None:
        self._chromium = chromium
        self._address = address
        self._settings = settings
        self._idle: list[Tab] = []

    @asynccontextmanager
    async def tab(self) -> AsyncGenerator[Tab]:
        """A page for one conversation. One on which something failed is never lent again."""
        tab = self._reusable() or await self._new()
        served = False
        try:
            yield tab
            served = self._settings.isolation is not Isolation.CONTEXT
        finally:
            if served:
                self._idle.append(tab)
            else:
                await closed(tab.context.close(), self._settings.close_deadline_s)

    async def chat_on(self, tab: Tab) -> Chat:
        """The chat, with an empty conversation."""
        if self._settings.isolation is Isolation.NEW_CHAT and tab.page.url != "about:blank":
            chat = await self._cleared(tab.page)
            if chat is not None:
                return chat
        return await open_chat(tab.page, self._address, self._settings)

    async def close(self) -> None:
        """Closes the pages that wait."""
        while self._idle:
            await closed(self._idle.pop().context.close(), self._settings.close_deadline_s)

    def _reusable(self) -> Tab | None:
        while self._idle:
            tab = self._idle.pop()
            if not tab.page.is_closed() and tab.context.browser is not None and tab.context.browser.is_connected():
                return tab
        return None

    async def _new(self) -> Tab:
        await self._chromium.tidy()
        browser = await self._chromium.browser()
        deadline_s = min(OPENING_DEADLINE_S, self._settings.page_deadline_s)
        try:
            return await self._opened(browser, deadline_s)
        except BrowserLost:  # it hung
            self._chromium.retire(browser)
            raise

    async def _opened(self, browser: Browser, deadline_s: float) -> Tab:
        opening = browser.new_context(viewport={"width": VIEWPORT_WIDTH, "height": VIEWPORT_HEIGHT})
        context = await within(deadline_s, opening, "opening a browser context")
        try:
            await within(deadline_s, context.add_init_script(script()), "preparing a page")
            return Tab(context, await within(deadline_s, context.new_page(), "opening a page"))
        except BaseException:
            await closed(context.close(), self._settings.close_deadline_s)
            raise

    async def _cleared(self, page: Page) -> Chat | None:
        """The same page after its "new chat" button; ``None`` when it has none that works."""
        frames = [frame for frame in page.frames if not frame.is_detached()]
        for frame in frames:
            button = await element(frame, "() => __lookout.opener(true)")
            if button is not None:
                await button.click(timeout=self._settings.page_deadline_s * 1000)
                return await find_chat(page, self._settings, monotonic() + self._settings.page_deadline_s)
        return None


def lost_page(message: str) -> BrowserLost:
    """The error for a page that crashed, whose browser died, or that the browser could not read or press."""
    first = message.splitlines()[0][:200]
    what = "the browser lost the page" if lost(message) else "the page could not be driven"
    return BrowserLost(f"{what}: {first}")
