"""Lend pages for questions, with the isolation that the target configures (V6).

A page is loaded only for its question. Once the cores are busy, preloading gains nothing: 100 questions on two
cores took 84 s (four at once) and 86 s (eight) with preloaded pages, and 73 s and 81 s with a new context each.
If cores are idle, the pace (`pace.py`) starts another question instead. Preloading hid the load time only with
one page at a time (1.42 instead of 1.89 times the time of the answers alone), and opens unused sessions at the
app.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from monitors.errors import BrowserLost, LoginWall, ProbeError, SessionEnded
from monitors.probes.browser.chromium import (
    Chromium,
    build_context_options,
    finish_within_deadline,
    run_within_deadline,
)
from monitors.probes.browser.discover import Chat, find_chat, open_chat, require_page_of_app
from monitors.probes.browser.inpage import call_in_page, load_page_script
from monitors.probes.browser.login import Login
from monitors.probes.browser.opening import ChatPath, find_element, is_page_gone
from monitors.probes.browser.proxy import GuardedProxy
from monitors.probes.browser.visit import Visit
from monitors.probes.settings import Isolation, ProbeSettings
from monitors.probes.target_guard import build_address_guard

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Dialog, ElementHandle, Page, Worker

VIEWPORT_WIDTH, VIEWPORT_HEIGHT = 1280, 900
MAX_WINDOWS = 50
"""Limit of popup windows and alert dialogs that one page may open before it is closed."""
OPENING_DEADLINE_S = 15.0
"""The limit for opening an empty page (0.2 s on an idle machine). After this time the browser counts as hung."""


@dataclass(frozen=True)
class Tab:
    """A page with its context. ``generation`` is the number of the session that opened it; see `Login`."""

    context: BrowserContext
    page: Page
    proxy: GuardedProxy
    visit: Visit
    generation: int = 0


class Pages:
    """Lend pages. With `Isolation.CONTEXT` each page is new; otherwise a page without failures is reused."""

    def __init__(
        self, chromium: Chromium, address: str, settings: ProbeSettings, login: Login | None = None
    ) -> None:
        self._chromium = chromium
        self._address = address
        self._settings = settings
        self._login = login
        self._guard = build_address_guard(address, settings, login.settings.url if login is not None else None)
        self._idle: list[Tab] = []
        self.way = ChatPath()

    @asynccontextmanager
    async def lend_tab(self) -> AsyncGenerator[Tab]:
        """Yield a page for one conversation. A page with a failure is never reused.

        Raises `LoginFailed` if the login fails.
        """
        if self._login is not None:
            await self._login.sign_in_if_needed(self.open_blank)
        tab = self._pop_idle_tab() or _limit_windows(await self._open_tab(self._login))
        served = False
        try:
            yield tab
            served = self._settings.isolation is not Isolation.CONTEXT
        finally:
            if served and (self._login is None or tab.generation == self._login.generation):
                self._idle.append(tab)
            else:
                await self._close(tab)

    @asynccontextmanager
    async def open_blank(self) -> AsyncGenerator[Page]:
        """Yield an empty page without the target's session, for signing in."""
        tab = await self._open_tab(None)
        try:
            yield tab.page
        finally:
            await self._close(tab)

    async def renew_session(self, tab: Tab, wall: LoginWall) -> bool:
        """Sign in again if needed; return whether a newer session than the one of ``tab`` exists.

        Returns false if the target has no login. Raises `LoginFailed`.
        """
        if self._login is None:
            return False
        if not await self._login.renew_session(tab.generation, self.open_blank):
            raise self._login.build_session_ended_error(wall) from wall
        return True

    async def check_session(self, tab: Tab, failure: ProbeError | None = None) -> None:
        """Check the session after a conversation. Raises `SessionEnded` (a `LoginFailed`) if it has ended."""
        if self._login is None or not await _has_password_field(tab.page):
            return
        wall = LoginWall(f"the page shows a login form instead of the chat: {failure or 'after the answer'}")
        await self.renew_session(tab, wall)
        raise SessionEnded(f"the session ended during the question: {wall}") from failure

    async def open_chat_on(self, tab: Tab) -> Chat:
        """Open the chat with an empty conversation. Raise `LoginWall` if the page is not signed in."""
        chat = await self._open_or_clear_chat(tab)
        if self._login is not None:
            wanted = self._login.settings.signed_in
            if wanted is not None and not await tab.page.locator(wanted).locator("visible=true").count():
                raise LoginWall(
                    f"login.signed_in = {wanted!r} matches nothing on the page, so the browser is not signed in"
                )
            self._login.mark_session_as_working()
        return chat

    async def _open_or_clear_chat(self, tab: Tab) -> Chat:
        if self._settings.isolation is Isolation.NEW_CHAT and tab.page.url != "about:blank":
            chat = await self.start_new_chat(tab)
            if chat is not None:
                return chat
        return await open_chat(tab.page, self._address, self._settings, tab.visit, self.way)

    async def start_new_chat(self, tab: Tab) -> Chat | None:
        """Press the page's "new chat" button and return the chat; ``None`` if the page has no such button."""
        button = await find_new_chat_button(tab.page)
        if button is None:
            return None
        await button.click(timeout=self._settings.page_deadline_s * 1000)
        deadline = monotonic() + self._settings.page_deadline_s
        return require_page_of_app(await find_chat(tab.page, self._settings, deadline, self.way), tab.visit)

    async def close(self) -> None:
        """Close the idle pages."""
        while self._idle:
            await self._close(self._idle.pop())

    async def _close(self, tab: Tab) -> None:
        tab.visit.close()
        await finish_within_deadline(tab.context.close(), self._settings.close_deadline_s)
        await tab.proxy.close()

    def _pop_idle_tab(self) -> Tab | None:
        while self._idle:
            tab = self._idle.pop()
            alive = tab.context.browser is not None and tab.context.browser.is_connected()
            if alive and not tab.page.is_closed():
                return tab
        return None

    async def _open_tab(self, login: Login | None) -> Tab:
        from playwright.async_api import Error  # already imported: a browser is used

        await self._chromium.close_retired_browsers()
        browser = await self._chromium.start_if_needed()
        deadline_s = min(OPENING_DEADLINE_S, self._settings.page_deadline_s)
        try:
            return await self._create_tab(browser, deadline_s, login)
        except BrowserLost:  # the browser hung
            self._chromium.retire_browser(browser)
            raise
        except Error as error:
            if not is_page_gone(error.message):
                raise
            self._chromium.retire_browser(browser)  # a browser appears to run although its driver is dead
            return await self._create_tab(await self._chromium.start_if_needed(), deadline_s, login)

    async def _create_tab(self, browser: Browser, deadline_s: float, login: Login | None) -> Tab:
        proxy = await GuardedProxy(self._guard).start()
        generation, options = (login.generation, login.build_context_options()) if login is not None else (0, {})
        try:
            opening = browser.new_context(
                viewport={"width": VIEWPORT_WIDTH, "height": VIEWPORT_HEIGHT},
                **build_context_options(proxy, service_workers=self._settings.service_workers),
                **options,
            )
            context = await run_within_deadline(deadline_s, opening, "opening a browser context")
        except BaseException:  # also on cancellation
            await proxy.close()
            raise
        try:
            await run_within_deadline(deadline_s, context.add_init_script(load_page_script()), "preparing a page")
            if login is not None:
                await run_within_deadline(deadline_s, login.add_cookies_and_headers(context), "preparing a page")
            page = await run_within_deadline(deadline_s, context.new_page(), "opening a page")
            return Tab(context, page, proxy, Visit(self._guard, proxy), generation)
        except BaseException:  # also on cancellation
            await finish_within_deadline(context.close(), self._settings.close_deadline_s)
            await proxy.close()
            raise


