"""Observe the network during an answer: open requests, broken streams, pushed messages.

Also capture what carries the answer (V3): a response, an event stream or a web socket.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from monitors.errors import BrowserLost, PageNotUnderstood
from monitors.plural import plural
from monitors.probes.browser.inpage import call_in_page, replace_surrogates
from monitors.probes.wire import WireRule, parse_documents, read_payload, read_reply
from monitors.records.exchanges import Channel, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Response, WebSocket


# Chromium's errors for a stream that broke. ERR_ABORTED comes from the page itself.
BREAKS = (
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_CONTENT_LENGTH_MISMATCH",
    "ERR_CONNECTION_RESET",
    "ERR_CONNECTION_CLOSED",
    "ERR_CONNECTION_REFUSED",
    "ERR_SOCKS_CONNECTION_FAILED",  # the guarded proxy's report of a refused connection
    "ERR_EMPTY_RESPONSE",
    "ERR_HTTP2_PROTOCOL_ERROR",
    "ERR_HTTP2_SERVER_REFUSED_STREAM",
    "ERR_QUIC_PROTOCOL_ERROR",
    "ERR_NETWORK_CHANGED",
)
DATA_KINDS = frozenset({"fetch", "xhr", "eventsource"})
SIZES_DEADLINE_S = 5.0
MAX_COMPRESSION = 6  # prose compresses to a third, so a body smaller than a sixth of the answer did not carry it
MIN_POLLS = 3  # this many requests to one address after one question: the page polls
# A page has its answer if it has not polled for this many times its longest pause between two polls, and at least
# for this long: its own scripts detected the end.
REST_PAUSES, REST_S = 4, 3.2
MAX_FRAMES = 200
"""Limit of frames stored for one question from the page's sockets, the newest."""
BEACON_BYTES = 4  # a POST with a response no longer than this ("", "{}", "true") is telemetry


class Stillness(StrEnum):
    """The state of the network after the text has stopped changing."""

    OPEN = "open"
    """A request that began after the question is still open: the answer may continue."""
    ENDED = "ended"
    """All requests after the question have ended, and no other channel can bring more."""
    RESTING = "resting"
    """The page polled, and may have stopped; see `Traffic.rest_left_s`."""
    UNKNOWN = "unknown"
    """Sockets or streams from before the question are open, so the network cannot show the end."""


@dataclass
class _RequestGroup:
    """The requests to one address since the question. Times are from `time.monotonic`."""

    requests: list[Request] = field(default_factory=list["Request"])
    under_way: int = 0
    began_at: float = field(default_factory=monotonic)
    ended_at: float = 0.0
    longest_pause_s: float = 0.0
    weighed: int = 0
    """The number of requests that returned nothing."""

    def begin(self, request: Request) -> None:
        if self.requests and not self.under_way:
            self.longest_pause_s = max(self.longest_pause_s, monotonic() - self.ended_at)
        self.requests.append(request)
        self.under_way += 1

    def end(self) -> None:
        self.under_way -= 1
        self.ended_at = monotonic()

    def rest_left_s(self) -> float:
        """Seconds until the page counts as having stopped, if it does not poll again."""
        return max(REST_S, REST_PAUSES * self.longest_pause_s) - (monotonic() - self.ended_at)

    async def is_telemetry(self) -> bool:
        """Whether the requests are telemetry: all responses were almost empty and the method fetches no data."""
        if self.requests[0].method == "GET":
            return False
        while self.weighed < len(self.requests):
            size = await _read_body_size(self.requests[self.weighed])
            if size is None or size > BEACON_BYTES:
                return False
            self.weighed += 1
        return True


