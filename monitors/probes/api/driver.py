"""Asks a chat API over HTTP (V4): JSON in, JSON or an event stream out. No browser, and no page to photograph.

Server-sent events are read line by line. Each conversation has an HTTP client to itself while it lasts, and meets
no cookie of another.
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

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerNotFound,
    AnswerTimeout,
    AppErrorShown,
    EndNotFound,
    NoSuchPath,
    PageNotUnderstood,
    Unreachable,
)
from monitors.json_path import items_at, values_at
from monitors.probes.address_guard import AddressGuard, guard_of
from monitors.probes.browser.inpage import clean
from monitors.probes.driver import Answer, WorthStoring, new_conversation_id, no_evidence
from monitors.probes.settings import ApiSettings, ProbeSettings
from monitors.probes.wire import WireRule, read_documents, read_whole
from monitors.records.base import Record
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.request_headers import RequestHeaders

LINE_END = re.compile(r"\r\n|\n|\r(?!$)")
"""What ends a line, by the standard; a carriage return at the end of a piece may be half of one."""


MOST_CHARACTERS = 20_000_000
"""In one line; the longest report that anybody would read is a hundredth of it."""


class Event(Record):
    """One event. Without a name of its own it is a ``message``."""

    name: str = "message"
    data: str


async def lines_in(pieces: AsyncIterator[str], most: int = MOST_CHARACTERS) -> AsyncGenerator[str]:
    """Whole lines. Only CR and LF end one: an answer may hold U+2028, at which Python and httpx would split.

    `PageNotUnderstood` when one is longer than ``most`` characters.
    """
    started: list[str] = []
    length = 0
    async for piece in pieces:
        whole = LINE_END.split(started.pop() + piece if started and started[-1].endswith("\r") else piece)
        for end in whole[:-1]:
            yield "".join((*started, end))
            started, length = [], 0
        started.append(whole[-1])
        length += len(whole[-1])
        if length > most:
            raise PageNotUnderstood(f"a line of the stream is longer than {most} characters")
    if any(started):
        yield "".join(started).removesuffix("\r")


async def events_in(lines: AsyncIterator[str]) -> AsyncGenerator[Event]:
    """Events as they arrive. One that the end of the stream cuts off is dropped, as the standard says."""
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


class Clients:
    """Lends clients and uses them again, with their connections.

    One shared client scans all its connections at every request: at 32 conversations at once that took a third of
    the time. ``headers`` carry what authenticates, and go to the host of ``address`` alone. ``guard`` watches where
    requests lead.
    """

    def __init__(
        self, settings: ProbeSettings, headers: RequestHeaders, address: str, guard: AddressGuard | None = None
    ) -> None:
        self._headers = dict(headers.values)
        self._hooks = headers.hooks([address], guard.hooks() if guard else None)
        self._timeout = httpx.Timeout(settings.answer_deadline_s, connect=settings.page_deadline_s)
        self._trust = httpx.create_ssl_context()  # 0.1 s, so once for all
        self._idle: list[httpx.AsyncClient] = []

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[httpx.AsyncClient]:
        """A client for one conversation, without cookies. One on which something failed is not lent again."""
        client = self._idle.pop() if self._idle else self._new()
        try:
            yield client
        except BaseException:  # a cancelled request leaves its connection half read, too
            await client.aclose()
            raise
        client.cookies.clear()
        self._idle.append(client)

    async def aclose(self) -> None:
        """Closes those that are not lent."""
        while self._idle:
            await self._idle.pop().aclose()

    def _new(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers,
            timeout=self._timeout,
            verify=self._trust,
            follow_redirects=True,
            event_hooks=self._hooks,
        )


REFUSED = (401, 403)
WALLS = (402, 407, 429)
NO_SUCH_PATH = {404: "no such path there", 405: "no question is taken at this path"}
ERRORS_FROM = 400
SHOWN_CHARACTERS = 200
"""The most of a response that an error shows."""
Message = dict[str, str]


class ApiReply:
    """An answer while it arrives."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.first_ms: float | None = None
        self.documents: list[Any] = []
        self.headers: Mapping[str, str] = {}
        self.text = ""
        self.total_ms = 0.0

    def grows(self, text: str) -> None:
        """The text so far."""
        if text and self.first_ms is None:
            self.first_ms = self.elapsed_ms
        self.text = clean(text)

    def ends(self) -> None:
        """The text is whole."""
        self.total_ms = self.elapsed_ms

    @property
    def elapsed_ms(self) -> float:
        """Since the question was sent."""
        return (monotonic() - self.started) * 1000


