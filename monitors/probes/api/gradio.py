"""Ask a Gradio app through its HTTP API.

A question takes 20 to 45 ms, compared with about 1 s on the app's page.
"""

from __future__ import annotations

import json
from typing import Any, Self, cast

import httpx

from monitors.errors import AnswerIncomplete, AppErrorShown, PageNotUnderstood
from monitors.json_path import collect_values
from monitors.probes.api.driver import (
    ApiReply,
    Event,
    HttpClientPool,
    apply_deadline_and_translate_errors,
    parse_json,
    parse_server_sent_events,
    raise_if_error_status,
    split_lines,
)
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.build_info import read_build_info
from monitors.probes.driver import Answer, SelectEvidence, create_conversation_id, select_no_evidence
from monitors.probes.settings import ProbeSettings
from monitors.probes.target_guard import build_address_guard
from monitors.records.exchanges import Channel, Timings, WirePayload
from monitors.request_headers import RequestHeaders


class GradioDriver:
    """A `ChatDriver` for the Gradio API ``/gradio_api/call/<function>``. Use it as an async context manager.

    Each conversation has one Gradio session, in which the app remembers the earlier turns.
    """

    def __init__(self, address: str, settings: ProbeSettings, *, headers: RequestHeaders) -> None:
        base = (settings.api.url or address).rstrip("/")
        self._url = f"{base}/gradio_api/call/{settings.api.function}"
        self._settings = settings
        self._headers = headers
        self._clients = HttpClientPool(settings, headers, self._url, build_address_guard(address, settings))

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
        """See `ChatDriver.ask`."""
        del name  # names evidence files, which an API does not have
        session = create_conversation_id()
        async with self._clients.lend_client() as client:
            replies = [await self._ask_turn(client, turn, session) for turn in turns]
        last = replies[-1]
        answer = Answer(
            visible_text=last.text,
            earlier=tuple(reply.text for reply in replies[:-1]),
            wire=WirePayload(url=self._url, text=last.text, build=read_build_info((), last.headers)),
            graded_channel=Channel.WIRE,
            timings=Timings(first_token_ms=last.first_ms, total_ms=last.total_ms),
        )
        await select_evidence(answer)
        return answer

    async def _ask_turn(self, client: httpx.AsyncClient, turn: str, session: str) -> ApiReply:
        reply = ApiReply()
        async with apply_deadline_and_translate_errors(reply, self._settings):
            body = {"data": [turn], "session_hash": session}
            response = await client.post(self._url, json=body)
            raise_if_error_status(response, self._headers)
            reply.headers = response.headers
            body_text = self._headers.hide_secrets(response.text)
            event_ids = [
                value for value in collect_values(parse_json(body_text), "event_id") if isinstance(value, str)
            ]
            if not event_ids:
                raise PageNotUnderstood(
                    f"{self._url} is not a Gradio API: it answered {replace_surrogates(body_text[:200])!r}"
                )
            async with client.stream("GET", f"{self._url}/{event_ids[0]}") as stream:
                raise_if_error_status(stream, self._headers)
                async for event in parse_server_sent_events(split_lines(stream.aiter_text())):
                    if self._add_event_and_check_end(event, reply):
                        reply.finish()
                        return reply
        raise AnswerIncomplete("the stream ended before the answer was complete", partial_text=reply.text)

    def _add_event_and_check_end(self, event: Event, reply: ApiReply) -> bool:
        """Add the text in ``event``, one event of the stream, to the reply.

        Return whether the answer is complete.
        """
        text = self._headers.hide_secrets(event.data)
        match event.name:
            case "generating" | "complete":
                data = parse_json(text)
                reply.documents = [data]
                reply.update_text_and_token_time(extract_gradio_answer(data))
            case "error":
                errors = collect_values(json.loads(text), "error") if text.startswith("{") else []
                message = (
                    replace_surrogates(str(errors[0])) if errors and errors[0] else "the app sent no error message"
                )
                raise AppErrorShown(f"the app reports an error: {message[:300]}", partial_text=reply.text)
            case _:  # a heartbeat
                pass
        return event.name == "complete"


def extract_gradio_answer(data: Any) -> str:
    """Return the answer in ``data``, the output of a Gradio chat function.

    ``data`` is a text or a list of chat messages. Messages of the user and intermediate steps of the app, such as
    tool calls, are omitted.
    """
    outputs = cast("list[Any]", data) if isinstance(data, list) else [data]
    first = outputs[0] if outputs else ""
    messages = cast("list[Any]", first) if isinstance(first, list) else [first]
    return "\n\n".join(text for text in map(_extract_message_text, messages) if text)


def _extract_message_text(message: Any) -> str:
    if isinstance(message, str):
        return message
    if not isinstance(message, dict):
        return "" if message is None else json.dumps(message, ensure_ascii=False)
    fields = cast("dict[str, Any]", message)
    if fields.get("role") == "user" or collect_values(fields, "metadata.title") not in ([], [None], [""]):
        return ""
    content = fields.get("content", fields.get("text", ""))
    pieces = cast("list[Any]", content) if isinstance(content, list) else [content]
    return "".join(part if isinstance(part, str) else _extract_message_text(part) for part in pieces)
