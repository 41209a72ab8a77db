"""What the network says about an answer: is a request still open, did a stream break, did the app push."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, WebSocket

# How Chromium words a stream that ended before its end. ERR_ABORTED is the page's own doing.
BREAKS = (
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_CONTENT_LENGTH_MISMATCH",
    "ERR_CONNECTION_RESET",
    "ERR_CONNECTION_CLOSED",
    "ERR_CONNECTION_REFUSED",
    "ERR_EMPTY_RESPONSE",
    "ERR_HTTP2_PROTOCOL_ERROR",
    "ERR_HTTP2_SERVER_REFUSED_STREAM",
    "ERR_QUIC_PROTOCOL_ERROR",
    "ERR_NETWORK_CHANGED",
)
DATA_KINDS = frozenset({"fetch", "xhr", "eventsource"})
SIZES_DEADLINE_S = 5.0
COMPRESSION = 6  # prose compresses to a third; a body of less than a sixth of the answer did not carry it
POLLS = 3  # so many requests to one address after one question: the page asks again and again


class Stillness(StrEnum):
    """What the network lets one conclude once the text has stopped changing."""

    OPEN = "open"
    """A request that began after the question is still running: the answer may go on."""
    ENDED = "ended"
    """All that began after the question has ended, and nothing else could bring more."""
    UNTOLD = "untold"
    """Sockets, polling or streams from before the question: the network cannot tell."""


class Traffic:
    """A page's requests. Web sockets are followed from the start, requests from `begin` on.

    `on_break` hears of what broke off; true when it was a response that had begun, as `cut` then says too.
    `ended_at` is when the last request ended, by `time.monotonic`.
    """

    def __init__(self, page: Page, *, on_break: Callable[[bool], None]) -> None:
        self._page = page
        self._on_break = on_break
        self._open: set[Request] = set()
        self._done: list[Request] = []
        self._documents: list[Request] = []
        self._asked: Counter[str] = Counter()
        self._listening = False
        self.changed = asyncio.Event()
        self.started = 0
        self.cut = False
        self.ended_at: float | None = None
        page.on("websocket", self._socket_opened)

    def begin(self) -> None:
        """Forgets what was, and follows requests from now on."""
        self._open.clear()
        self._done.clear()
        self._documents.clear()
        self._asked.clear()
        self.started = 0
        self.cut = False
        self.ended_at = None
        if not self._listening:
            self._listening = True
            self._page.on("request", self._began)
            self._page.on("requestfinished", self._ended)
            self._page.on("requestfailed", self._failed)

    def end(self) -> None:
        """Stops following requests; each event costs a message between browser and monitor."""
        if self._listening:
            self._listening = False
            self._page.remove_listener("request", self._began)
            self._page.remove_listener("requestfinished", self._ended)
            self._page.remove_listener("requestfailed", self._failed)

    async def stillness(self, *, characters: int, pushed: bool) -> Stillness:
        """What the open and ended requests say of an answer of so many `characters`.

        `pushed`: a socket or an event stream brought something since the question.
        """
        if self._open:
            return Stillness.OPEN
        polled = any(times >= POLLS for times in self._asked.values())
        if pushed or polled or not (self._documents or await self._carried(characters)):
            return Stillness.UNTOLD
        return Stillness.ENDED

    @property
    def is_open(self) -> bool:
        """Whether a request that began after the question is still running."""
        return bool(self._open)

    async def document_status(self) -> int | None:
        """The HTTP status of the page that came as an answer, if one did."""
        if not self._documents:
            return None
        response = await self._documents[-1].response()
        return None if response is None else response.status

    async def _carried(self, characters: int) -> bool:
        """Whether one of the ended responses is long enough to have held the answer; a bare receipt is not."""
        from playwright.async_api import Error  # loaded already: there is a page

        for request in reversed(self._done):
            try:
                sizes = await asyncio.wait_for(request.sizes(), SIZES_DEADLINE_S)
            except (Error, TimeoutError):
                continue
            if sizes["responseBodySize"] * COMPRESSION >= characters:
                return True
        return False

    def _began(self, request: Request) -> None:
        if request.resource_type == "document":
            self.started += 1
            self._documents.append(request)
        if request.resource_type in DATA_KINDS:
            self.started += 1
            self._open.add(request)
            self._asked[request.url.split("?")[0]] += 1

    def _ended(self, request: Request) -> None:
        if request in self._open:
            self._open.discard(request)
            self._done.append(request)
            self.ended_at = monotonic()
            self.changed.set()

    def _failed(self, request: Request) -> None:
        if request not in self._open:
            return
        self._open.discard(request)
        self.changed.set()
        failure = request.failure or ""
        if any(mark in failure for mark in BREAKS):
            self.cut = self.cut or request.timing["responseStart"] >= 0
            self._on_break(self.cut)

    def _socket_opened(self, socket: WebSocket) -> None:
        def gone(_socket: WebSocket) -> None:
            if self._listening:
                self._on_break(False)

        socket.on("close", gone)
