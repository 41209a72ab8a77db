"""A local server with the part of OpenAI's chat API that a judge uses. A `RuleJudge` gives the verdicts."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from typing import Any

from aiohttp import web

from tests.servers.anthropic_tokens import tokens
from tests.servers.anthropic_verdicts import RuleJudge, as_text
from tests.servers.threaded_server import ThreadedServer

KEY = "sk-a-key-for-tests"
MIN_PREFIX_TOKENS, PREFIX_STEP = 1_024, 128
"""The minimum length of a cached prefix, and the step by which it grows, in tokens.

Source: OpenAI's guide on prompt caching. OpenAI caches prefixes automatically.
"""


_MISCOUNTED: dict[str, dict[str, Any]] = {
    "usage_text": {"prompt_tokens": "many"},
    "usage_negative": {"completion_tokens": -5},
    "usage_huge": {"prompt_tokens": 10**30},
    "usage_cached_text": {"prompt_tokens_details": {"cached_tokens": "half"}},
}
"""Invalid token counts, keyed by the name of the fault."""


class OpenAIServer(ThreadedServer):
    """OpenAI's chat API on the loopback interface.

    `misbehave` plans one fault for each of the next requests: an HTTP status, with Retry-After seconds if given
    (``429:0``); ``refusal``, ``content_filter``, ``length``, ``no_choice``, ``no_usage``, ``html``, ``hang``,
    ``reset``, ``wrong_model:NAME``, ``ok``, or the name of an invalid token count. ``cache_share`` is the share of
    the requests that find a repeated prefix in the cache. If it is ``None``, half of every prompt is cached.
    """

    def __init__(self, *, judge: RuleJudge | None = None, cache_share: float | None = None) -> None:
        super().__init__()
        self.judge = judge or RuleJudge()
        self.cache_share = cache_share
        self._known: set[str] = set()
        self.asked: list[dict[str, Any]] = []
        self.always: str | None = None
        self._faults: deque[str] = deque()

    def misbehave(self, *faults: str) -> None:
        """Plan faults for the next requests."""
        self._faults.extend(faults)

    def application(self) -> web.Application:
        """Return the application with the route of the API."""
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        fault = (self._faults.popleft() if self._faults else None) or self.always or "ok"
        name, _, argument = fault.partition(":")
        if name.isdigit():
            headers = {"retry-after": argument} if argument else {}
            return web.json_response({"error": {"message": "as planned"}}, status=int(name), headers=headers)
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "Incorrect API key provided"}}, status=401)
        match name:
            case "html":
                return web.Response(text="<html>Please sign in</html>", content_type="text/html")
            case "hang":
                await self.closing.wait()
                return web.Response(status=503)
            case "reset":
                if request.transport is not None:
                    request.transport.abort()
                return web.Response(status=503)
            case _:
                return web.json_response(self._completion(body, name, argument))

    def _completion(self, body: dict[str, Any], fault: str, argument: str) -> dict[str, Any]:
        wanted = body["response_format"]["json_schema"]["schema"]["properties"]
        text = as_text(self.judge.verdict(body["messages"][-1]["content"], wanted))
        message = {"role": "assistant", "content": None if fault == "refusal" else text, "refusal": None}
        if fault == "refusal":
            message["refusal"] = "I can't help with that."
        finish = fault if fault in {"length", "content_filter"} else "stop"
        schema = tokens(json.dumps(body["response_format"]))
        prompt_tokens = schema + sum(tokens(message["content"]) for message in body["messages"])
        usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": tokens(text),
            "total_tokens": prompt_tokens + tokens(text),
        }
        completion: dict[str, Any] = {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 1_800_000_000,
            "model": argument if fault == "wrong_model" else body["model"],
            "choices": [] if fault == "no_choice" else [{"index": 0, "message": message, "finish_reason": finish}],
        }
        if fault != "no_usage":
            cached = (
                prompt_tokens // 2 if self.cache_share is None else self._cached(body, schema, self.cache_share)
            )
            completion["usage"] = usage | {"prompt_tokens_details": {"cached_tokens": cached}}
        if fault in _MISCOUNTED:
            completion["usage"] |= _MISCOUNTED[fault]
        return completion

    def _cached(self, body: dict[str, Any], schema: int, share: float) -> int:
        """Return the number of cached prompt tokens: those of a repeated prefix before the last message, or 0."""
        before = json.dumps([body["model"], body["response_format"], body["messages"][:-1]])
        prefix = schema + sum(tokens(message["content"]) for message in body["messages"][:-1])
        last = hashlib.sha256(json.dumps(body["messages"][-1]).encode()).digest()[0]
        is_known = before in self._known and last / 256 < share
        self._known.add(before)
        return prefix // PREFIX_STEP * PREFIX_STEP if is_known and prefix >= MIN_PREFIX_TOKENS else 0
