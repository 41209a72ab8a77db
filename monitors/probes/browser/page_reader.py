"""Read data from web pages with a JavaScript function. Nothing is typed, clicked or sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, Unreachable
from monitors.probes.browser.chromium import (
    Chromium,
    build_context_options,
    finish_within_deadline,
    run_within_deadline,
)
from monitors.probes.browser.inpage import replace_surrogates_in
from monitors.probes.browser.pages import build_page_error
from monitors.probes.browser.proxy import GuardedProxy

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

_MARGIN_S = 10.0
"""Seconds that the browser may need beyond the deadline of the page.

After that, the browser counts as not responding.
"""
_WALLS = frozenset({401, 402, 403, 407, 429})


class PageReader:
    """A browser that reads pages. Use it as an async context manager, in one event loop only.

    ``deadline_s`` is the deadline for loading a page, and also for the script. Lookout searches for a Chromium in
    the folders ``search_path``, or in PATH. ``guard`` decides to which addresses the pages may connect.
    """

    def __init__(
        self,
        guard: AddressGuard,
        *,
        deadline_s: float,
        browser_path: str | None = None,
        search_path: str | None = None,
    ) -> None:
        self._proxy = GuardedProxy(guard)
        self._chromium = Chromium(browser_path=browser_path, search_path=search_path)
        self._deadline_s = deadline_s
        self._context: BrowserContext | None = None

    async def __aenter__(self) -> Self:
        await self._proxy.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._chromium.close()
        await self._proxy.close()

    async def evaluate(self, address: str, script: str, given: object) -> Any:
        """Load a page, call the JavaScript function ``script`` in the page, and return its JSON result.

        The argument of the function is ``given``.

        Raises `Unreachable`, `BrowserLost`, `BrowserMissing`, or `AccessDenied`, for example if the page belongs to
        another host.
        """
        browser = await self._chromium.start_if_needed()
        from playwright.async_api import Error  # loaded with the browser

        try:
            if self._context is None or self._context.browser is not browser:
                self._context = await run_within_deadline(
                    _MARGIN_S,
                    browser.new_context(**build_context_options(self._proxy)),
                    "opening a browser context",
                )
            page = await run_within_deadline(_MARGIN_S, self._context.new_page(), "opening a page")
            try:
                await self._load_page(page, address)
                work = page.evaluate(script, given)
                return replace_surrogates_in(
                    await run_within_deadline(self._deadline_s + _MARGIN_S, work, "reading the page")
                )
            finally:
                await finish_within_deadline(page.close(), _MARGIN_S)
        except Error as error:
            raise build_page_error(error.message) from error

    async def _load_page(self, page: Page, address: str) -> None:
        from playwright.async_api import Error  # Playwright is already imported

        try:
            response = await page.goto(address, wait_until="domcontentloaded", timeout=self._deadline_s * 1000)
        except Error as error:
            cause = self._proxy.last_failure if "ERR_SOCKS" in error.message else None
            if isinstance(cause, AccessDenied):
                raise cause from error
            first = error.message.splitlines()[0]
            raise Unreachable(f"did not load: {first[first.find('net::') :].split()[0][:80]}") from error
        if response is not None and response.status in _WALLS:
            raise AccessDenied(f"answered HTTP {response.status}: it requires a login or a higher quota")
        if response is not None and not response.ok:
            raise Unreachable(f"answered HTTP {response.status}")
        if urlsplit(page.url).netloc != urlsplit(address).netloc:
            raise AccessDenied(f"redirects to another host, {urlsplit(page.url).netloc}, possibly to a login page")
