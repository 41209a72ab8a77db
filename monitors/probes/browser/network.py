"""Observe the network of a page during an answer: open requests, broken connections, polling.

The module also reads the answer as the app sent it, from a response, an event stream or a web socket.
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
from monitors.probes.wire import WireRule, parse_documents, read_payload, read_versioned_payload
from monitors.records.exchanges import Channel, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Response, WebSocket


# Errors of Chromium for a connection that broke. ERR_ABORTED is missing: the page itself ended the request.
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
MAX_COMPRESSION = 6  # a text compresses to a third; a body below a sixth of the answer did not contain it
MIN_POLLS = 3  # a page that sends this many requests to one address after one question is polling
# A page has stopped polling if it sends no request for REST_PAUSES times its longest pause between two polls, and
# for at least REST_S seconds. By then, its scripts have detected the end of the answer.
REST_PAUSES, REST_S = 4, 3.2
MAX_FRAMES = 200
"""Maximum number of web socket messages that are stored for one question. Only the newest messages are stored."""
BEACON_BYTES = 4  # a POST whose response has at most this length ("", "{}", "true") is telemetry


class Stillness(StrEnum):
    """What the network shows about the end of an answer, after the text of the answer has stopped changing."""

    OPEN = "open"
    """A request that started after the question is still open. The answer may continue."""
    ENDED = "ended"
    """All requests after the question have ended, and no other connection can bring more text."""
    RESTING = "resting"
    """The page was polling, and may have stopped.

    `Traffic.compute_polling_timeout_left_s` returns how long to wait until this is certain.
    """
    UNKNOWN = "unknown"
    """The network does not show whether the answer is complete.

    For example, a web socket or a stream that was opened before the question is still open and may bring more
    text.
    """


@dataclass
class _RequestGroup:
    """All requests to one address since the question was sent. Times are in seconds of `time.monotonic`."""

    requests: list[Request] = field(default_factory=list["Request"])
    under_way: int = 0
    began_at: float = field(default_factory=monotonic)
    ended_at: float = 0.0
    longest_pause_s: float = 0.0
    weighed: int = 0
    """Number of requests whose response was checked and was almost empty (at most `BEACON_BYTES`)."""

    def add_request(self, request: Request) -> None:
        if self.requests and not self.under_way:
            self.longest_pause_s = max(self.longest_pause_s, monotonic() - self.ended_at)
        self.requests.append(request)
        self.under_way += 1

    def mark_request_ended(self) -> None:
        self.under_way -= 1
        self.ended_at = monotonic()

    def compute_polling_timeout_left_s(self) -> float:
        """Return how many more seconds must pass without a request before the page counts as no longer polling."""
        return max(REST_S, REST_PAUSES * self.longest_pause_s) - (monotonic() - self.ended_at)

    async def is_telemetry(self) -> bool:
        """Return whether the requests only send usage data, which cannot bring an answer.

        This is assumed if the requests do not use GET, and all responses were almost empty.
        """
        if self.requests[0].method == "GET":
            return False
        while self.weighed < len(self.requests):
            size = await _read_body_size(self.requests[self.weighed])
            if size is None or size > BEACON_BYTES:
                return False
            self.weighed += 1
        return True


class Traffic:
    """The requests of one page.

    Web sockets are tracked from the start, and requests are tracked after `reset_and_start_tracking`.

    - `on_break` is called for each broken request and each closed web socket. Its arguments are whether a response
      broke after it had started, and the address of the web socket, or ``None`` for a request.
    - `on_end` is called when the last open request ends.
    - `was_refused` returns whether the address guard blocked an address. A blocked request does not count as
      broken.
    - `cut` is True after a response broke.
    - `ended_at` is the time when the last request ended, in seconds of `time.monotonic`.
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
        self.request_ended = asyncio.Event()
        self.started = 0
        self.cut = False
        self.ended_at: float | None = None
        page.on("websocket", self._on_socket)

    def reset_and_start_tracking(self) -> None:
        """Forget all earlier requests, and track requests from now on."""
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

    def stop_tracking(self) -> None:
        """Stop tracking requests. Each tracked request costs a message from the browser."""
        if self._listening:
            self._listening = False
            self._page.remove_listener("request", self._on_request)
            self._page.remove_listener("response", self._on_response)
            self._page.remove_listener("requestfinished", self._on_finished)
            self._page.remove_listener("requestfailed", self._on_failed)

    async def classify_network_stillness(self, *, characters: int, live: bool) -> Stillness:
        """Return what the network shows about an answer that has `characters` characters so far.

        `live` is True if a web socket or an event stream received data since the question and is still open.
        """
        if self._open:
            return Stillness.OPEN
        if live or not await self.may_have_carried_answer(characters):
            return Stillness.UNKNOWN
        return Stillness.RESTING if await self.compute_polling_timeout_left_s(characters) > 0 else Stillness.ENDED

    async def compute_polling_timeout_left_s(self, characters: int) -> float:
        """Return the seconds until the page counts as no longer polling, or 0 if the page is not polling now.

        Telemetry does not count as polling. If the page polls one address, every address that received at least two
        requests is treated as polled, because each of them may bring the answer.
        """
        first = [group for group in self._groups.values() if await self._may_be_first_poll(group, characters)]
        again = [group for group in self._groups.values() if len(group.requests) > 1]
        if not first and all(len(group.requests) < MIN_POLLS for group in again):
            return 0.0
        return max(
            [
                group.compute_polling_timeout_left_s()
                for group in [*first, *again]
                if not await group.is_telemetry()
            ],
            default=0.0,
        )

    async def _may_be_first_poll(self, group: _RequestGroup, characters: int) -> bool:
        """Return whether the first request in ``group`` may be the start of polling for the answer.

        This is possible if the page first sent the question to another address, and the response was too short to
        contain an answer with ``characters`` characters. Return False for an event stream, because the network
        shows its end.
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

    def has_polled_any(self, addresses: list[str]) -> bool:
        """Return whether the page has requested one of ``addresses`` more than once since the question was sent."""
        return any(len(group.requests) > 1 for url, group in self._groups.items() if url in addresses)

    @property
    def has_polled(self) -> bool:
        """Return whether the page has polled an address and received data from it."""
        return any(MIN_POLLS <= len(group.requests) != group.weighed for group in self._groups.values())

    @property
    def is_open(self) -> bool:
        """Return whether a request that started after the question is still open."""
        return bool(self._open)

    @property
    def is_answering(self) -> bool:
        """Return whether the response to a request that was sent after the question is still arriving."""
        return bool(self._answering)

    def has_sent(self, text: str, *, in_any_form: bool = False) -> bool:
        """Return whether a request or a web socket message after the question contained ``text``.

        Binary data that is long enough to contain the text also counts. If ``in_any_form`` is True, any data that
        is at least as long as the text counts, because a page may encode the text.
        """
        requests = [request for group in self._groups.values() for request in group.requests]
        bodies = [request.post_data_buffer or b"" for request in (*requests, *self._documents)]
        addresses = [request.url for request in (*requests, *self._documents)]
        return any(
            can_contain_text(sent, text) or (in_any_form and len(sent) >= len(text))
            for sent in (*self._frames, *bodies, *addresses)
        )

    async def read_form_page_status(self) -> int | None:
        """Return the HTTP status of the page that a form opened, or ``None`` if no form opened a page."""
        if not self._documents:
            return None
        response = await self._documents[-1].response()
        return None if response is None else response.status

    async def may_have_carried_answer(self, characters: int) -> bool:
        """Return whether a response may have contained an answer with this many characters.

        Return True if a response is long enough, if the page loaded a new document, or if the page itself closed a
        connection before the response was complete.
        """
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
            self._groups[request.url.split("?")[0]].add_request(request)

    def _on_response(self, response: Response) -> None:
        if response.request in self._open:
            self._answering.add(response.request)

    def _on_finished(self, request: Request) -> None:
        if request in self._open:
            self._done.append(request)
            self._mark_request_ended(request)

    def _on_failed(self, request: Request) -> None:
        if request not in self._open:
            return
        was_answering = request in self._answering
        failure = request.failure or ""
        self._mark_request_ended(request)
        if any(mark in failure for mark in BREAKS) and not self._was_refused(request.url):
            self.cut = self.cut or request.timing["responseStart"] >= 0
            self._on_break(self.cut, None)
        elif was_answering:
            self._closed_by_page = True

    def _mark_request_ended(self, request: Request) -> None:
        self._open.discard(request)
        self._answering.discard(request)
        self._groups[request.url.split("?")[0]].mark_request_ended()
        self.ended_at = monotonic()
        self.request_ended.set()
        if not self._open:
            self._on_end()

    def _on_socket(self, socket: WebSocket) -> None:
        def report_closed_socket(_socket: WebSocket) -> None:
            if self._listening and not self._was_refused(socket.url):
                self._on_break(False, socket.url)

        def store_sent_frame(payload: str | bytes) -> None:
            if self._listening:
                self._frames.append(payload)

        socket.on("close", report_closed_socket)
        socket.on("framesent", store_sent_frame)


def can_contain_text(sent: str | bytes, text: str) -> bool:
    """Return whether sent data contains the text, as JSON or as form data.

    Return True for binary data that is long enough to contain the text.
    """
    if isinstance(sent, bytes):
        try:
            sent = sent.decode()
        except UnicodeDecodeError:
            return len(sent) * MAX_COMPRESSION >= len(text)
    unescaped = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), unquote_plus(sent))
    return any(
        _reduce_to_letters_and_digits(text) in _reduce_to_letters_and_digits(form)
        for form in (sent, replace_surrogates(unescaped))
    )


def _reduce_to_letters_and_digits(text: str) -> str:
    """Return only the letters and digits of a text.

    Other characters may change, because they are escaped or used as markup.
    """
    return re.sub(r"[\W_]+", "", re.sub(r"\\[nrt]", " ", text.casefold()))


async def is_event_stream(request: Request) -> bool:
    """Return whether the response has the content type of an event stream."""
    from playwright.async_api import Error  # Playwright is already imported

    try:
        async with asyncio.timeout(SIZES_DEADLINE_S):
            response = await request.response()
    except (Error, TimeoutError):
        return False
    return response is not None and "event-stream" in response.headers.get("content-type", "")


async def _read_body_size(request: Request) -> int | None:
    """Return the number of bytes that the response took on the network, or ``None`` if the number is unknown."""
    from playwright.async_api import Error  # Playwright is already imported

    try:
        async with asyncio.timeout(SIZES_DEADLINE_S):
            return (await request.sizes())["responseBodySize"]
    except (Error, TimeoutError):
        return None


BODY_DEADLINE_S = 10.0
MAX_BODY_BYTES = 10_000_000
"""Maximum size of a response that is read, in bytes on the network. Real answers are shorter."""
MAX_RESPONSES = 40
"""Maximum number of stored responses for one question.

