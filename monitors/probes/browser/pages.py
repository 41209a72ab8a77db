"""Open pages for questions and close them. The setting `isolation` decides whether a page is used again.

Pages are not loaded in advance, because that would save no time if the cores are busy, and would open unused
sessions. With 4 parallel questions on 2 cores, 100 questions took 84 s with preloaded pages and 73 s without
preloaded pages.
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
from monitors.probes.browser.discover import Chat, find_or_open_chat, open_chat, require_page_of_app
from monitors.probes.browser.inpage import call_in_page, load_page_script
from monitors.probes.browser.login import Login
from monitors.probes.browser.opening import ChatPath, find_element_by_javascript, is_page_gone
from monitors.probes.browser.proxy import GuardedProxy
from monitors.probes.browser.visit import Visit
from monitors.probes.settings import Isolation, ProbeSettings
from monitors.probes.target_guard import build_address_guard

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Dialog, ElementHandle, Page, Worker

VIEWPORT_WIDTH, VIEWPORT_HEIGHT = 1280, 900
MAX_WINDOWS = 50
"""Maximum number of popup windows and dialogs of one page.

If a page opens more windows or dialogs, the page is closed.
"""
OPENING_DEADLINE_S = 15.0
"""Maximum seconds to open an empty page (0.2 s on an idle machine). After that, the browser counts as not
responding.
"""


@dataclass(frozen=True)
class Tab:
    """An open page with its browser context.

    ``generation`` is the number of the login session that the page uses (see `Login`).
    """

    context: BrowserContext
    page: Page
    proxy: GuardedProxy
    visit: Visit
    generation: int = 0


class Pages:
    """The open pages of one target.

    With `Isolation.CONTEXT`, each question gets a new page. Otherwise, a page is used again unless a question
    failed on it.
    """

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
    async def open_tab(self) -> AsyncGenerator[Tab]:
        """Yield a page for one conversation. Raises `LoginFailed` if the login fails."""
        if self._login is not None:
            await self._login.sign_in_if_needed(self.open_tab_without_session)
        tab = self._take_idle_tab() or _auto_close_windows_and_dialogs(
            await self._create_tab_replacing_dead_browser(self._login)
        )
        served = False
        try:
            yield tab
            served = self._settings.isolation is not Isolation.CONTEXT
        finally:
            if served and (self._login is None or tab.generation == self._login.generation):
                self._idle.append(tab)
            else:
                await self._close_tab(tab)

    @asynccontextmanager
    async def open_tab_without_session(self) -> AsyncGenerator[Page]:
        """Yield an empty page without a session, on which Lookout or a person can sign in."""
        tab = await self._create_tab_replacing_dead_browser(None)
        try:
            yield tab.page
        finally:
            await self._close_tab(tab)

    async def renew_session(self, tab: Tab, wall: LoginWall) -> bool:
        """Sign in again if ``tab`` has the newest session. Raises `LoginFailed`.

        Return True if a newer session exists now, and False if the target has no login.
        """
        if self._login is None:
            return False
        if not await self._login.renew_session(tab.generation, self.open_tab_without_session):
            raise self._login.build_session_ended_error(wall) from wall
        return True

    async def renew_ended_session_and_raise(self, tab: Tab, failure: ProbeError | None = None) -> None:
        """If the page shows a login form after a conversation, renew the session and raise `SessionEnded`.

        ``failure`` is the error with which the conversation ended, or ``None``.
        """
        if self._login is None or not await _has_password_field(tab.page):
            return
        reason = f" ({failure})" if failure is not None else ""
        wall = LoginWall(f"the page shows a login form instead of the chat{reason}")
        await self.renew_session(tab, wall)
        raise SessionEnded(f"the session ended while Lookout asked the question: {wall}") from failure

    async def open_chat_in_tab(self, tab: Tab) -> Chat:
        """Open the chat with an empty conversation. Raises `LoginWall` if the browser is not signed in."""
        chat = await self._start_chat_or_load_page(tab)
        if self._login is not None:
            wanted = self._login.settings.signed_in
            if wanted is not None and not await tab.page.locator(wanted).locator("visible=true").count():
                raise LoginWall(
                    f"the browser is not signed in: login.signed_in = {wanted!r} matches nothing on the page"
                )
            self._login.mark_session_as_working()
        return chat

    async def _start_chat_or_load_page(self, tab: Tab) -> Chat:
        if self._settings.isolation is Isolation.NEW_CHAT and tab.page.url != "about:blank":
            chat = await self.start_new_chat(tab)
            if chat is not None:
                return chat
        return await open_chat(tab.page, self._address, self._settings, tab.visit, self.way)

    async def start_new_chat(self, tab: Tab) -> Chat | None:
        """Click the "new chat" button of the page and return the chat, or ``None`` if there is no such button."""
        button = await find_new_chat_button(tab.page)
        if button is None:
            return None
        await button.click(timeout=self._settings.page_deadline_s * 1000)
        deadline = monotonic() + self._settings.page_deadline_s
        return require_page_of_app(await find_or_open_chat(tab.page, self._settings, deadline, self.way), tab.visit)

    async def close(self) -> None:
        """Close all pages that no conversation uses."""
        while self._idle:
            await self._close_tab(self._idle.pop())

    async def _close_tab(self, tab: Tab) -> None:
        tab.visit.close()
        await finish_within_deadline(tab.context.close(), self._settings.close_deadline_s)
        await tab.proxy.close()

    def _take_idle_tab(self) -> Tab | None:
        while self._idle:
            tab = self._idle.pop()
            alive = tab.context.browser is not None and tab.context.browser.is_connected()
            if alive and not tab.page.is_closed():
                return tab
        return None

    async def _create_tab_replacing_dead_browser(self, login: Login | None) -> Tab:
        from playwright.async_api import Error  # Playwright is already imported

        await self._chromium.close_idle_retired_browsers()
        browser = await self._chromium.start_if_needed()
        deadline_s = min(OPENING_DEADLINE_S, self._settings.page_deadline_s)
        try:
            return await self._create_tab(browser, deadline_s, login)
        except BrowserLost:  # the browser does not respond
            self._chromium.retire_browser(browser)
            raise
        except Error as error:
            if not is_page_gone(error.message):
                raise
            self._chromium.retire_browser(browser)  # it looks as if it runs, but cannot be controlled
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
    """Return the button that starts a new conversation, in any frame, or ``None`` if no frame has such a button."""
    for frame in page.frames:
        button = (
            None if frame.is_detached() else await find_element_by_javascript(frame, "() => __lookout.startsAnew()")
        )
        if button is not None:
            return button
    return None


def _auto_close_windows_and_dialogs(tab: Tab) -> Tab:
    """Automatically close all popup windows and dialogs that the page opens, and return ``tab``.

    If the page opens more than `MAX_WINDOWS` of them, the page itself is closed.
    """
    left = MAX_WINDOWS

    async def close_and_count(answering: Callable[[], Awaitable[None]]) -> None:
        nonlocal left
        left -= 1
        await finish_within_deadline(tab.context.close() if left < 0 else answering(), OPENING_DEADLINE_S)

    async def close_if_extra_page(page: Page) -> None:
        if page is not tab.page:
            await close_and_count(page.close)

    async def dismiss_or_accept_dialog(dialog: Dialog) -> None:
        await close_and_count(dialog.accept if dialog.type == "beforeunload" else dialog.dismiss)

    tab.context.on("page", close_if_extra_page)
    tab.context.on("dialog", dismiss_or_accept_dialog)
    tab.context.on("serviceworker", _limit_worker_console)
    tab.page.on("worker", _limit_worker_console)
    return tab


async def _limit_worker_console(worker: Worker) -> None:
    """Apply the limit for the console messages of a page to a web worker too."""
    await finish_within_deadline(
        worker.evaluate(f"() => {{ {load_page_script('bounds.js')} }}"), OPENING_DEADLINE_S
    )


async def _has_password_field(page: Page) -> bool:
    """Return whether any frame of the page has a password field. Return False if the page does not respond."""
    from playwright.async_api import Error  # Playwright is already imported

    for frame in page.frames:
        try:
            if (await call_in_page(frame, "walls"))["passwords"]:
                return True
        except (Error, BrowserLost):
            continue
    return False


def build_page_error(message: str) -> BrowserLost:
    """Return the error for a Playwright message: the browser lost the page, or could not control the page."""
    first = message.splitlines()[0][:200]
    summary = "the browser lost the page" if is_page_gone(message) else "the browser could not control the page"
    return BrowserLost(f"{summary}: {first}")
