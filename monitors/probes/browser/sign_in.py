"""Sign in to a target with a form, in a window or with an imported session file.

The session is stored only if a check shows that it opens the chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from monitors.errors import BrowserLost, LoginFailed, LoginWall
from monitors.probes.browser.chromium import Chromium
from monitors.probes.browser.discover import TRUSTED_SCORE
from monitors.probes.browser.inpage import call_in_page
from monitors.probes.browser.login import Login
from monitors.probes.browser.pages import Pages, build_page_error
from monitors.probes.settings import ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import Page

POLL_INTERVAL_S = 0.5
"""Seconds between two checks of the window."""
CHAT_CHECKS = 3
"""A person counts as signed in when this many checks in a row found a chat.

Some sites show a chat just before they ask for a login.
"""
PERSON_DEADLINE_S = 900.0
"""Seconds within which a person must sign in. The person may first have to fetch a phone for a second factor."""


async def sign_in(
    address: str, settings: ProbeSettings, login: Login, *, state: dict[str, Any] | None = None, by: str = "form"
) -> None:
    """Sign in, check that the page of the target shows a chat, then store the session.

    ``state`` contains the cookies and data of a browser that is already signed in, and ``by`` is the way in which
    this browser was signed in. Without ``state``, Lookout fills in the form. If only headers, cookies or HTTP
    authentication are configured, Lookout checks them and stores nothing. Raises `LoginFailed` or another
    `ProbeError`.
    """
    async with Chromium(browser_path=settings.browser_path) as chromium:
        await chromium.start_if_needed()
        from playwright.async_api import Error  # loaded with the browser

        pages = Pages(chromium, address, settings, login)
        try:
            if state is None and login.settings.has_form_login:
                state = await login.sign_in_by_form(pages.open_tab_without_session)
            if state is not None:
                login.use_storage_state(state, by=by)
            async with pages.open_tab() as tab:
                await pages.open_chat_in_tab(tab)
        except LoginWall as wall:
            raise LoginFailed(
                login.secret_filter.redact(f"{address} still asks for a login after the sign-in: {wall}")
            ) from None
        except Error as error:
            raise build_page_error(login.secret_filter.redact(error.message)) from None
    if state is not None:
        login.store_session()


async def sign_in_by_window(
    address: str, settings: ProbeSettings, login: Login, *, pressed: Callable[[], bool]
) -> dict[str, Any]:
    """Open a window in which a person signs in. Return the cookies and data of the browser.

    The window stays open until it shows a chat, until ``pressed`` returns True, or until the person closes the
    window. Raises `LoginFailed` after 15 minutes.
    """
    from playwright.async_api import Error  # 0.4 s

    chromium = Chromium(browser_path=settings.browser_path, load_images=True, window=True)
    until, stood = monotonic() + PERSON_DEADLINE_S, 0
    async with chromium:
        await chromium.start_if_needed()
        state: dict[str, Any] | None = None
        try:
            async with Pages(chromium, address, settings, login).open_tab_without_session() as page:
                await page.goto(login.settings.url or address, wait_until="domcontentloaded")
                while stood < CHAT_CHECKS and not pressed() and monotonic() < until:
                    # The page sends no event for a finished sign-in.
                    await asyncio.sleep(POLL_INTERVAL_S)
                    stood = stood + 1 if await _has_chat(page, address, settings, login) else 0
                    state = dict(await page.context.storage_state(indexed_db=True))
        except Error as error:
            if state is None:
                raise build_page_error(login.secret_filter.redact(error.message)) from None
        if state is None or monotonic() >= until:
            raise LoginFailed(f"nobody signed in within {PERSON_DEADLINE_S / 60:g} minutes")
        return state


async def _has_chat(page: Page, address: str, settings: ProbeSettings, login: Login) -> bool:
    """Return whether a tab of the window shows the chat of the target, which means that the person is signed in."""
    from playwright.async_api import Error  # Playwright is already imported

    home = urlsplit(address).netloc
    pins = settings.selectors.model_dump(exclude_none=True)
    for open_page in page.context.pages:
        try:
            if (
                urlsplit(open_page.url).netloc != home
                or (await call_in_page(open_page.main_frame, "walls"))["login"]
            ):
                continue
            selector = login.settings.signed_in
            if selector is not None and not await open_page.locator(selector).locator("visible=true").count():
                continue
            all_boxes = [await call_in_page(frame, "waitForBox", pins, 300) for frame in open_page.frames]
        except (Error, BrowserLost):
            continue
        if any(boxes["score"] >= TRUSTED_SCORE and boxes["enabled"] for boxes in all_boxes):
            return True
    return False
