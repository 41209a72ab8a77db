"""Simulate Slack's part of a button click: the signed request to Lookout, and the response URL for its answer."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from aiohttp import web

from tests.servers.slack_rules import wrong_with

if TYPE_CHECKING:
    from tests.servers.slack import Posted, SlackServer

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
FORM = "application/x-www-form-urlencoded"
MAX_ANSWERS = 5


@dataclass
class Answers:
    """The answers that Lookout sent to response URLs. Each URL accepts five answers."""

    server: SlackServer
    whispers: list[dict[str, Any]] = field(default_factory=list)
    _given: dict[str, str] = field(default_factory=dict)
    _used: dict[str, int] = field(default_factory=dict)

    def url_for(self, ts: str) -> str:
        """Return a new response URL that accepts answers about the message with the timestamp ``ts``."""
        token = secrets.token_hex(12)
        self._given[token] = ts
        return f"{self.server.url}/actions/T0TEST/{token}"

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Handle a request to a response URL.

        The answer replaces the message, or is stored in ``whispers`` because only the user who clicked sees it.
        """
        token = request.match_info["token"]
        body = await request.json()
        if early := await self.server.apply_next_fault(request, "response_url"):
            return early
        ts, used = self._given.get(token), self._used.get(token, 0)
        if ts is None or used >= MAX_ANSWERS:
            return web.Response(text="expired_url", status=404)
        if wrong_with(body):
            return web.Response(text="invalid_payload", status=400)
        self._used[token] = used + 1
        if body.get("replace_original"):
            self.server.replace_message(ts, body)
        else:
            self.whispers.append(body)
        return web.Response(text="ok")


def interaction(
    server: SlackServer, message: Posted, action_id: str, *, user: str = "U0ASHA", option: str = "", nth: int = 0
) -> dict[str, Any]:
    """Return the payload of a click on the element ``action_id`` in ``message``, or of a selected menu ``option``.

    If several elements have this id, ``nth`` is the index of the element. Raises `IndexError` if there is none.
    """
    elements = [element for element in _elements(message.blocks) if element.get("action_id") == action_id]
    element = elements[nth]
    action = {key: element[key] for key in ("type", "action_id", "value") if key in element}
    if option:
        action["selected_option"] = next(
            choice for choice in element["options"] if choice["text"]["text"] == option
        )
    return {
        "type": "block_actions",
        "user": {"id": user, "username": "asha", "name": "asha", "team_id": "T0TEST"},
        "api_app_id": "A0LOOKOUT",
        "token": "a-legacy-token",
        "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
        "trigger_id": secrets.token_hex(8),
        "team": {"id": "T0TEST", "domain": "test"},
        "channel": {"id": message.channel, "name": "alerts"},
        "message": {"type": "message", "ts": message.ts, "text": message.text, "blocks": message.blocks},
        "state": {"values": {}},
        "response_url": server.answers.url_for(message.ts),
        "actions": [action | {"block_id": "b", "action_ts": "1800000000.000001"}],
    }


def form_of(payload: Any) -> bytes:
    """Return the payload as the form-encoded request body that Slack sends."""
    return urlencode({"payload": json.dumps(payload)}).encode()


def signed(body: bytes, at: datetime | int, *, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """Return the request headers for ``body``: the time, and Slack's signature over the time and the body."""
    stamp = str(at if isinstance(at, int) else int(at.timestamp()))
    digest = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {
        "content-type": FORM,
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": f"v0={digest}",
        "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
    }


def _elements(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [element for block in blocks for element in block.get("elements", ())]
    return rows + [block["accessory"] for block in blocks if "accessory" in block]