class ApiDriver:
    """A `ChatDriver` over a JSON API, streaming or not: the response's type says which. An async context manager.

    `headers` carry what authenticates; they appear in no record and no error.
    """

    def __init__(self, address: str, settings: ProbeSettings, *, headers: RequestHeaders) -> None:
        self._url = settings.api.url or address
        self._settings = settings
        self._headers = headers
        self._clients = Clients(settings, headers, self._url, guard_of(address, settings))
        self._end_seen = False
        """Whether a stream ended as it is configured: only then is one that does not cut off by the application."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._clients.aclose()

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_storing: WorthStoring = no_evidence
    ) -> Answer:
        """See `ChatDriver.ask`. Earlier turns and their answers go along as ``{history}``."""
        del name  # there is no evidence to name
        conversation = new_conversation_id()
        history: list[Message] = []
        reply = ApiReply()
        async with self._clients.one() as client:
            for turn in turns:
                reply = await self._one(client, turn, history, conversation)
                history += [{"role": "user", "content": turn}, {"role": "assistant", "content": reply.text}]
        earlier = tuple(message["content"] for message in history[1:-1:2])
        answer = as_answer(self._url, self._settings.api, reply, earlier)
        await worth_storing(answer)
        return answer

    async def _one(
        self, client: httpx.AsyncClient, turn: str, history: list[Message], conversation: str
    ) -> ApiReply:
        api = self._settings.api
        body = filled(json.loads(api.request), turn, history, conversation)
        reply = ApiReply()
        async with answering(reply, self._settings), client.stream("POST", self._url, json=body) as response:
            check_path(response)
            check(response, self._headers)
            reply.headers = response.headers
            if "event-stream" in response.headers.get("content-type", ""):
                await self._read_stream(response, reply)
            else:
                await self._read_whole(response, reply)
        reply.ends()
        return finished(reply, api)

    async def _read_whole(self, response: httpx.Response, reply: ApiReply) -> None:
        document = parsed(self._headers.hidden((await response.aread()).decode("utf-8", "replace")))
        raise_if_error(self._settings.api, document, "")
        reply.documents.append(document)
        reply.grows(text_in(self._settings.api, reply.documents))

    async def _read_stream(self, response: httpx.Response, reply: ApiReply) -> None:
        api = self._settings.api
        last: Event | None = None
        async for event in events_in(lines_in(response.aiter_text())):
            last = event
            if api.done in (event.data, event.name):
                self._end_seen = True
                if event.data != api.done:
                    self._take(event, reply)
                return
            self._take(event, reply)
        without = f"the stream ended without {api.done!r}"
        if self._end_seen or last is None:
            raise AnswerIncomplete(without, partial_text=reply.text)
        raise EndNotFound(f"{without}; {self._shown(last)}: probe.api.done may be wrong", partial_text=reply.text)

    def _shown(self, last: Event) -> str:
        data = clean(self._headers.hidden(last.data))[:SHOWN_CHARACTERS]
        named = f"{last.name!r}, " if last.name != "message" else ""
        return f"its last event was {named}{data}"

    def _take(self, event: Event, reply: ApiReply) -> None:
        document = parsed(self._headers.hidden(event.data))
        raise_if_error(self._settings.api, document, reply.text)
        reply.documents.append(document)
        piece = text_in(self._settings.api, [document])
        if piece:
            reply.grows(reply.text + piece if self._settings.api.joins else piece)


@asynccontextmanager
async def answering(reply: ApiReply, settings: ProbeSettings) -> AsyncGenerator[None]:
    """Turns what can go wrong on the way into its error, with what had arrived."""
    within = f"within {settings.answer_deadline_s:g} s"
    try:
        async with asyncio.timeout(settings.answer_deadline_s):
            yield
    except (TimeoutError, httpx.ReadTimeout) as error:
        if reply.text:
            raise AnswerIncomplete(f"the answer did not end {within}", partial_text=reply.text) from error
        raise AnswerTimeout(f"no answer began {within}") from error
    except httpx.HTTPError as error:
        if reply.text:
            broke = f"the stream broke off: {type(error).__name__}"
            raise AnswerIncomplete(broke, partial_text=reply.text) from error
        raise Unreachable(f"the API does not answer: {type(error).__name__}") from error


def check_path(response: httpx.Response) -> None:
    """Raises `NoSuchPath` where something answers at the address and takes no question at this path."""
    status = response.status_code
    if status in NO_SUCH_PATH:
        raise NoSuchPath(f"HTTP {status} at {clean(response.url.path)}: {NO_SUCH_PATH[status]}")


def check(response: httpx.Response, headers: RequestHeaders) -> None:
    """Raises what an HTTP status means; what concerns a token is for the monitor's owners to fix."""
    status = response.status_code
    if status in REFUSED:
        raise AccessDenied(f"the API answered {headers.refused(status)}")
    if status in WALLS:
        raise AccessDenied(f"the API answered HTTP {status}: a login or quota wall")
    if status >= ERRORS_FROM:
        raise Unreachable(f"the API answered HTTP {status}")


