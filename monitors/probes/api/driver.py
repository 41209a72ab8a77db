"""Ask a chat API over HTTP. The request is JSON; the response is JSON or a stream of server-sent events.

No browser is used, and there are no screenshots. Each conversation starts without cookies.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Self, cast

import httpx

from monitors.address_guard import AddressGuard
from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerNotFound,
    AnswerTimeout,
    AppErrorShown,
    EndNotFound,
    NoSuchPath,
    PageNotUnderstood,
    RateLimited,
    Unreachable,
)
from monitors.http_client import MEGABYTE_BYTES, GuardedClient, describe_http_error
from monitors.json_path import collect_items, collect_values
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.driver import Answer, SelectEvidence, create_conversation_id, select_no_evidence
from monitors.probes.settings import ApiSettings, ProbeSettings
from monitors.probes.target_guard import build_address_guard
from monitors.probes.wire import WireRule, extract_payload, read_versioned_payload
from monitors.records.base import Record
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.request_headers import RequestHeaders
from monitors.retry import parse_retry_after_s

LINE_END = re.compile(r"\r\n|\n|\r(?!$)")
"""A pattern for line ends, as in the standard for server-sent events.

A carriage return at the end of a chunk does not match, because the next chunk may begin with the line feed of the
same line end.
"""


MAX_LINE_CHARACTERS = 20_000_000
"""Maximum number of characters in one line.

A longer line raises an error. The lines of real answers have at most a hundredth of this length.
"""


class Event(Record):
    """One server-sent event. Its name is ``message`` if the server gives no name."""

    name: str = "message"
    data: str


async def split_lines(pieces: AsyncIterator[str], max_characters: int = MAX_LINE_CHARACTERS) -> AsyncGenerator[str]:
    """Yield complete lines. Raises `PageNotUnderstood` if a line has more than ``max_characters`` characters.

    Only CR and LF end a line. An answer may contain U+2028, at which Python and httpx would also split the text.
    """
    pending: list[str] = []
    length = 0
    async for piece in pieces:
        pieces_of_line = LINE_END.split(pending.pop() + piece if pending and pending[-1].endswith("\r") else piece)
        for end in pieces_of_line[:-1]:
            yield "".join((*pending, end))
            pending, length = [], 0
        pending.append(pieces_of_line[-1])
        length += len(pieces_of_line[-1])
        if length > max_characters:
            raise PageNotUnderstood(f"a line of the event stream has more than {max_characters} characters")
    if any(pending):
        yield "".join(pending).removesuffix("\r")


async def parse_server_sent_events(lines: AsyncIterator[str]) -> AsyncGenerator[Event]:
    """Yield server-sent events as they arrive.

    An event that is not complete at the end of the stream is dropped.
    """
    name, data = "", list[str]()
    async for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(name=name or "message", data="\n".join(data))
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


MAX_ANSWER_BYTES = 20 * MEGABYTE_BYTES
"""Maximum number of bytes in one response or stream.

