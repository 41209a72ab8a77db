"""A demo page of past conversations: a paginated list, and a separate page for each conversation.

``style`` selects the kind of HTML: ``marked`` (roles and ids are in attributes), ``plain`` (only class names), or
``scripted`` (a script fetches the content later).
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

FRAME = """<!doctype html><title>Past chats</title>
<header><a href="/">Home</a> <a href="/about">About us</a> <a href="/terms">Terms</a></header>
<nav><a href="/settings/1">One</a><a href="/settings/2">Two</a><a href="/settings/3">Three</a></nav>
<main>{main}</main><footer><a href="/imprint">Imprint</a></footer>"""

SCRIPTED = """<script>
const draw = async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const answer = await fetch(location.pathname + location.search + (location.search ? "&" : "?") + "raw=1");
  document.querySelector("main").innerHTML = await answer.text();
};
draw();
</script>"""


class PastChats(ThreadedServer):
    """A server of ``conversations``, which are ``{id, time, messages: [{role, text, time, thumb}]}``.

    A page of the list has ``size`` conversations.
    """

    def __init__(self, conversations: Sequence[dict[str, Any]], *, style: str = "marked", size: int = 3) -> None:
        super().__init__()
        self.conversations = {conversation["id"]: conversation for conversation in conversations}
        self.style = style
        self.size = size
        self.statuses: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.asked: list[str] = []
        self.next_page: str | None = None

    def application(self) -> web.Application:
        """Return the routes of the list and the conversations."""
        application = web.Application()
        application.router.add_get("/chats", self._list)
        application.router.add_get("/chats/{id}", self._one)
        return application

    def _page(self, request: web.Request, main: str) -> web.StreamResponse:
        if self.style != "scripted":
            return web.Response(text=FRAME.format(main=main), content_type="text/html")
        if "raw" in request.query:
            return web.Response(text=main, content_type="text/html")
        return web.Response(text=FRAME.format(main="One moment …") + SCRIPTED, content_type="text/html")

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        number = int(request.query.get("page", "1"))
        if "list" in self.statuses:
            return web.Response(status=self.statuses["list"])
        all_ids = list(self.conversations)
        shown = all_ids[(number - 1) * self.size : number * self.size]
        rows = "".join(f"<li>{self._row(self.conversations[conversation_id])}</li>" for conversation_id in shown)
        after = f'<a href="/chats?page={number + 1}">Next ›</a>' if number * self.size < len(all_ids) else ""
        if self.next_page is not None:
            after = f'<a rel="next" href="{self.next_page}">more</a>'
        return self._page(request, f"<h1>Past chats</h1><ul>{rows}</ul>{after}")

    def _row(self, conversation: dict[str, Any]) -> str:
        time = f'<time datetime="{conversation["time"]}">a day</time>' if conversation.get("time") else ""
        return f'<a href="/chats/{html.escape(conversation["id"])}">Chat</a> {time}'

    async def _one(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        self.asked.append(f"/chats/{name}")
        if name in self.moved:
            raise web.HTTPFound(self.moved[name])
        if name in self.statuses:
            return web.Response(status=self.statuses[name])
        conversation = self.conversations[name]
        messages = "".join(self._message(message) for message in conversation["messages"])
        marked = f' data-conversation-id="{html.escape(name)}"' if self.style == "marked" else ""
        return self._page(request, f"<h1>Chat</h1><section{marked}>{messages}</section>")

    def _message(self, message: dict[str, Any]) -> str:
        role, text = message["role"], html.escape(message["text"]).replace("\n", "<br>")
        time = f'<time datetime="{message["time"]}">then</time>' if message.get("time") else ""
        thumbs = "".join(
            f'<button aria-label="thumbs {thumb}" aria-pressed="{json.dumps(message.get("thumb") == thumb)}">x</button>'
            for thumb in (("up", "down") if role == "bot" else ())
        )
        if self.style == "plain":
            return f'<div class="message from-{role}"><div class="message-text">{text}</div>{time}{thumbs}</div>'
        return f'<article data-role="{role}"><p>{text}</p>{time}{thumbs}</article>'
