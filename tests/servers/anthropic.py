"""A local server with Anthropic's Messages and Batches APIs. It records requests and can inject faults.

To start it by hand, run ``python -m tests.servers.anthropic --port 8066``. Set ``base_url`` of ``[judge]`` to the
printed address and ``ANTHROPIC_API_KEY`` to the printed key. ``POST /control`` with ``["429:2", "refusal"]`` plans
faults for the next requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.servers.anthropic_batches import Batch
from tests.servers.anthropic_replies import OVERLOADED, Replies
from tests.servers.anthropic_rules import CONTEXT_TOKENS, TYPE_OF, Refusal, wrong_with, wrong_with_batch
from tests.servers.anthropic_tokens import Prompt, PromptCache
from tests.servers.anthropic_verdicts import RuleJudge
from tests.servers.threaded_server import ThreadedServer

KEY = "sk-ant-api03-a-key-for-tests"
MAX_BYTES = 32 * 2**20
"""The maximum size of a request in bytes. Source: docs.anthropic.com, api/errors."""


@dataclass(frozen=True)
class Asked:
    """A request that the server received. The names of the headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the parsed body."""
        return json.loads(self.body)


class AnthropicServer(ThreadedServer):
    """Anthropic's API on the loopback interface.

    `misbehave` plans one fault for each of the next requests: an HTTP status, with Retry-After seconds if given
    (``429:2``); ``cut`` (closes the connection after half of the reply), ``hang`` (never answers), ``reset``
    (closes the connection immediately), ``html`` (a proxy's page with status 200), ``overloaded_200``, ``refusal``,
    ``truncated``, ``empty``, ``thinking``, ``wrong_model:NAME``, ``ok``, or a name in
    ``anthropic_replies.SPOILED``. ``always`` is a fault for all requests. ``when`` maps a phrase of the prompt to a
    fault. ``batch_faults`` maps the ``custom_id`` of a request in a batch, or ``"first"`` and ``"last"``, to
    ``expired``, ``errored``, ``canceled`` or a fault of the reply.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        judge: RuleJudge | None = None,
        cache: PromptCache | None = None,
        key: str = KEY,
    ) -> None:
        super().__init__(port)
        self.key = key
        self.judge = judge or RuleJudge()
        self.always: str | None = None
        self.when: dict[str, str] = {}
        self.batch_faults: dict[str, str] = {}
        self.batch_looks = 1
        self.batches: dict[str, Batch] = {}
        self.asked: list[Asked] = []
        self.at_once = 0
        self.most_at_once = 0
        self._replies = Replies(self.judge, cache or PromptCache())
        self._faults: deque[str] = deque()
        self._lock = threading.Lock()

    @property
    def messages(self) -> list[Asked]:
        """Return the requests to the Messages API, oldest first. Requests in a batch are not included."""
        return [asked for asked in self.asked if asked.path == "/v1/messages"]

    def misbehave(self, *faults: str) -> None:
        """Plan faults for the next requests."""
        with self._lock:
            self._faults.extend(faults)

    def behave(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()
        self.always = None
        self.when.clear()
        self.batch_faults.clear()

    def fool(self, phrases: Iterable[str]) -> None:
        """Make the server's judge pass every answer that contains one of ``phrases``."""
        self.judge.fooled_by = tuple(phrases)

    def application(self) -> web.Application:
        """Return the routes of both APIs and the route that plans faults."""
        app = web.Application(client_max_size=2 * MAX_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_post("/v1/messages/batches", self._create_batch)
        app.router.add_get("/v1/messages/batches/{id}", self._look_at_batch)
        app.router.add_get("/v1/messages/batches/{id}/results", self._results)
        app.router.add_post("/v1/messages/batches/{id}/cancel", self._cancel)
        app.router.add_post("/control", self._control)
        return app

    async def _control(self, request: web.Request) -> web.Response:
        self.misbehave(*await request.json())
        return web.json_response({"ok": True})

    async def _take(self, request: web.Request) -> bytes:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._lock:
            self.asked.append(Asked(request.path, headers, body))
        return body

    def _next_fault(self, body: bytes) -> str:
        with self._lock:
            planned = self._faults.popleft() if self._faults else None
        text = body.decode("utf-8", "replace")
        planned_fault = next((fault for phrase, fault in self.when.items() if phrase in text), None)
        return planned or planned_fault or self.always or "ok"

    def _stranger(self, request: web.Request, body: bytes) -> Refusal | None:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key not in (bearer, request.headers.get("x-api-key")):  # the SDK sends the first since 2.x
            return Refusal("authentication_error", "invalid x-api-key")
        if "anthropic-version" not in request.headers:
            return Refusal("invalid_request_error", "anthropic-version: header is required")
        if len(body) > MAX_BYTES:
            return Refusal("request_too_large", "Request exceeds the maximum size")
        return None

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request)
        fault = self._next_fault(body)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._misbehaved(request, fault) or self._answered(request, body, fault)
        finally:
            self.at_once -= 1

    async def _misbehaved(self, request: web.Request, fault: str) -> web.StreamResponse | None:
        name, _, argument = fault.partition(":")
        if name.isdigit():
            refusal = Refusal(TYPE_OF.get(int(name), "api_error"), f"status {name}, as planned")
            headers = {"retry-after": argument} if argument else {}
            return web.json_response(refusal.body(), status=int(name), headers=headers)
        match name:
            case "hang":
                await self.closing.wait()
                return web.Response(status=503)
            case "reset":
                _drop(request)
                return web.Response(status=503)
            case "cut":
                return await self._cut(request)
            case "html":
                return web.Response(text="<html>Please sign in</html>", content_type="text/html")
            case "overloaded_200":
                return web.json_response(OVERLOADED)
            case _:
                return None

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "4000"})
        await response.prepare(request)
        await response.write(b'{"id":"msg_cut","type":"message","role":"assistant","content":[{"type":"te')
        _drop(request)
        return response

    def _answered(self, request: web.Request, raw: bytes, fault: str) -> web.Response:
        refusal = self._stranger(request, raw)
        body = None if refusal else _read(raw)
        refusal = refusal or wrong_with(body)
        if refusal is None and Prompt.of(body).count() > CONTEXT_TOKENS:
            refusal = Refusal("invalid_request_error", f"prompt is too long: maximum is {CONTEXT_TOKENS} tokens")
        if refusal is not None:
            return web.json_response(refusal.body(), status=refusal.status)
        with self._lock:
            message = self._replies.message(body, fault)
        return web.json_response(message, headers={"request-id": f"req_{message['id']}"})

    async def _count_tokens(self, request: web.Request) -> web.Response:
        body = await self._take(request)
        refusal = self._stranger(request, body)
        if refusal is not None:
            return web.json_response(refusal.body(), status=refusal.status)
        return web.json_response({"input_tokens": Prompt.of(_read(body)).count()})

    async def _create_batch(self, request: web.Request) -> web.StreamResponse:
        raw = await self._take(request)
        misbehaved = await self._misbehaved(request, self._next_fault(raw))
        if misbehaved is not None:
            return misbehaved
        refusal = self._stranger(request, raw) or wrong_with_batch(_read(raw))
        if refusal is not None:
            return web.json_response(refusal.body(), status=refusal.status)
        requests = _read(raw)["requests"]
        named = {"first": requests[0]["custom_id"], "last": requests[-1]["custom_id"]}
        faults = {named.get(name, name): fault for name, fault in self.batch_faults.items()}
        batch = Batch(f"msgbatch_test{len(self.batches)}", requests, faults, self.batch_looks)
        self.batches[batch.id] = batch
        return web.json_response(batch.shown(self.url))

    async def _look_at_batch(self, request: web.Request) -> web.StreamResponse:
        misbehaved = await self._misbehaved(request, self._next_fault(await self._take(request)))
        if misbehaved is not None:
            return misbehaved
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response(Refusal("not_found_error", "no such batch").body(), status=404)
        with self._lock:
            batch.look(self._replies)
        return web.json_response(batch.shown(self.url))

    async def _results(self, request: web.Request) -> web.StreamResponse:
        await self._take(request)
        batch = self.batches[request.match_info["id"]]
        return web.Response(body=batch.lines(), content_type="application/x-jsonl")

    async def _cancel(self, request: web.Request) -> web.Response:
        await self._take(request)
        batch = self.batches[request.match_info["id"]]
        batch.canceled = True
        return web.json_response(batch.shown(self.url))


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _drop(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _until_interrupted() -> None:
    await asyncio.Event().wait()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Anthropic's APIs on loopback, with a judge that needs no model")
    parser.add_argument("--port", type=int, default=8066)
    parser.add_argument("--passes-all", action="store_true", help="a judge that was talked round by everything")
    arguments = parser.parse_args()
    with AnthropicServer(arguments.port, judge=RuleJudge(passes_all=arguments.passes_all)) as server:
        print(f"base_url = {server.url}\nANTHROPIC_API_KEY={KEY}", flush=True)
        try:
            asyncio.run(_until_interrupted())
        except KeyboardInterrupt:
            print(f"{len(server.asked)} requests")


if __name__ == "__main__":
    main()