A larger response raises an error. Real answers have at most a hundredth of this size.
"""


class HttpClientPool:
    """A pool of HTTP clients. Conversations reuse the open connections of earlier conversations.

    One shared client for all conversations would be slow, because it scans all its connections at each request.
    With 32 parallel conversations, this scan took a third of the time. ``headers`` contain the authentication and
    are sent only to the host of ``address``. ``guard`` checks the address of each request.
    """

    def __init__(self, settings: ProbeSettings, headers: RequestHeaders, address: str, guard: AddressGuard) -> None:
        self._settings, self._headers, self._address, self._guard = settings, headers, address, guard
        self._trust = httpx.create_ssl_context()  # takes 0.1 s and is done only once
        self._idle: list[GuardedClient] = []

    @asynccontextmanager
    async def lend_client(self) -> AsyncGenerator[GuardedClient]:
        """Yield an HTTP client without cookies for one conversation. After an error, the client is not reused."""
        client = self._idle.pop() if self._idle else self._create_client()
        try:
            yield client
        except BaseException:  # a cancelled request also leaves its connection half read
            await client.aclose()
            raise
        client.cookies.clear()
        self._idle.append(client)

    async def aclose(self) -> None:
        """Close all clients that no conversation uses."""
        while self._idle:
            await self._idle.pop().aclose()

    def _create_client(self) -> GuardedClient:
        deadline_s = self._settings.answer_deadline_s
        return GuardedClient(
            self._guard,
            deadline_s=deadline_s,
            max_bytes=MAX_ANSWER_BYTES,
            headers=self._headers,
            addresses=[self._address],
            timeout=httpx.Timeout(deadline_s, connect=self._settings.page_deadline_s),
            verify=self._trust,
        )


REFUSED_STATUSES = (401, 403)
WALL_STATUSES = (402, 407)
TOO_MANY_REQUESTS = 429
PATH_ERRORS = {404: "the path does not exist", 405: "the server does not accept questions at this path"}
MIN_ERROR_STATUS = 400
MAX_SHOWN_CHARACTERS = 200
"""An error message shows at most this many characters of a response."""
Message = dict[str, str]


class ApiReply:
    """An API answer that is still arriving."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.first_ms: float | None = None
        self.documents: list[Any] = []
        self.headers: Mapping[str, str] = {}
        self.text = ""
        self.total_ms = 0.0

    def update_text_and_token_time(self, text: str) -> None:
        """Replace the text of the reply. The first non-empty text also sets the time of the first token."""
        if text and self.first_ms is None:
            self.first_ms = self.elapsed_ms
        self.text = replace_surrogates(text)

    def finish(self) -> None:
        """Record how long the complete answer took."""
        self.total_ms = self.elapsed_ms

    @property
    def elapsed_ms(self) -> float:
        """Return the number of milliseconds since the question was sent."""
        return (monotonic() - self.started) * 1000


class ApiDriver:
    """A `ChatDriver` for a JSON API. Use it as an async context manager.

    The content type of a response shows whether it is a stream. `headers` contain the authentication, and are never
    stored or shown in an error.
    """

    def __init__(self, address: str, settings: ProbeSettings, *, headers: RequestHeaders) -> None:
        self._url = settings.api.url or address
        self._settings = settings
        self._headers = headers
        self._clients = HttpClientPool(settings, headers, self._url, build_address_guard(address, settings))
        self._end_seen = False
        """Whether any stream contained the configured end mark. If no stream did, the configured mark may be wrong.
        """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._clients.aclose()

    async def ask(
        self,
        turns: tuple[str, ...],
        *,
        name: str = "question",
        select_evidence: SelectEvidence = select_no_evidence,
    ) -> Answer:
        """See `ChatDriver.ask`. In the request, ``{history}`` is replaced with the earlier turns and answers."""
        del name  # the name of evidence files, which an API does not have
        conversation = create_conversation_id()
        history: list[Message] = []
        reply = ApiReply()
        async with self._clients.lend_client() as client:
            for turn in turns:
                reply = await self._ask_turn(client, turn, history, conversation)
                history += [{"role": "user", "content": turn}, {"role": "assistant", "content": reply.text}]
        earlier = tuple(message["content"] for message in history[1:-1:2])
        answer = build_answer(self._url, self._settings.api, reply, earlier)
        await select_evidence(answer)
        return answer

    async def _ask_turn(
        self, client: httpx.AsyncClient, turn: str, history: list[Message], conversation: str
    ) -> ApiReply:
        api = self._settings.api
        body = fill_request_template(json.loads(api.request), turn, history, conversation)
        reply = ApiReply()
        async with (
            apply_deadline_and_translate_errors(reply, self._settings),
            client.stream("POST", self._url, json=body) as response,
        ):
            _raise_if_path_rejected(response)
            raise_if_error_status(response, self._headers)
            reply.headers = response.headers
            if "event-stream" in response.headers.get("content-type", ""):
                await self._read_streamed_reply(response, reply)
            else:
                await self._read_json_reply(response, reply)
        reply.finish()
        return require_answer_text(reply, api)

    async def _read_json_reply(self, response: httpx.Response, reply: ApiReply) -> None:
        document = parse_json(self._headers.hide_secrets((await response.aread()).decode("utf-8", "replace")))
        raise_if_api_error(self._settings.api, document, "")
        reply.documents.append(document)
        reply.update_text_and_token_time(extract_answer_text(self._settings.api, reply.documents))

    async def _read_streamed_reply(self, response: httpx.Response, reply: ApiReply) -> None:
        api = self._settings.api
        last: Event | None = None
        async for event in parse_server_sent_events(split_lines(response.aiter_text())):
            last = event
            if api.done in (event.data, event.name):
                self._end_seen = True
                if event.data != api.done:
                    self._add_event_to_reply(event, reply)
                return
            self._add_event_to_reply(event, reply)
        without = f"the stream ended without the end event {api.done!r}"
        if self._end_seen or last is None:
            raise AnswerIncomplete(without, partial_text=reply.text)
        data = replace_surrogates(self._headers.hide_secrets(last.data))[:MAX_SHOWN_CHARACTERS]
        name_prefix = f"{last.name!r}, " if last.name != "message" else ""
        raise EndNotFound(
            f"{without}. The last event was {name_prefix}{data}. Check the setting probe.api.done",
            partial_text=reply.text,
        )

    def _add_event_to_reply(self, event: Event, reply: ApiReply) -> None:
        document = parse_json(self._headers.hide_secrets(event.data))
        raise_if_api_error(self._settings.api, document, reply.text)
        reply.documents.append(document)
        piece = extract_answer_text(self._settings.api, [document])
        if piece:
            reply.update_text_and_token_time(reply.text + piece if self._settings.api.joins else piece)


