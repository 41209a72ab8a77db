"""Chat front ends that come by npm, each on a page of its own, and the protocols that they ask in.

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
TYPES: Final = {"": "text/html", ".css": "text/css", ".js": "text/javascript"}
PLACE: Final = "/frontends/"
"""Where the pages, their scripts and the addresses that they ask are."""


def answer_get(handler: Handler, path: str) -> None:
    """Serve a page (a path without a suffix), its script, its style sheet, or the socket of Direct Line."""
    name = path.removeprefix(PLACE)
    if name.startswith("directline/socket/"):
        _send_activities(handler, name.rsplit("/", 1)[1])
    elif not (BUILT / name).with_suffix(".js").is_file():
        handler.send(404, "text/html", "not found")
    elif not Path(name).suffix:
        style = f"<link rel=stylesheet href={name}.css>" if (BUILT / f"{name}.css").is_file() else ""
        page = f"<!doctype html><title>Chat</title>{style}<body><script src={name}.js></script>"
        handler.send(200, "text/html; charset=utf-8", page)
    else:
        text = (BUILT / name).read_text(encoding="utf-8") if (BUILT / name).is_file() else ""
        handler.send(200, f"{TYPES[Path(name).suffix]}; charset=utf-8", text)


def answer_post(handler: Handler, path: str, _query: str, body: str) -> None:
    """Answer in the protocol of the front end that asks."""
    given = json.loads(body or "{}")
    match path.removeprefix(PLACE).split("/"):
        case ["deep_chat"]:
            pieces = bot.tokens(given["messages"][-1]["text"])
            _stream(handler, "text/event-stream", (f"data: {json.dumps({'text': piece})}\n\n" for piece in pieces))
        case ["assistant_ui"]:
            _stream(handler, "text/plain; charset=utf-8", bot.tokens(given["question"]))
        case ["n8n_chat"] if given["action"] == "loadPreviousSession":
            handler.send(200, "application/json", '{"data": []}')
        case ["n8n_chat"]:
            _stream(handler, "application/json", _list_chunks(given["chatInput"]))
        case ["directline", "conversations"]:
            name = uuid.uuid4().hex
            address = f"ws://{handler.headers['Host']}{PLACE}directline/socket/{name}"
            begun = {"conversationId": name, "token": "local", "expires_in": 3600, "streamUrl": address}
            handler.send(201, "application/json", json.dumps(begun))
        case ["directline", "conversations", name, "activities"]:
            activity = given | {"id": uuid.uuid4().hex, "conversation": {"id": name}}
            handler.send(200, "application/json", json.dumps({"id": activity["id"]}))
            _say(handler.subscribers[name], activity)
        case _:
            handler.send(404, "text/plain", "not found")


def _list_chunks(question: str) -> Iterator[str]:
    node = {"nodeId": "1", "nodeName": "AI Agent", "runIndex": 0, "itemIndex": 0}
    items = ({"type": "item", "content": piece} for piece in bot.tokens(question))
    for chunk in itertools.chain([{"type": "begin"}], items, [{"type": "end"}]):
        yield json.dumps(chunk | {"metadata": node | {"timestamp": round(time.time() * 1000)}}) + "\n"


def _say(inbox: queue.Queue[str], asked: dict[str, Any]) -> None:
    """Put the user's activity, which the server repeats, and the growing answer into the conversation's socket."""
    inbox.put(json.dumps({"activities": [asked]}))
    if asked["type"] != "message":
        return
    stream = uuid.uuid4().hex
    common = {
        "from": {"id": "bot", "role": "bot"},
        "conversation": asked["conversation"],
        "channelId": "directline",
    }
    for number, text in enumerate(bot.growing(asked["text"])):
        channel = {"streamType": "streaming", "streamSequence": number + 1} | (
            {"streamId": stream} if number else {}
        )
        name = f"{stream}-{number}" if number else stream
        typing = common | {"id": name, "type": "typing", "text": text, "channelData": channel}
        inbox.put(json.dumps({"activities": [typing | {"timestamp": _now()}]}))
    channel = {"streamType": "final", "streamId": stream}
    final = {"id": f"{stream}-end", "type": "message", "text": bot.reply(asked["text"]), "channelData": channel}
    inbox.put(json.dumps({"activities": [common | final | {"timestamp": _now()}]}))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _send_activities(handler: Handler, name: str) -> None:
    """Send the conversation's activities over a web socket."""
    inbox = handler.subscribers[name] = queue.Queue()
    socket = Socket(handler)
    try:
        while True:
            socket.send(inbox.get(timeout=60))
    except (queue.Empty, OSError):
        socket.close()


def _stream(handler: Handler, kind: str, pieces: Iterable[str]) -> None:
    handler.begin_chunks(kind)
    for piece in pieces:
        handler.send_chunk(piece.encode())
    handler.send_chunk(b"")