The newest are stored, because the last one has the answer.
"""
MAX_SHOWN_ADDRESSES = 8
MAX_SHOWN_CHARACTERS = 200


class WireTap:
    """Capture what a page received from the addresses that a `WireRule` matches.

    The browser captures responses. A script in the page captures the messages of web sockets and event streams,
    because such a connection may stay open and has no complete response.
    """

    def __init__(self, page: Page, rule: WireRule) -> None:
        self._rule = rule
        self._page = page
        self._responses: deque[Response] = deque(maxlen=MAX_RESPONSES)
        self._others: list[str] = []
        page.on("response", self._on_response)

    async def reset_and_start_capture(self) -> None:
        """Forget all earlier data, and capture messages from now on."""
        self._responses.clear()
        self._others.clear()
        for frame in self._page.frames:
            await await_unless_frame_lost(call_in_page(frame, "hear"))

    async def stop_capture_and_read_answer(self) -> WirePayload | None:
        """Stop the capture, and return the last answer that the page received, or ``None`` if there is no answer.

        If the rule says that the text from the network is graded (``graded`` is ``wire``), a missing answer raises
        `PageNotUnderstood`.
        """
        self._page.remove_listener("response", self._on_response)
        for response in reversed(self._responses):
            body = await read_body(response)
            url = replace_surrogates(response.url)
            payload = read_payload(self._rule, url, body, response.headers) if body is not None else None
            if payload is not None:
                return payload
        pushed = await read_pushed_messages(self._page)
        for url in reversed(pushed):
            payload = self._read_pushed_reply(url, pushed[url])
            if payload is not None:
                return payload
        if self._rule.graded is Channel.WIRE:
            raise PageNotUnderstood(
                f"no response matches probe.wire.url = {self._rule.url!r} and probe.wire.text = "
                f"{self._rule.text!r}. {self._describe_received(pushed)}"
            )
        return None

    def _read_pushed_reply(self, url: str, texts: list[str]) -> WirePayload | None:
        if not self._rule.matches(url):
            return None
        if not self._rule.text:
            return WirePayload(url=url, text="".join(texts))
        return read_versioned_payload(
            self._rule, url, [document for text in texts for document in parse_documents(text)]
        )

    def _describe_received(self, pushed: dict[str, list[str]]) -> str:
        """Return a sentence about the data that the page received, for the error that reports a missing answer.

        ``pushed`` contains the messages of web sockets and event streams, by address.
        """
        matched = [url for url in pushed if self._rule.matches(url)]
        if matched:
            first = pushed[matched[-1]][0][:MAX_SHOWN_CHARACTERS]
            return (
                f"{matched[-1]} sent {plural(len(pushed[matched[-1]]), 'message')}. The first message is: {first}"
            )
        addresses = [*self._others, *pushed]
        return f"The page received responses from: {', '.join(addresses[-MAX_SHOWN_ADDRESSES:]) or 'no address'}"

    def _on_response(self, response: Response) -> None:
        self._others.append(response.url)
        del self._others[:-MAX_SHOWN_ADDRESSES]
        if self._rule.matches(response.url):
            self._responses.append(response)


async def read_body(response: Response) -> str | None:
    """Return the text of a response, or ``None`` if the response is not available, late or too long."""
    from playwright.async_api import Error  # Playwright is already imported

    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            await response.finished()
            if (await response.request.sizes())["responseBodySize"] > MAX_BODY_BYTES:
                return None
            body = await response.body()
    except (Error, TimeoutError):
        return None
    return replace_surrogates(body.decode("utf-8", "replace"))


async def await_unless_frame_lost(work: Awaitable[Any]) -> Any:
    """Wait for ``work``, a call into a frame, and return its result.

    Return ``None`` if the frame was removed or does not respond.
    """
    from playwright.async_api import Error  # Playwright is already imported

    try:
        return await work
    except (Error, BrowserLost):
        return None


async def read_pushed_messages(page: Page) -> dict[str, list[str]]:
    """Return the messages of web sockets and event streams since the capture started.

    The result maps each address to its messages in the order in which they arrived.
    """
    texts_by_url: dict[str, list[str]] = {}
    for frame in page.frames:
        for url, text in await await_unless_frame_lost(call_in_page(frame, "told")) or ():
            texts_by_url.setdefault(url, []).append(text)
    return texts_by_url
