"""Chat front ends from npm, each on its own page, and the protocols of their requests.

`make frontends` builds a script for each from `frontends/package-lock.json`; it needs npm.
"""

from __future__ import annotations

import itertools
import json
import queue
import time
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.zoo import bot
from tests.zoo.websocket import Socket

if TYPE_CHECKING:
    from tests.zoo.server import Handler

BUILT: Final = Path(__file__).parents[2] / ".cache" / "zoo" / "frontends" / "built"
TYPES: Final = {".css": "text/css", ".js": "text/javascript"}
PLACE: Final = "/frontends/"
"""The path below which the pages, their scripts and their API are served."""
SUGGESTED: Final = {
    "suggestedActions": {
        "actions": [{"type": "imBack", "title": title, "value": title} for title in ("Plans", "Claims in 30 days")]
    }
}


def answer_get(handler: Handler, path: str) -> None:
    """Answer a GET request: a page, its script or style sheet, or the activities of a Direct Line conversation."""
    match path.removeprefix(PLACE).split("/"):
        case ["directline", "socket", conversation]:
            _send_activities(handler, handler.subscribers[conversation])
        case ["directline", "conversations", conversation, "activities"]:
            inbox = handler.subscribers[conversation]
            handler.send(200, "application/json", _group(inbox.get() for _ in range(inbox.qsize())))
        case [name] if (file := BUILT / name).is_file():
            handler.send(200, f"{TYPES[file.suffix]}; charset=utf-8", file.read_text(encoding="utf-8"))
        case [name] if (BUILT / f"{name}.js").is_file():
            style = f"<link rel=stylesheet href={name}.css>" if (BUILT / f"{name}.css").is_file() else ""
            page = f"<!doctype html><title>Chat</title>{style}<body><script src={name}.js></script>"
            handler.send(200, "text/html; charset=utf-8", page)
        case _:
            handler.send(404, "text/html", "not found")


def answer_post(handler: Handler, path: str, _query: str, body: str) -> None:
    """Answer a POST request in the protocol of the front end."""
    payload = json.loads(body or "{}")
    match path.removeprefix(PLACE).split("/"):
        case ["assistant_ui"]:
            _stream(handler, "text/plain; charset=utf-8", bot.tokens(payload["question"]))
        case ["deep_chat"]:
            pieces = bot.tokens(payload["messages"][-1]["text"])
            _stream(handler, "text/event-stream", (f"data: {json.dumps({'text': piece})}\n\n" for piece in pieces))
        case ["deep_chat", "whole"]:
            handler.send(200, "application/json", json.dumps({"text": _wait(payload["messages"][-1]["text"])}))
        case ["n8n_chat", *_] if payload["action"] == "loadPreviousSession":
            handler.send(200, "application/json", '{"data": []}')
        case ["n8n_chat"]:
            _stream(handler, "application/json", _list_chunks(payload["chatInput"]))
        case ["n8n_chat", "whole"]:
            handler.send(200, "application/json", json.dumps({"output": _wait(payload["chatInput"])}))
        case ["directline", "conversations"]:
            name = uuid.uuid4().hex
            address = f"ws://{handler.headers['Host']}{PLACE}directline/socket/{name}"
            begun = {"conversationId": name, "token": "local", "expires_in": 3600, "streamUrl": address}
            inbox = handler.subscribers[name] = queue.Queue()
            _say(
                inbox,
                {"type": "message", "text": "Hello! Ask me about your **policy**, 24 hours a day."} | SUGGESTED,
            )
            handler.send(201, "application/json", json.dumps(begun))
        case ["directline", "conversations", name, "activities"]:
            activity = payload | {"id": uuid.uuid4().hex}
            handler.send(200, "application/json", json.dumps({"id": activity["id"]}))
            _answer_activity(handler.subscribers[name], activity)
        case _:
            handler.send(404, "text/plain", "not found")


def _wait(question: str) -> str:
    """Wait as long as the pieces of the answer take, and then return the whole answer."""
    return "".join(bot.tokens(question))


def _list_chunks(question: str) -> Iterator[str]:
    """Return the lines of a streaming response, in the format of an n8n workflow."""
    node = {"nodeId": "1", "nodeName": "AI Agent", "runIndex": 0, "itemIndex": 0}
    items = ({"type": "item", "content": piece} for piece in bot.tokens(question))
    for chunk in itertools.chain([{"type": "begin"}], items, [{"type": "end"}]):
        yield json.dumps(chunk | {"metadata": node | {"timestamp": round(time.time() * 1000)}}) + "\n"


def _answer_activity(inbox: queue.Queue[str], asked: dict[str, Any]) -> None:
    """Send the user's activity back with its id, as Direct Line does. Then send the growing answer."""
    inbox.put(json.dumps(asked))
    if asked["type"] != "message":
        return
    _say(inbox, {"type": "typing"})
    stream = uuid.uuid4().hex
    for number, text in enumerate(bot.growing(asked["text"])):
        channel = {"streamType": "streaming", "streamSequence": number + 1} | (
            {"streamId": stream} if number else {}
        )
        _say(inbox, {"type": "typing", "text": text, "channelData": channel} | ({} if number else {"id": stream}))
    channel = {"streamType": "final", "streamId": stream}
    _say(inbox, {"type": "message", "text": bot.reply(asked["text"]), "channelData": channel} | SUGGESTED)


def _say(inbox: queue.Queue[str], activity: dict[str, Any]) -> None:
    """Add an activity of the bot to its conversation."""
    sender = {"from": {"id": "bot", "name": "Suraj", "role": "bot"}, "channelId": "directline"}
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    inbox.put(json.dumps({"id": uuid.uuid4().hex, "timestamp": now} | sender | activity))


def _group(activities: Iterable[str]) -> str:
    return f'{{"activities": [{", ".join(activities)}], "watermark": "0"}}'


def _send_activities(handler: Handler, inbox: queue.Queue[str]) -> None:
    """Send the activities of a conversation over a web socket until the browser disconnects."""
    socket = Socket(handler)
    try:
        while True:
            socket.send(_group([inbox.get(timeout=60)]))
    except (queue.Empty, OSError):
        socket.close()


def _stream(handler: Handler, kind: str, pieces: Iterable[str]) -> None:
    """Send the pieces as chunks of one response."""
    handler.begin_chunks(kind)
    for piece in pieces:
        handler.send_chunk(piece.encode())
    handler.send_chunk(b"")
