"""A local server with the part of Slack's Web API that Lookout uses. It records messages and can inject faults.

To start it by hand, run ``python -m tests.servers.slack --port 8065 --log slack.jsonl``. Then set ``slack_api_url``
to the printed address, or use its webhook. ``POST /control`` with ``["429:2", "lost"]`` plans faults for the next
requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.servers import slack_uploads
from tests.servers.slack_interaction import Answers
from tests.servers.slack_rules import mentions, wrong_with
from tests.servers.threaded_server import ThreadedServer

TOKEN = "xoxb-1111-2222-a-token-for-tests"
WEBHOOK_PATH = "/services/T0TEST/B0TEST/a-secret-for-tests"
CHANNELS = {"C0ALERTS": "alerts", "C0MONITOR": "monitor", "C0SECOND": "second"}


@dataclass(frozen=True)
class Posted:
    """A message that Slack accepted, through the API or a webhook. ``channel`` is the id of the channel."""

    ts: str
    channel: str
    text: str
    blocks: list[dict[str, Any]]
    thread_ts: str | None = None
    broadcast: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    by: str = "bot"
    edits: int = 0
    rings: list[str] = field(default_factory=list)


class SlackServer(ThreadedServer):
    """Slack on the loopback interface.

    `misbehave` plans one fault for each of the next requests: ``429:2`` (Retry-After 2), any other HTTP status,
    ``lost`` (accepts the message, then closes the connection), ``hang`` (accepts nothing and never answers),
    ``slow`` (accepts the message and never answers), ``reset`` (closes the connection immediately), ``html`` (a
    proxy's page with status 200), ``ok`` (no fault), or the name of a Slack error (``token_revoked``). ``always``
    is the fault of all requests without a planned one.
    """

    def __init__(self, port: int = 0, log: Path | None = None) -> None:
        super().__init__(port)
        self.always: str | None = None
        self.requests: list[str] = []
        self.answers = Answers(self)
        self.uploads = slack_uploads.Uploads(self)
        self.refusing: dict[str, str] = {}
        """Maps each channel that accepts no messages to the name of Slack's error."""
        self._log = log
        self._faults: deque[str] = deque()
        self._messages: dict[str, Posted] = {}
        self._lock = threading.Lock()
        self._asked = threading.Condition(self._lock)
        self._taken = threading.Condition()
        self._clock = 1_800_000_000

    @property
    def api_url(self) -> str:
        """Return the URL of the Web API, for the setting ``slack_api_url``."""
        return f"{self.url}/api/"

    @property
    def webhook_url(self) -> str:
        """Return the URL of an incoming webhook for the channel ``alerts``."""
        return self.url + WEBHOOK_PATH

    @property
    def messages(self) -> list[Posted]:
        """Return the accepted messages, oldest first."""
        with self._lock:
            return list(self._messages.values())

    def forget(self, ts: str) -> None:
        """Delete the message with the timestamp ``ts``, as a user can in Slack."""
        with self._lock:
            del self._messages[ts]

    def thread(self, ts: str) -> list[Posted]:
        """Return the replies in the thread of the message with the timestamp ``ts``."""
        return [message for message in self.messages if message.thread_ts == ts]

    def misbehave(self, *faults: str) -> None:
        """Plan faults for the next requests."""
        with self._lock:
            self._faults.extend(faults)

    def wait_for(self, method: str, timeout_s: float = 60.0) -> bool:
        """Block until the API method ``method`` has been called. Return false after ``timeout_s`` seconds."""
        with self._asked:
            return self._asked.wait_for(lambda: method in self.requests, timeout_s)

    def wait_until(self, true: Callable[[], bool], timeout_s: float = 60.0) -> bool:
        """Block until ``true()`` returns true, which is checked after each accepted message.

        Return false after ``timeout_s`` seconds.
        """
        with self._taken:
            return self._taken.wait_for(true, timeout_s)

    def behave(self) -> None:
        """Remove the planned faults."""
        with self._lock:
            self._faults.clear()

    def application(self) -> web.Application:
        """Return the application: Web API, webhooks, response URLs, uploads, and ``/control`` to plan faults."""
        app = web.Application(client_max_size=2**22)
        app.router.add_post("/api/{method}", self._api)
        app.router.add_get("/api/{method}", self._api)
        app.router.add_post("/services/{team}/{bot}/{secret}", self._webhook)
        app.router.add_post("/actions/{team}/{token}", self.answers.take)
        app.router.add_post("/upload/{file}", self.uploads.take)
        app.router.add_post("/control", self._control)
        return app

    async def _control(self, request: web.Request) -> web.Response:
        self.misbehave(*await request.json())
        return web.json_response({"ok": True})

    async def apply_next_fault(self, request: web.Request, method: str) -> web.StreamResponse | None:
        """Apply the next planned fault to a call of ``method``, and return its response.

        Return ``None`` if no fault is planned, or if the fault accepts the message.
        """
        return await self._misbehaved(request, self._next_fault(method))

    def replace_message(self, ts: str, body: dict[str, Any]) -> None:
        """Replace the message with the timestamp ``ts`` with ``body``."""
        old = self._messages[ts]
        text, blocks = body.get("text", ""), body.get("blocks") or []
        self._keep(replace(old, text=text, blocks=blocks, edits=old.edits + 1, rings=mentions(body)))

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        body = await self._body(request)
        fault = self._next_fault(method)
        if early := await self._misbehaved(request, fault):
            return early
        if fault and fault not in {"lost", "slow", "ok"}:
            return web.json_response({"ok": False, "error": fault})
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        answer = self._answer(method, body)
        await self._swallow_reply(request, fault)
        return web.json_response(answer)

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        fault = self._next_fault("webhook")
        if early := await self._misbehaved(request, fault):
            return early
        if fault and fault not in {"lost", "slow", "ok"}:
            return web.Response(text=fault, status=404 if fault == "no_service" else 403)
        if request.path != WEBHOOK_PATH:
            return web.Response(text="invalid_token", status=403)
        if wrong_with(body):
            return web.Response(text="invalid_payload", status=400)
        self._take(body, channel="C0ALERTS", by="webhook")
        await self._swallow_reply(request, fault)
        return web.Response(text="ok")

    async def _body(self, request: web.Request) -> dict[str, Any]:
        if request.content_type == "application/json":
            return dict(request.query) | await request.json()
        return dict(request.query) | dict(await request.post())

    def _next_fault(self, method: str) -> str | None:
        with self._lock:
            self.requests.append(method)
            self._asked.notify_all()
            return self._faults.popleft() if self._faults else self.always

    async def _misbehaved(self, request: web.Request, fault: str | None) -> web.StreamResponse | None:
        """Return the response of a fault that accepts no message, or ``None`` for other faults."""
        status, _, wait = (fault or "").partition(":")
        if status == "429":
            headers = {"Retry-After": wait or "0"}
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
        if status.isdecimal():
            return web.Response(text="<html>upstream error</html>", status=int(status), content_type="text/html")
        if fault == "html":
            return web.Response(text="<html>please log in to the network</html>", content_type="text/html")
        if fault == "hang":
            await self.closing.wait()
        if fault in {"reset", "hang"}:
            _drop(request)
            return web.Response(status=500)
        return None

    async def _swallow_reply(self, request: web.Request, fault: str | None) -> None:
        if fault == "slow":
            await self.closing.wait()
        if fault in {"lost", "slow"}:
            _drop(request)

    def _answer(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"ok": True, "user": "lookout", "team": "Test", "user_id": "U0BOT"}
            case "chat.postMessage":
                return self._post(body)
            case "chat.update":
                return self._update(body)
            case _ if method in slack_uploads.METHODS:
                return self.uploads.answer(method, body)
            case "conversations.history" | "conversations.replies":
                return self._history(method, body)
            case _:
                return {"ok": False, "error": "unknown_method"}

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = _channel_id(body.get("channel", ""))
        if channel is None:
            return {"ok": False, "error": "channel_not_found"}
        if error := self.refusing.get(channel) or wrong_with(body):
            return {"ok": False, "error": error}
        parent = body.get("thread_ts")
        if parent and parent not in self._messages:
            return {"ok": False, "error": "thread_not_found"}
        posted = self._take(body, channel=channel, by="bot")
        return {"ok": True, "channel": channel, "ts": posted.ts, "message": {"text": posted.text}}

    def _update(self, body: dict[str, Any]) -> dict[str, Any]:
        old = self._messages.get(body.get("ts", ""))
        if old is None or old.channel != body.get("channel"):
            return {"ok": False, "error": "message_not_found"}
        if error := wrong_with(body):
            return {"ok": False, "error": error}
        self.replace_message(old.ts, body)
        return {"ok": True, "channel": old.channel, "ts": old.ts}

    def _history(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("channel") not in CHANNELS:
            return {"ok": False, "error": "channel_not_found"}
        parent = body.get("ts") if method.endswith("replies") else None
        messages = [
            {"ts": message.ts, "text": message.text, "metadata": message.metadata}
            for message in reversed(self.messages)
            if message.channel == body["channel"] and message.thread_ts == parent
        ]
        return {"ok": True, "messages": messages[: int(body.get("limit", 100))], "has_more": False}

    def _take(self, body: dict[str, Any], *, channel: str, by: str) -> Posted:
        with self._lock:
            self._clock += 1
            ts = f"{self._clock}.000100"
        posted = Posted(
            ts=ts,
            channel=channel,
            text=body.get("text") or "",
            blocks=body.get("blocks") or [],
            thread_ts=body.get("thread_ts"),
            broadcast=bool(body.get("reply_broadcast")),
            metadata=body.get("metadata") or {},
            by=by,
            rings=mentions(body),
        )
        self._keep(posted)
        return posted

    def _keep(self, posted: Posted) -> None:
        with self._lock:
            self._messages[posted.ts] = posted
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps({"at": time.time(), **asdict(posted)}, ensure_ascii=False) + "\n")
        with self._taken:
            self._taken.notify_all()


def _channel_id(name: str) -> str | None:
    by_name = {channel_name: number for number, channel_name in CHANNELS.items()}
    return name if name in CHANNELS else by_name.get(name.removeprefix("#"))


def _drop(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Slack on loopback, for trying alerts out")
    parser.add_argument("--port", type=int, default=8065)
    parser.add_argument("--log", type=Path, default=None, help="append every message as a JSON line, with when")
    arguments = parser.parse_args()
    with SlackServer(arguments.port, arguments.log) as slack:
        print(
            f"slack_api_url = {slack.api_url}\ntoken = {TOKEN}\nchannel = C0ALERTS\nwebhook = {slack.webhook_url}",
            flush=True,
        )
        try:
            asyncio.run(asyncio.Event().wait())
        except KeyboardInterrupt:
            print(f"{len(slack.messages)} messages")


if __name__ == "__main__":
    main()