class Traffic:
    """A page's requests. Web sockets are tracked from the start, requests from `begin` on.

    `on_break` is called for each broken request, with true if its response had begun, which also sets `cut`. For
    a closed socket it also gets the address. `on_end` is called when the last open request ends. Requests that
    the address guard refused (`was_refused`, by address) do not count as broken. `ended_at` is the time of the
    last request's end, by `time.monotonic`.
    """

    def __init__(
        self,
        page: Page,
        *,
        on_break: Callable[[bool, str | None], None],
        on_end: Callable[[], None],
        was_refused: Callable[[str], bool],
    ) -> None:
        self._page = page
        self._was_refused = was_refused
        self._on_break = on_break
        self._on_end = on_end
        self._open: set[Request] = set()
        self._answering: set[Request] = set()
        self._closed_by_page = False
        self._frames: deque[str | bytes] = deque(maxlen=MAX_FRAMES)
        self._done: list[Request] = []
        self._documents: list[Request] = []
        self._groups: defaultdict[str, _RequestGroup] = defaultdict(_RequestGroup)
        self._listening = False
        self.changed = asyncio.Event()
        self.started = 0
        self.cut = False
        self.ended_at: float | None = None
        page.on("websocket", self._on_socket)

    def begin(self) -> None:
        """Reset, and track requests from now on."""
        self._open.clear()
        self._answering.clear()
        self._closed_by_page = False
        self._frames.clear()
        self._done.clear()
        self._documents.clear()
        self._groups.clear()
        self.started = 0
        self.cut = False
        self.ended_at = None
        if not self._listening:
            self._listening = True
            self._page.on("request", self._on_request)
            self._page.on("response", self._on_response)
            self._page.on("requestfinished", self._on_finished)
            self._page.on("requestfailed", self._on_failed)

    def end(self) -> None:
        """Stop tracking requests, because each event costs a message between browser and monitor."""
        if self._listening:
            self._listening = False
            self._page.remove_listener("request", self._on_request)
            self._page.remove_listener("response", self._on_response)
            self._page.remove_listener("requestfinished", self._on_finished)
            self._page.remove_listener("requestfailed", self._on_failed)

    async def judge_stillness(self, *, characters: int, live: bool) -> Stillness:
        """Return the stillness that the open and ended requests show for an answer of this many `characters`.

        `live`: a socket or an event stream received data since the question and is still open.
        """
        if self._open:
            return Stillness.OPEN
        if live or not await self.carried_answer(characters):
            return Stillness.UNKNOWN
        return Stillness.RESTING if await self.rest_left_s(characters) > 0 else Stillness.ENDED

    async def rest_left_s(self, characters: int) -> float:
        """Seconds until a polling page counts as having stopped; 0 if it does not poll or has stopped.

        Telemetry does not count as polling. If one address is polled, wait for every address that was requested
        twice, since any of them may bring the answer.
        """
        first = [group for group in self._groups.values() if await self._may_be_first_poll(group, characters)]
        again = [group for group in self._groups.values() if len(group.requests) > 1]
        if not first and all(len(group.requests) < MIN_POLLS for group in again):
            return 0.0
        return max(
            [group.rest_left_s() for group in [*first, *again] if not await group.is_telemetry()], default=0.0
        )

    async def _may_be_first_poll(self, group: _RequestGroup, characters: int) -> bool:
        """Whether data was fetched after the question was posted elsewhere, without an answer to it.

        The end of an event stream is certain and is not checked here.
        """
        request = group.requests[0]
        if request.method != "GET" or request.resource_type == "eventsource":
            return False
        posts = [
            other
            for other in self._groups.values()
            if other.requests[0].method == "POST" and other.began_at < group.began_at
        ]
        if not posts or await is_event_stream(request):
            return False
        sizes = [await _read_body_size(other.requests[0]) for other in posts]
        return all(size is not None and size < characters for size in sizes)

    def was_polled(self, addresses: list[str]) -> bool:
        """Whether the page polled one of these addresses since the question."""
        return any(len(group.requests) > 1 for url, group in self._groups.items() if url in addresses)

    @property
    def polled(self) -> bool:
        """Whether the page polled and received data."""
        return any(MIN_POLLS <= len(group.requests) != group.weighed for group in self._groups.values())

    @property
    def is_open(self) -> bool:
        """Whether a request that began after the question is still open."""
        return bool(self._open)

    @property
    def is_answering(self) -> bool:
        """Whether a request that began after the question has a response that is still open."""
        return bool(self._answering)

    def has_sent(self, text: str) -> bool:
        """Whether a request or a frame since the question held this text, or was binary and may have held it."""
        requests = [request for group in self._groups.values() for request in group.requests]
        bodies = [request.post_data_buffer or b"" for request in (*requests, *self._documents)]
        addresses = [request.url for request in (*requests, *self._documents)]
        return any(may_hold_text(sent, text) for sent in (*self._frames, *bodies, *addresses))

    async def document_status(self) -> int | None:
        """The HTTP status of the page that answered the form, if any."""
        if not self._documents:
            return None
        response = await self._documents[-1].response()
        return None if response is None else response.status

    async def carried_answer(self, characters: int) -> bool:
        """Whether an ended response is long enough to have held the answer, or was a page or closed by the page."""
        if self._documents or self._closed_by_page:
            return True
        for request in reversed(self._done):
            size = await _read_body_size(request)
            if size is not None and size * MAX_COMPRESSION >= characters:
                return True
        return False

    def _on_request(self, request: Request) -> None:
        if request.resource_type == "document":
            self.started += 1
            self._documents.append(request)
        if request.resource_type in DATA_KINDS:
            self.started += 1
            self._open.add(request)
            self._groups[request.url.split("?")[0]].begin(request)

    def _on_response(self, response: Response) -> None:
        if response.request in self._open:
            self._answering.add(response.request)

    def _on_finished(self, request: Request) -> None:
        if request in self._open:
            self._done.append(request)
            self._close(request)

    def _on_failed(self, request: Request) -> None:
        if request not in self._open:
            return
        was_answering = request in self._answering
        failure = request.failure or ""
        self._close(request)
        if any(mark in failure for mark in BREAKS) and not self._was_refused(request.url):
            self.cut = self.cut or request.timing["responseStart"] >= 0
            self._on_break(self.cut, None)
        elif was_answering:
            self._closed_by_page = True

    def _close(self, request: Request) -> None:
        self._open.discard(request)
        self._answering.discard(request)
        self._groups[request.url.split("?")[0]].end()
        self.ended_at = monotonic()
        self.changed.set()
        if not self._open:
            self._on_end()

    def _on_socket(self, socket: WebSocket) -> None:
        def report_closed(_socket: WebSocket) -> None:
            if self._listening and not self._was_refused(socket.url):
                self._on_break(False, socket.url)

        def note_frame(payload: str | bytes) -> None:
            if self._listening:
                self._frames.append(payload)

        socket.on("close", report_closed)
        socket.on("framesent", note_frame)