def filled(template: Any, turn: str, history: list[Message], conversation: str) -> Any:
    """The request with the turn in its place; done on parsed JSON, so that no question can break out of it."""
    match template:
        case "{history}":
            return list(history)
        case str():
            return template.replace("{conversation}", conversation).replace("{question}", turn)
        case list():
            return [
                one for item in cast("list[Any]", template) for one in _items(item, turn, history, conversation)
            ]
        case dict():
            fields = cast("dict[str, Any]", template).items()
            return {key: filled(value, turn, history, conversation) for key, value in fields}
        case _:
            return template


def _items(item: Any, turn: str, history: list[Message], conversation: str) -> list[Any]:
    """What an item of a list becomes: ``"{history}"`` becomes its messages, each an item."""
    made = filled(item, turn, history, conversation)
    return made if item == "{history}" else [made]


def parsed(text: str) -> Any:
    """A document, or `PageNotUnderstood` with its beginning."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # deep input recurses
        raise PageNotUnderstood(f"the API answered no JSON: {clean(text[:200])!r}") from error


def raise_if_error(api: ApiSettings, document: Any, partial: str) -> None:
    """`AppErrorShown` when the API says that something went wrong."""
    found = [value for value in items_at(document, api.error) if value] if api.error else []
    if found:
        raise AppErrorShown(f"the API says: {clean(str(found[0]))[:300]}", partial_text=partial)


def rule_of(api: ApiSettings) -> WireRule:
    """The places of things in the response."""
    return WireRule(
        url=".",
        text=api.text,
        citations=api.citations,
        app_path=api.app_path,
        latency_ms=api.latency_ms,
        joins=api.joins,
    )


def text_in(api: ApiSettings, documents: list[Any]) -> str:
    """The text that the documents make together."""
    payload = read_documents(rule_of(api), "", documents)
    return "" if payload is None else payload.text


def finished(reply: ApiReply, api: ApiSettings) -> ApiReply:
    """The reply, if it holds a text; else the path to it is wrong, which is ours to fix.

    Of a stream, its last event seldom has the text: the error shows the one that has the longest.
    """
    if any(values_at(document, api.text) for document in reply.documents):
        return reply
    telling = max(reply.documents, key=longest_text, default=None)
    seen = clean(json.dumps(telling, ensure_ascii=False))[:SHOWN_CHARACTERS]
    where = "in any event; the one with the longest text is" if len(reply.documents) > 1 else "in the response"
    raise AnswerNotFound(f"probe.api.text = {api.text!r} leads nowhere {where} {seen}")


def longest_text(document: Any) -> int:
    """How long the longest text in a document is: the answer is most likely there."""
    match document:
        case str():
            return len(document)
        case list():
            return max(map(longest_text, cast("list[Any]", document)), default=0)
        case dict():
            return max(map(longest_text, cast("dict[str, Any]", document).values()), default=0)
        case _:
            return 0


def as_answer(url: str, api: ApiSettings, reply: ApiReply, earlier: tuple[str, ...]) -> Answer:
    """An answer whose visible text is what was sent: nothing renders it."""
    found = read_whole(rule_of(api), url, reply.documents, reply.headers) or WirePayload(url=url, text=reply.text)
    payload = found.model_copy(
        update={"text": clean(found.text), "citations": tuple(clean(one) for one in found.citations)}
    )
    versions = [one for document in reply.documents for one in items_at(document, api.app_version or "-")]
    return Answer(
        visible_text=reply.text,
        earlier=earlier,
        wire=payload,
        graded_channel=Channel.WIRE,
        timings=Timings(first_token_ms=reply.first_ms, total_ms=reply.total_ms),
        app_path=payload.app_path,
        app_version=clean(str(versions[-1])) if versions else None,
    )
