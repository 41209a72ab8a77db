"""Check that a page still belongs to the app before a question is typed or an answer is read.

A page belongs to the app if it has the address of the target, an address to which that address redirected, or an
address in `probe.allowed_origins`. Frames without the chat may show other sites.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from monitors.address_guard import AddressGuard, Place, format_host_and_port, parse_host_and_port
from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    LeftTarget,
    ProbeError,
    Unreachable,
)
from monitors.probes.browser.page_info import read_page_info
from monitors.probes.browser.proxy import GuardedProxy
from monitors.records.exchanges import PageInfo

if TYPE_CHECKING:
    from playwright.async_api import Error, Frame, Response

LOAD_TIMEOUT_S = 10.0
MAX_SHOWN_REFUSALS = 20
ERROR_PAGE = "chrome-error:"
_WEB = ("http://", "https://")
_INTERRUPTED = "interrupted by another navigation"


class Visit:
    """One page that was opened for a target. All connections of the page go through ``proxy``."""

    def __init__(self, guard: AddressGuard, proxy: GuardedProxy) -> None:
        self.guard = guard
        self._proxy = proxy
        self._opened_address = ""
        self._arrived: set[Place] = set()
        self._framed: dict[Frame, Place | None] = {}
        self._page: asyncio.Future[PageInfo | None] | None = None

    @property
    def page(self) -> PageInfo | None:
        """Return the build of the page, or ``None`` if the build is not read yet or cannot be read."""
        if self._page is None or not self._page.done() or self._page.cancelled() or self._page.exception():
            return None
        return self._page.result()

    def close(self) -> None:
        """Stop reading the build of the page."""
        if self._page is not None:
            self._page.cancel()

    @property
    def refused(self) -> tuple[str, ...]:
        """Return the reasons why the guard refused connections of the page, for the evidence."""
        return tuple(self._proxy.refused.values())[:MAX_SHOWN_REFUSALS]

    def was_refused(self, url: str) -> bool:
        """Return whether the guard refused a connection of the page to this address."""
        place = _parse_web_host_and_port(url.replace("ws", "http", 1) if url.startswith("ws") else url)
        return place is not None and format_host_and_port(place) in self._proxy.refused

    async def store_opened_page(self, address: str, response: Response | None) -> None:
        """Store the address that was opened. Each address to which it redirected counts as part of the app."""
        self._opened_address = address
        self._arrived = {parse_host_and_port(address)}
        self._framed.clear()
        request = response.request if response is not None else None
        while request is not None:
            self._arrived.add(parse_host_and_port(request.url))
            request = request.redirected_from
        self.close()
        # in the background: the question does not wait for the build
        self._page = asyncio.ensure_future(read_page_info(response))

    def raise_if_page_left_app(self, frame: Frame) -> None:
        """Raise `LeftTarget` if the page or the frame with the chat no longer belongs to the app."""
        page_url = frame.page.main_frame.url
        if _parse_web_host_and_port(page_url) is None or not self._belongs_to_app(page_url):
            raise self._build_left_error(page_url)
        if frame is not frame.page.main_frame:
            found_at = self._framed.setdefault(frame, _parse_web_host_and_port(frame.url))
            if _parse_web_host_and_port(frame.url) != found_at and not self._belongs_to_app(frame.url):
                raise self._build_left_error(frame.url)

    async def wait_and_raise_if_left(self, frame: Frame) -> None:
        """Wait until the page has loaded another document, then check the page as `raise_if_page_left_app` does."""
        from playwright.async_api import Error  # Playwright is already imported

        # If there is no new document in time, the page has its old address, which is checked below.
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                await frame.page.main_frame.evaluate("0")  # in the new document
        self.raise_if_page_left_app(frame)

    def replace_error_of_refused_connection(self, error: ProbeError) -> ProbeError:
        """Return `AccessDenied` if Lookout blocked a connection that the page may need.

        Otherwise, return ``error``.
        """
        if not self.refused or not isinstance(error, AnswerTimeout | AnswerIncomplete | AppErrorShown):
            return error
        return AccessDenied(
            f"{error}. Lookout blocked a connection that the page may need: {self.refused[0]}",
            partial_text=error.partial_text,
        )

    def build_opening_error(self, address: str, error: Error) -> Exception | None:
        """Return the error for a page that did not open, or ``None`` if another page was loaded meanwhile."""
        if _INTERRUPTED in error.message:
            return None
        if "net::" not in error.message:
            return error
        cause = self._proxy.last_failure if "ERR_SOCKS" in error.message else None
        if isinstance(cause, AccessDenied):
            return cause
        code = error.message[error.message.index("net::") :].split(maxsplit=1)[0].removeprefix("net::")
        return Unreachable(
            f"{address}: {_explain_connection_error(cause) if cause is not None else _EXPLAINED.get(code, code)}"
        )

    def _belongs_to_app(self, url: str) -> bool:
        place = _parse_web_host_and_port(url)
        return place is not None and (place in self._arrived or self.guard.is_own(url))

    def _build_left_error(self, url: str) -> LeftTarget:
        if url.startswith(ERROR_PAGE):
            where = "for an address that did not open"
        else:
            place = _parse_web_host_and_port(url)
            where = f"for {format_host_and_port(place) if place is not None else url.partition(':')[0][:20] + ':'}"
        refused = f". {self.refused[-1]}" if self.refused else ""
        return LeftTarget(
            f"the page left {self._opened_address} {where}. Lookout reads only pages of the target. If the "
            f"new address is your app, set it as the target's address or add it to probe.allowed_origins{refused}"
        )


_REFUSED: Final = "the port is closed (ERR_CONNECTION_REFUSED). Check that the app is running and uses this port"
_TIMED_OUT: Final = "the host does not respond (ERR_CONNECTION_TIMED_OUT). Check firewalls and VPNs"
_EXPLAINED: Final = {
    "ERR_CONNECTION_REFUSED": _REFUSED,
    "ERR_CONNECTION_TIMED_OUT": _TIMED_OUT,
    "ERR_SSL_PROTOCOL_ERROR": "the server does not use https (ERR_SSL_PROTOCOL_ERROR). Try http://…",
    "ERR_INVALID_HTTP_RESPONSE": "the server does not use http (ERR_INVALID_HTTP_RESPONSE). Try https://…",
    "ERR_EMPTY_RESPONSE": "the connection closed without an answer (ERR_EMPTY_RESPONSE). Try https://…",
}
"""Explanations of Chromium's error codes for an address that does not open."""


def _parse_web_host_and_port(url: str) -> Place | None:
    """Return the host and port of an address, or ``None`` if it is not the address of a web page."""
    url = url.removeprefix("blob:")
    return parse_host_and_port(url) if url.lower().startswith(_WEB) else None


def _explain_connection_error(cause: Exception) -> str:
    """Return the explanation of a network error."""
    match cause:
        case ConnectionRefusedError():
            return _REFUSED
        case TimeoutError():
            return _TIMED_OUT
        case _:
            return str(cause)[:200]