@asynccontextmanager
async def apply_deadline_and_translate_errors(reply: ApiReply, settings: ProbeSettings) -> AsyncGenerator[None]:
    """Apply the deadline for answers in ``settings``. Raise HTTP errors and timeouts as a `ProbeError`.

    The `ProbeError` contains the part of the answer that arrived.
    """
    time_limit = f"within {settings.answer_deadline_s:g} s"
    try:
        async with asyncio.timeout(settings.answer_deadline_s):
            yield
    except (TimeoutError, httpx.ReadTimeout) as error:
        if reply.text:
            raise AnswerIncomplete(f"the answer did not end {time_limit}", partial_text=reply.text) from error
        raise AnswerTimeout(f"the answer did not start {time_limit}") from error
    except httpx.HTTPError as error:
        if reply.text:
            message = f"the connection broke before the answer was complete: {describe_http_error(error)}"
            raise AnswerIncomplete(message, partial_text=reply.text) from error
        raise Unreachable(f"the API does not answer: {describe_http_error(error)}") from error


def _raise_if_path_rejected(response: httpx.Response) -> None:
    """Raise `NoSuchPath` if the server responds but accepts no questions at this path."""
    status = response.status_code
    if status in PATH_ERRORS:
        raise NoSuchPath(f"HTTP {status} at {replace_surrogates(response.url.path)}: {PATH_ERRORS[status]}")


def raise_if_error_status(response: httpx.Response, headers: RequestHeaders) -> None:
    """Raise a `ProbeError` if the response has an HTTP error status. A rejected token raises `AccessDenied`."""
    status = response.status_code
    if status in REFUSED_STATUSES:
        raise AccessDenied(f"the API answered {headers.explain_refusal(status)}")
    if status in WALL_STATUSES:
        raise AccessDenied(f"the API answered HTTP {status}: it requires a login or a higher quota")
    if status == TOO_MANY_REQUESTS:
        raise RateLimited(
            "the API answered HTTP 429: too many requests", retry_after_s=parse_retry_after_s(response.headers)
        )
    if status >= MIN_ERROR_STATUS:
        raise Unreachable(f"the API answered HTTP {status}")


