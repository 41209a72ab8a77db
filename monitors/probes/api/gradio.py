"""Asks a Gradio app by its own HTTP API (V4): 20 to 45 ms a question, where its page costs a second of CPU."""

from __future__ import annotations

import json
from typing import Any, Self, cast

import httpx

from monitors.errors import AnswerIncomplete, AppErrorShown, PageNotUnderstood
from monitors.json_path import values_at
from monitors.probes.address_guard import guard_of
from monitors.probes.api.driver import ApiReply, Clients, Event, answering, check, events_in, lines_in, parsed
from monitors.probes.browser.inpage import clean
from monitors.probes.build_info import build_info
from monitors.probes.driver import Answer, WorthStoring, new_conversation_id, no_evidence
from monitors.probes.settings import ProbeSettings
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.request_headers import RequestHeaders


class GradioDriver:
    """A `ChatDriver` over ``/gradio_api/call/<function>`` and its event stream. An async context manager.

    A conversation has one session, in which a ChatInterface remembers the turns before.
    """

    def __init__(self, address: str, settings: ProbeSettings, *, headers: RequestHeaders) -> None:
        base = (settings.api.url or address).rstrip("/")
        self._url = f"{base}/gradio_api/call/{settings.api.function}"
        self._settings = settings
        self._headers = headers
        self._clients = Clients(settings, headers, self._url, guard_of(address, settings))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._clients.aclose()

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_storing: WorthStoring = no_evidence
    ) -> Answer:
        """See `ChatDriver.ask`."""
        del name  # there is no evidence to name
        session = new_conversation_id()
        async with self._clients.one() as client:
            replies = [await self._one(client, turn, session) for turn in turns]
        last = replies[-1]
        answer = Answer(
            visible_text=last.text,
            earlier=tuple(reply.text for reply in replies[:-1]),
            wire=WirePayload(url=self._url, text=last.text, build=build_info((), last.headers)),
            graded_channel=Channel.WIRE,
            timings=Timings(first_token_ms=last.first_ms, total_ms=last.total_ms),
        )
        await worth_storing(answer)
        return answer

    async def _one(self, client: httpx.AsyncClient, turn: str, session: str) -> ApiReply:
        reply = ApiReply()
        async with answering(reply, self._settings):
            body = {"data": [turn], "session_hash": session}
            asked = await client.post(self._url, json=body)
            check(asked, self._headers)
            reply.headers = asked.headers
            said = self._headers.hidden(asked.text)
            event_id = [one for one in values_at(parsed(said), "event_id") if isinstance(one, str)]
            if not event_id:
                raise PageNotUnderstood(f"no Gradio API: {self._url} answered {clean(said[:200])!r}")
            async with client.stream("GET", f"{self._url}/{event_id[0]}") as stream:
                check(stream, self._headers)
                async for event in events_in(lines_in(stream.aiter_text())):
                    if self._take(event, reply):
                        reply.ends()
                        return reply
        raise AnswerIncomplete("the stream ended before the answer did", partial_text=reply.text)

    def _take(self, event: Event, reply: ApiReply) -> bool:
        """Whether the answer is whole."""
        text = self._headers.hidden(event.data)
        match event.name:
            case "generating" | "complete":
                data = parsed(text)
                reply.documents = [data]
                reply.grows(message_text(data))
            case "error":
                errors = values_at(json.loads(text), "error") if text.startswith("{") else []
                said = clean(str(errors[0])) if errors and errors[0] else "an error without words"
                raise AppErrorShown(f"the app says: {said[:300]}", partial_text=reply.text)
            case _:  # a heartbeat
                pass
        return event.name == "complete"


def message_text(data: Any) -> str:
    """The text of what a chat function returned: a string, or messages without the steps that led to them."""
    outputs = cast("list[Any]", data) if isinstance(data, list) else [data]
    first = outputs[0] if outputs else ""
    messages = cast("list[Any]", first) if isinstance(first, list) else [first]
    return "\n\n".join(text for text in map(_content, messages) if text)


def _content(message: Any) -> str:
    if isinstance(message, str):
        return message
    if not isinstance(message, dict):
        return "" if message is None else json.dumps(message, ensure_ascii=False)
    known = cast("dict[str, Any]", message)
    if known.get("role") == "user" or values_at(known, "metadata.title") not in ([], [None], [""]):
        return ""
    content = known.get("content", known.get("text", ""))
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    return "".join(part if isinstance(part, str) else _content(part) for part in parts)
