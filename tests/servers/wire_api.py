"""A chat page that shows only part of each response: the sources are only in the network messages.

The path selects the transport. ``/json``, ``/lines``, ``/text``: one response to a fetch. ``/stream``: server-sent
events that the page fetches. ``/source``: an EventSource for each question. ``/named``: like ``/source``, with
named events. ``/standing``: an EventSource that is opened with the page. ``/socket``: a WebSocket for each
question. ``/open``: a WebSocket that is opened with the page and also receives other messages. ``/binary``: like
``/open``, with binary frames. ``/framed``: the page ``/open`` in an iframe.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import WSMsgType, web

from tests.servers.threaded_server import ThreadedServer

WAYS = ("json", "lines", "text", "stream", "source", "named", "standing", "socket", "open", "binary")

PAGE = """<!doctype html><title>Wired</title><h1>Ask Suraj</h1>
<div id=talk aria-live=polite></div><button type=button onclick="talk.replaceChildren()">New chat</button><form id=ask><input id=box aria-label="Your message"><button>Send</button></form>
<script>
  const way = location.pathname.slice(1), id = String(Math.random());
  const say = (who, text) => { const p = document.createElement("p"); p.className = who; p.textContent = text; talk.append(p); return p; };
  let bubble = null;
  const show = (news) => { if (news.token && bubble) bubble.textContent += news.token.replace(/ ?\\[Source: .*?\\]/g, ""); };
  const decode = async (data) => JSON.parse(typeof data === "string" ? data : await data.text());
  const socket = () => { const s = new WebSocket(`${location.origin.replace("http", "ws")}/ws?way=${way}`); s.onmessage = async (m) => show(await decode(m.data)); return s; };
  let standing = null;
  if (way === "standing") { standing = new EventSource(`/events?id=${id}`); standing.onmessage = (m) => show(JSON.parse(m.data)); }
  if (way === "open" || way === "binary") standing = socket();
  const post = (where, question) => fetch(where, { method: "POST", body: JSON.stringify({ question }) });
  const ways = {
    async json(q) { show({ token: (await (await post("/api/json", q)).json()).reply.text }); },
    async lines(q) { for (const line of (await (await post("/api/lines", q)).text()).trim().split("\\n")) show(JSON.parse(line)); },
    async text(q) { show({ token: await (await post("/api/text", q)).text() }); },
    async stream(q) {
      const reader = (await post("/api/stream", q)).body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const blocks = (rest + value).split("\\n\\n");
        rest = blocks.pop();
        for (const block of blocks) if (!block.includes("[DONE]")) show(JSON.parse(block.slice(6)));
      }
    },
    async source(q) { const s = new EventSource(`/api/source?q=${encodeURIComponent(q)}`); s.onmessage = (m) => m.data === "[DONE]" ? s.close() : show(JSON.parse(m.data)); },
    async named(q) { const s = new EventSource(`/api/named?q=${encodeURIComponent(q)}`); s.addEventListener("token", (m) => show(JSON.parse(m.data))); s.addEventListener("end", () => s.close()); },
    async standing(q) { await post(`/tell?id=${id}`, q); },
    async socket(q) { const s = socket(); s.onopen = () => s.send(JSON.stringify({ question: q })); },
    async open(q) { standing.send(JSON.stringify({ question: q })); },
    async binary(q) { standing.send(JSON.stringify({ question: q })); },
  };
  ask.onsubmit = (event) => {
    event.preventDefault();
    const question = box.value;
    box.value = "";
    say("user", question);
    bubble = say("bot", "");
    ways[way](question);
  };
</script>"""


def sent(question: str) -> str:
    """Return the complete answer to ``question`` that the app sends, including the source."""
    return f"For {question.upper()} the limit is ₹15,000 a year. [Source: P-7 §{len(question)}]"


def shown(question: str) -> str:
    """Return the part of the answer to ``question`` that the page shows: the text without the source."""
    return f"For {question.upper()} the limit is ₹15,000 a year."


def pieces(question: str) -> list[dict[str, Any]]:
    """Return the answer to ``question`` as events: one for each token, then one with sources and model."""
    *words, source = re.findall(r"\[Source: .*\]|\S+\s*", sent(question))
    tokens = [{"token": word} for word in (*words, source)]
    return [*tokens, {"sources": [f"P-7 §{len(question)}"], "model": "fallback", "ms": 321}]


class Wired(ThreadedServer):
    """A server with the chat page and the backends of all its transports."""

    def __init__(self) -> None:
        super().__init__()
        self._standing: dict[str, asyncio.Queue[str]] = {}

    def application(self) -> web.Application:
        application = web.Application()
        for way in WAYS:
            application.router.add_get(f"/{way}", self._page)
        application.router.add_get("/framed", self._framed)
        application.router.add_post("/api/{way}", self._answer)
        application.router.add_get("/api/{way}", self._answer)
        application.router.add_get("/events", self._events)
        application.router.add_post("/tell", self._tell)
        application.router.add_get("/ws", self._socket)
        return application

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    async def _framed(self, _request: web.Request) -> web.Response:
        frame = '<!doctype html><title>Frame</title><iframe src="/open" width=900 height=600></iframe>'
        return web.Response(text=frame, content_type="text/html")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        question = request.query.get("q") or json.loads(await request.text())["question"]
        match request.match_info["way"]:
            case "json":
                document = {"reply": {"text": sent(question)}, **pieces(question)[-1]}
                return web.json_response(document)
            case "lines":
                return web.Response(text="\n".join(map(json.dumps, pieces(question))))
            case "text":
                return web.Response(text=sent(question))
            case way:
                return await self._streamed(request, question, "token" if way == "named" else "")

    async def _streamed(self, request: web.Request, question: str, name: str) -> web.StreamResponse:
        events = [f"event: {name}\n" * bool(name) + f"data: {json.dumps(piece)}\n\n" for piece in pieces(question)]
        end = "event: end\ndata: {}\n\n" if name else "data: [DONE]\n\n"
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in (*events, end):
            await response.write(event.encode())
        return response

    async def _events(self, request: web.Request) -> web.StreamResponse:
        inbox = self._standing[request.query["id"]] = asyncio.Queue[str]()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for data in self._until_closing(inbox):
            await response.write(f"data: {data}\n\n".encode())
        return response

    async def _until_closing(self, inbox: asyncio.Queue[str]) -> AsyncIterator[str]:
        closing = asyncio.ensure_future(self.closing.wait())
        while not closing.done():
            getting = asyncio.ensure_future(inbox.get())
            await asyncio.wait({getting, closing}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                yield getting.result()
            getting.cancel()

    async def _tell(self, request: web.Request) -> web.Response:
        question = json.loads(await request.text())["question"]
        for piece in pieces(question):
            self._standing[request.query["id"]].put_nowait(json.dumps(piece))
        return web.json_response({"taken": True}, status=202)

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        binary = request.query["way"] == "binary"
        send = (lambda text: socket.send_bytes(text.encode())) if binary else socket.send_str
        await send(json.dumps({"online": 12}))
        closing = asyncio.ensure_future(self.closing.wait())
        while not closing.done():
            receiving = asyncio.ensure_future(socket.receive())
            await asyncio.wait({receiving, closing}, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                receiving.cancel()
                break
            message = receiving.result()
            if message.type is not WSMsgType.TEXT:
                break
            for piece in pieces(message.json()["question"]):
                await send(json.dumps(piece))
            await send(json.dumps({"online": 13}))
        return socket


if __name__ == "__main__":
    with Wired() as server:
        print(server.url, flush=True)
        server._thread.join()
