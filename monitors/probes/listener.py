"""Hears everything that a page receives while one question is answered."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from monitors.probes.inpage import call, clean
from monitors.probes.network import DATA_KINDS
from monitors.probes.wire_candidates import Received
from monitors.probes.wiretap import body_of, passed_over, pushes

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Page, Response

RESPONSES_AT_MOST = 40
TEXT_AT_MOST = 2_000_000
"""Characters of one response that are looked through."""


class Listener:
    """Belongs to its page. ``status`` and ``loaded_s`` are of the page's own document, seconds from the making."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._responses: list[Response] = []
        self._hearing = False
        self._made = monotonic()
        self.status: int | None = None
        self.loaded_s: float | None = None
        self.console_errors: list[str] = []
        page.on("response", self._responded)
        page.on("console", self._heard)
        page.on("domcontentloaded", self._loaded)

    async def begin(self) -> None:
        """From now on what comes is kept."""
        self._hearing = True
        for frame in self._page.frames:
            await passed_over(call(frame, "hear"))

    async def received(self) -> tuple[Received, ...]:
        """What came since: bodies of responses, and what sockets and event streams pushed."""
        found: list[Received] = []
        for response in self._responses:
            body = await body_of(response)
            if body:
                kind = f"response to {response.request.method}"
                found.append(Received(url=clean(response.url), kind=kind, texts=(body[:TEXT_AT_MOST],)))
        for url, texts in (await pushes(self._page)).items():
            kind = "web socket" if url.startswith("ws") else "event stream"
            found.append(Received(url=url, kind=kind, texts=tuple(texts)))
        return tuple(found)

    def _responded(self, response: Response) -> None:
        if response.frame == self._page.main_frame and response.request.is_navigation_request():
            self.status = response.status
        kinds = DATA_KINDS - {"eventsource"}  # those are heard in the page, message by message
        if self._hearing and response.request.resource_type in kinds and len(self._responses) < RESPONSES_AT_MOST:
            self._responses.append(response)

    def _loaded(self, _page: Page) -> None:
        if self.loaded_s is None:
            self.loaded_s = round(monotonic() - self._made, 2)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and len(self.console_errors) < 5:  # noqa: PLR2004 - enough to see what is wrong
            self.console_errors.append(clean(message.text)[:300])