def fill_request_template(template: Any, turn: str, history: list[Message], conversation: str) -> Any:
    """Return the request with its placeholders replaced by the turn, the history and the conversation id.

    The template is parsed JSON. Quotes or braces in a question cannot change the structure of the request.
    """
    match template:
        case "{history}":
            return list(history)
        case str():
            return template.replace("{conversation}", conversation).replace("{question}", turn)
        case list():
            filled_items: list[Any] = []
            for item in cast("list[Any]", template):
                filled = fill_request_template(item, turn, history, conversation)
                filled_items += filled if item == "{history}" else [filled]  # one item for each message
            return filled_items
        case dict():
            fields = cast("dict[str, Any]", template).items()
            return {key: fill_request_template(value, turn, history, conversation) for key, value in fields}
        case _:
            return template


def parse_json(text: str) -> Any:
    """Return a parsed JSON document. Raises `PageNotUnderstood`, which shows how the document begins."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # deeply nested JSON exceeds the recursion limit
        raise PageNotUnderstood(
            f"the response of the API is not JSON: {replace_surrogates(text[:200])!r}"
        ) from error


def raise_if_api_error(api: ApiSettings, document: Any, partial: str) -> None:
    """Raise `AppErrorShown` if the document contains an error at the configured path.

    ``partial`` is the part of the answer that arrived before the error.
    """
    errors = [value for value in collect_items(document, api.error) if value] if api.error else []
    if errors:
        raise AppErrorShown(
            f"the API reports an error: {replace_surrogates(str(errors[0]))[:300]}", partial_text=partial
        )


def build_wire_rule(api: ApiSettings) -> WireRule:
    """Build the rule that finds the answer in a response, and also citations and details such as the latency."""
    return WireRule(
        url=".",
        text=api.text,
        citations=api.citations,
        app_path=api.app_path,
        latency_ms=api.latency_ms,
        joins=api.joins,
    )


def extract_answer_text(api: ApiSettings, documents: list[Any]) -> str:
    """Return the text of the answer, joined from ``documents``, the parts of a response."""
    payload = extract_payload(build_wire_rule(api), "", documents)
    return "" if payload is None else payload.text


def require_answer_text(reply: ApiReply, api: ApiSettings) -> ApiReply:
    """Return the reply unchanged. Raises `AnswerNotFound` if no document has a value at the path ``api.text``.

    The error shows the document with the longest text, which most likely contains the answer.
    """
    if any(collect_values(document, api.text) for document in reply.documents):
        return reply
    document = max(reply.documents, key=compute_longest_text_length, default=None)
    excerpt = replace_surrogates(json.dumps(document, ensure_ascii=False))[:MAX_SHOWN_CHARACTERS]
    where = "the events. The event with the longest text is" if len(reply.documents) > 1 else "the response"
    raise AnswerNotFound(f"probe.api.text = {api.text!r} matches nothing in {where}: {excerpt}")


def compute_longest_text_length(document: Any) -> int:
    """Return the number of characters of the longest text in a JSON document."""
    match document:
        case str():
            return len(document)
        case list():
            return max(map(compute_longest_text_length, cast("list[Any]", document)), default=0)
        case dict():
            return max(map(compute_longest_text_length, cast("dict[str, Any]", document).values()), default=0)
        case _:
            return 0


def build_answer(url: str, api: ApiSettings, reply: ApiReply, earlier: tuple[str, ...]) -> Answer:
    """Build the answer from a complete reply.

    For an API, the visible text and the text of the wire payload are equal.
    """
    payload = read_versioned_payload(build_wire_rule(api), url, reply.documents, reply.headers) or WirePayload(
        url=url, text=reply.text
    )
    payload = payload.with_text_and_citations(
        replace_surrogates(payload.text), tuple(replace_surrogates(citation) for citation in payload.citations)
    )
    versions = [
        version for document in reply.documents for version in collect_items(document, api.app_version or "-")
    ]
    return Answer(
        visible_text=reply.text,
        earlier=earlier,
        wire=payload,
        graded_channel=Channel.WIRE,
        timings=Timings(first_token_ms=reply.first_ms, total_ms=reply.total_ms),
        app_path=payload.app_path,
        app_version=replace_surrogates(str(versions[-1])) if versions else None,
    )