def may_hold_text(sent: str | bytes, text: str) -> bool:
    """Whether sent data contains the text, in JSON or in a form. True for long enough unreadable data."""
    if isinstance(sent, bytes):
        try:
            sent = sent.decode()
        except UnicodeDecodeError:
            return len(sent) * MAX_COMPRESSION >= len(text)
    unescaped = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), unquote_plus(sent))
    return any(_keep_letters(text) in _keep_letters(form) for form in (sent, replace_surrogates(unescaped)))


def _keep_letters(text: str) -> str:
    """Return only letters and digits, because markup and escapes change other characters."""
    return re.sub(r"[\W_]+", "", re.sub(r"\\[nrt]", " ", text.casefold()))


async def is_event_stream(request: Request) -> bool:
    """Whether the response is an event stream, by any means of reading."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        async with asyncio.timeout(SIZES_DEADLINE_S):
            response = await request.response()
    except (Error, TimeoutError):
        return False
    return response is not None and "event-stream" in response.headers.get("content-type", "")


async def _read_body_size(request: Request) -> int | None:
    """Return the bytes of the response as received; ``None`` if unknown."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        async with asyncio.timeout(SIZES_DEADLINE_S):
            return (await request.sizes())["responseBodySize"]
    except (Error, TimeoutError):
        return None


