"""Asks a chat API over HTTP (V4): JSON in, JSON or an event stream out. No browser, and no page to photograph."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Self, cast
from uuid import uuid4

import httpx

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    PageNotUnderstood,
    Unreachable,
)
from monitors.json_path import values_at
from monitors.probes.address_guard import guard_of
from monitors.probes.clients import Clients
from monitors.probes.driver import Answer, WorthKeeping, nothing_kept
from monitors.probes.inpage import clean
from monitors.probes.settings import ApiSettings, ProbeSettings
from monitors.probes.sse import Event, events_in, lines_in
from monitors.probes.wire import WireRule, read_documents
from monitors.records.exchanges import Channel, Timings, WirePayload

WALLS = (401, 402, 403, 407, 429)
ERRORS_FROM = 400
Message = dict[str, str]


class Reply:
    """An answer while it arrives."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.first_ms: float | None = None
        self.documents: list[Any] = []
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
    """A `ChatDriver` over a JSON API, streaming or not: the response's type tells. An async context manager.

    `headers` carry what authenticates; they appear in no record and no error.
    """

    def __init__(self, address: str, settings: ProbeSettings, *, headers: Mapping[str, str] | None = None) -> None:
        self._url = settings.api.url or address
        self._settings = settings
        self._clients = Clients(settings, headers, guard_of(address, settings))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._clients.aclose()

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_keeping: WorthKeeping = nothing_kept
    ) -> Answer:
        """See `ChatDriver.ask`. Earlier turns and their answers go along as ``{history}``."""
        del name  # there is no evidence to name
        conversation = uuid4().hex
        history: list[Message] = []
        reply = Reply()
        async with self._clients.one() as client:
            for turn in turns:
                reply = await self._one(client, turn, history, conversation)
                history += [{"role": "user", "content": turn}, {"role": "assistant", "content": reply.text}]
        earlier = tuple(message["content"] for message in history[1:-1:2])
        answer = as_answer(self._url, self._settings.api, reply, earlier)
        await worth_keeping(answer)
        return answer

    async def _one(self, client: httpx.AsyncClient, turn: str, history: list[Message], conversation: str) -> Reply:
        api = self._settings.api
        body = filled(json.loads(api.request), turn, history, conversation)
        reply = Reply()
        async with answering(reply, self._settings), client.stream("POST", self._url, json=body) as response:
            await check(response)
            if "event-stream" in response.headers.get("content-type", ""):
                await self._read_stream(response, reply)
            else:
                await self._read_whole(response, reply)
        reply.ends()
        return finished(reply, api)

    async def _read_whole(self, response: httpx.Response, reply: Reply) -> None:
        document = parsed((await response.aread()).decode("utf-8", "replace"))
        raise_if_error(self._settings.api, document, "")
        reply.documents.append(document)
        reply.grows(text_in(self._settings.api, reply.documents))

    async def _read_stream(self, response: httpx.Response, reply: Reply) -> None:
        api = self._settings.api
        async for event in events_in(lines_in(response.aiter_text())):
            if api.done in (event.data, event.name):
                if event.data != api.done:
                    self._take(event, reply)
                return
            self._take(event, reply)
        raise AnswerIncomplete(f"the stream ended without {api.done!r}", partial_text=reply.text)

    def _take(self, event: Event, reply: Reply) -> None:
        document = parsed(event.data)
        raise_if_error(self._settings.api, document, reply.text)
        reply.documents.append(document)
        piece = text_in(self._settings.api, [document])
        if piece:
            reply.grows(reply.text + piece if self._settings.api.joins else piece)


@asynccontextmanager
async def answering(reply: Reply, settings: ProbeSettings) -> AsyncGenerator[None]:
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


async def check(response: httpx.Response) -> None:
    """Raises what an HTTP status means."""
    status = response.status_code
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
            return [filled(item, turn, history, conversation) for item in cast("list[Any]", template)]
        case dict():
            items = cast("dict[str, Any]", template).items()
            return {key: filled(value, turn, history, conversation) for key, value in items}
        case _:
            return template


def parsed(text: str) -> Any:
    """A document, or `PageNotUnderstood` with its beginning."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # deep input recurses
        raise PageNotUnderstood(f"the API answered no JSON: {clean(text[:200])!r}") from error


def raise_if_error(api: ApiSettings, document: Any, partial: str) -> None:
    """`AppErrorShown` when the API says that something went wrong."""
    found = [value for value in values_at(document, api.error) if value] if api.error else []
    if found:
        raise AppErrorShown(f"the API says: {clean(str(found[0]))[:300]}", partial_text=partial)


def rule_of(api: ApiSettings) -> WireRule:
    """Where things stand in the response."""
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


def finished(reply: Reply, api: ApiSettings) -> Reply:
    """The reply, if it holds a text; else the path to it is wrong, which is ours to mend."""
    if any(values_at(document, api.text) for document in reply.documents):
        return reply
    seen = clean(json.dumps(reply.documents[-1] if reply.documents else None, ensure_ascii=False))[:200]
    raise PageNotUnderstood(f"probe.api.text = {api.text!r} leads nowhere in the response {seen}")


def as_answer(url: str, api: ApiSettings, reply: Reply, earlier: tuple[str, ...]) -> Answer:
    """An answer whose visible text is what was sent: nobody draws it."""
    wire = read_documents(rule_of(api), url, reply.documents) or WirePayload(url=url, text=reply.text)
    wire = wire.model_copy(
        update={"text": clean(wire.text), "citations": tuple(clean(one) for one in wire.citations)}
    )
    versions = [one for document in reply.documents for one in values_at(document, api.app_version or "-")]
    return Answer(
        visible_text=reply.text,
        earlier=earlier,
        wire=wire,
        graded_channel=Channel.WIRE,
        timings=Timings(first_token_ms=reply.first_ms, total_ms=reply.total_ms),
        app_path=wire.app_path,
        app_version=clean(str(versions[-1])) if versions else None,
    )