async def find_new_chat_button(page: Page) -> ElementHandle | None:
    """Return the button that starts a new conversation, in any frame; ``None`` if no frame has one."""
    for frame in page.frames:
        button = None if frame.is_detached() else await find_element(frame, "() => __lookout.startsAnew()")
        if button is not None:
            return button
    return None


def _limit_windows(tab: Tab) -> Tab:
    """Close a page's popups, and the page itself if it opens too many. Return the tab.

    Dialogs (`alert`) are dismissed, within the same limit.
    """
    left = MAX_WINDOWS

    async def count_and_close(answering: Callable[[], Awaitable[None]]) -> None:
        nonlocal left
        left -= 1
        await finish_within_deadline(tab.context.close() if left < 0 else answering(), OPENING_DEADLINE_S)

    async def on_page(page: Page) -> None:
        if page is not tab.page:
            await count_and_close(page.close)

    async def on_dialog(dialog: Dialog) -> None:
        await count_and_close(dialog.accept if dialog.type == "beforeunload" else dialog.dismiss)

    tab.context.on("page", on_page)
    tab.context.on("dialog", on_dialog)
    tab.context.on("serviceworker", _limit_worker_console)
    tab.page.on("worker", _limit_worker_console)
    return tab


async def _limit_worker_console(worker: Worker) -> None:
    """Limit a worker's console like a document's, but only after the worker's own script has started."""
    await finish_within_deadline(
        worker.evaluate(f"() => {{ {load_page_script('bounds.js')} }}"), OPENING_DEADLINE_S
    )


async def _has_password_field(page: Page) -> bool:
    """Whether any frame of the page has a password field; false if the page does not respond."""
    from playwright.async_api import Error  # already imported: a page is open

    for frame in page.frames:
        try:
            if (await call_in_page(frame, "walls"))["passwords"]:
                return True
        except (Error, BrowserLost):
            continue
    return False


def build_page_error(message: str) -> BrowserLost:
    """Build the error for a page that crashed, lost its browser, or could not be read or clicked."""
    first = message.splitlines()[0][:200]
    summary = "the browser lost the page" if is_page_gone(message) else "the browser could not control the page"
    return BrowserLost(f"{summary}: {first}")