BODY_DEADLINE_S = 10.0
MAX_BODY_BYTES = 10_000_000
"""Limit in bytes as sent. A body passes through browser, driver and monitor. No answer is this long."""
MAX_RESPONSES = 40
"""Limit of stored responses per turn that match the rule, the newest: the last of a polling page has the answer.
"""
MAX_SHOWN_ADDRESSES = 8
MAX_SHOWN_CHARACTERS = 200


class WireTap:
    """Capture what a page received from the addresses that the rule matches.

    Responses are captured from the browser. Sockets and event streams are captured inside the page, because one
    that opened before the question and stays open after the answer has no complete response.
    """

    def __init__(self, page: Page, rule: WireRule) -> None:
        self._rule = rule
        self._page = page
        self._responses: deque[Response] = deque(maxlen=MAX_RESPONSES)
        self._others: list[str] = []
        page.on("response", self._on_response)

    async def begin(self) -> None:
        """Forget data from before this turn, and capture pushed messages from now on."""
        self._responses.clear()
        self._others.clear()
        for frame in self._page.frames:
            await ignore_lost_frame(call_in_page(frame, "hear"))

    async def read_payload(self) -> WirePayload | None:
        """Return the last answer received. Raise `PageNotUnderstood` if a graded payload is missing."""
        self._page.remove_listener("response", self._on_response)
        for response in reversed(self._responses):
            payload = await self._read_response(response)
            if payload is not None:
                return payload
        pushed = await read_pushes(self._page)
        for url in reversed(pushed):
            payload = self._read_pushed_reply(url, pushed[url])
            if payload is not None:
                return payload
        if self._rule.graded is Channel.WIRE:
            raise PageNotUnderstood(
                f"probe.wire.url = {self._rule.url!r} with text path {self._rule.text!r} matched no answer; "
                f"{self._describe_received(pushed)}"
            )
        return None

    async def _read_response(self, response: Response) -> WirePayload | None:
        body = await read_body(response)
        if body is None:
            return None
        return read_payload(self._rule, replace_surrogates(response.url), body, response.headers)

    def _read_pushed_reply(self, url: str, texts: list[str]) -> WirePayload | None:
        if not self._rule.matches(url):
            return None
        if not self._rule.text:
            return WirePayload(url=url, text="".join(texts))
        return read_reply(self._rule, url, [document for text in texts for document in parse_documents(text)])

    def _describe_received(self, pushed: dict[str, list[str]]) -> str:
        """Describe the received data, for an error about the rule."""
        matched = [url for url in pushed if self._rule.matches(url)]
        if matched:
            first = pushed[matched[-1]][0][:MAX_SHOWN_CHARACTERS]
            return f"{matched[-1]} pushed {plural(len(pushed[matched[-1]]), 'message')}, the first: {first}"
        addresses = [*self._others, *pushed]
        return f"responses: {', '.join(addresses[-MAX_SHOWN_ADDRESSES:]) or 'none'}"

    def _on_response(self, response: Response) -> None:
        self._others.append(response.url)
        del self._others[:-MAX_SHOWN_ADDRESSES]
        if self._rule.matches(response.url):
            self._responses.append(response)


async def read_body(response: Response) -> str | None:
    """Return the text of a response; ``None`` if the browser dropped it, it does not end, or it is too long."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            await response.finished()
            if (await response.request.sizes())["responseBodySize"] > MAX_BODY_BYTES:
                return None
            body = await response.body()
    except (Error, TimeoutError):
        return None
    return replace_surrogates(body.decode("utf-8", "replace"))


async def ignore_lost_frame(work: Awaitable[Any]) -> Any:
    """Return the result of a call into a frame; ``None`` if the frame was removed or hangs."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        return await work
    except (Error, BrowserLost):
        return None


async def read_pushes(page: Page) -> dict[str, list[str]]:
    """Return the messages of sockets and event streams since the capture began, by address, in order."""
    texts_by_url: dict[str, list[str]] = {}
    for frame in page.frames:
        for url, text in await ignore_lost_frame(call_in_page(frame, "told")) or ():
            texts_by_url.setdefault(url, []).append(text)
    return texts_by_url
