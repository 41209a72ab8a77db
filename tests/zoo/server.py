"""A chat backend that uses only the standard library, and hand-written pages in `html/`.

Each page is difficult to read in its own way. Words in the question control the reply as in `tests.zoo.bot`. In
addition, `die` breaks the stream in its middle, and `fail` answers HTTP 500.
"""

from __future__ import annotations

import html
import json
import queue
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.zoo import bot, frontends, streams
from tests.zoo.websocket import Socket

PAGES = Path(__file__).with_name("html")
POSTS = {"streams": streams.answer_post, "frontends": frontends.answer_post}
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


def reply(question: str) -> str:
    """Return the whole answer.

    Except for `short`, the answer contains the question, so that mixed-up answers are detected.
    """
    if any(word in question for word in ("long list", "short", "repeat")):
        return bot.reply(question)
    return f"For {question.upper()} the waiting period is 24 months, and the limit is ₹15,000. [Source: P-100]"


def tokens(question: str) -> Iterator[str]:
    """Yield the reply piece by piece, as a model sends it."""
    time.sleep(bot.seconds("slow", question))
    whole = reply(question)
    words = (
        [whole]
        if "instant" in question
        else re.findall(r"\S+\s*" if len(whole) < bot.LONG else bot.LARGE_PIECE, whole)
    )
    for number, word in enumerate(words):
        if number == len(words) // 2:
            time.sleep(bot.seconds("pause", question))
            if re.search(r"\bdie\b", question):
                raise ConnectionAbortedError
        time.sleep(0.01)
        yield word


class Handler(BaseHTTPRequestHandler):
    """The request handler.

    It serves pages, a JSON reply, a token stream, a push channel, a plain form, and faults.
    """

    protocol_version = "HTTP/1.1"
    subscribers: dict[str, queue.Queue[str]]
    answers: dict[str, dict[str, object]]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Suppress the request log."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path.startswith("/status/"):
            self.send(int(path.rsplit("/", 1)[1]), "text/html", "<h1>no chat here</h1>")
        elif path == "/form":
            self.send(200, TYPES[".html"], _form(""))
        elif path == "/socket":
            socket_chat(self)
        elif path in ("/streams/events", "/streams/socket"):
            streams.answer_get(self, path, query)
        elif path == "/piece":
            asked = urllib.parse.parse_qs(query)
            time.sleep(float(asked.get("after", ["0"])[0]))  # a server that is busy answers polls late
            self.send(200, "application/json", json.dumps(self.answers[asked["id"][0]]))
        elif path in ("/events", "/streams/pushed"):
            self._push(urllib.parse.parse_qs(query)["id"][0])
        elif path.startswith(frontends.PLACE):
            frontends.answer_get(self, path)
        elif (PAGES / path.lstrip("/")).is_file():
            self.send(200, TYPES[Path(path).suffix], (PAGES / path.lstrip("/")).read_text(encoding="utf-8"))
        else:
            self.send(404, "text/html", "not found")

    def do_POST(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        question = _question(body)
        if re.search(r"\bfail\b", question):
            self.send(500, "application/json", '{"error": "boom"}')
        elif path == "/chat":
            text = "".join(tokens(question))
            payload = {"reply": {"text": text}, "sources": [{"title": "P-100 §4"}], "model": "primary", "ms": 12}
            payload |= {"error": "the model is out of reach"} if "refuse" in question else {}
            payload |= {"asked": json.loads(body)}
            self.send(200, "application/json", json.dumps(payload))
        elif path == "/stream":
            self._stream(question)
        elif path == "/sse":
            self._events(question)
        elif path == "/tell":
            self.send(202, "application/json", "{}")
            self._tell(urllib.parse.parse_qs(query)["id"][0], question)
        elif answer := POSTS.get(path.split("/")[1]):
            answer(self, path, query, body)
        elif path == "/begin":
            self.send(200, "application/json", json.dumps({"id": self.begin(tokens(question))}))
        elif path == "/beacon":
            self.send(204, "text/plain", "")
        elif path == "/form":
            self.send(200, TYPES[".html"], _form(question))
        else:
            self.send(404, "text/plain", "not found")

    def send(self, status: int, kind: str, text: str) -> None:
        """Send a whole response with the HTTP status ``status``, the content type ``kind`` and the body ``text``.

        The response states its length.
        """
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, question: str) -> None:
        self.begin_chunks("text/plain; charset=utf-8")
        try:
            for token in tokens(question):
                self.send_chunk(token.encode())
            self.send_chunk(b"")
        except ConnectionAbortedError:
            self.close_connection = True
            self.connection.close()

    def _events(self, question: str) -> None:
        """Yield an event for each token, then the sources, then the end."""
        self.begin_chunks("text/event-stream")
        try:
            for token in tokens(question):
                self.send_chunk(f"data: {json.dumps({'token': token})}\n\n".encode())
            if "cut" not in question:
                self.send_chunk(f"data: {json.dumps({'sources': ['P-100']})}\n\ndata: [DONE]\n\n".encode())
            self.send_chunk(b"")
        except ConnectionAbortedError:
            self.close_connection = True
            self.connection.close()

    def begin_chunks(self, kind: str) -> None:
        """Begin a chunked response of the content type ``kind``, whose length is not known yet."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_chunk(self, data: bytes) -> None:
        """Send one chunk of the response. An empty chunk ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _push(self, name: str) -> None:
        """Send the server-sent events of the channel ``name`` on a connection that stays open."""
        inbox = self.subscribers[name] = queue.Queue()
        self.begin_chunks("text/event-stream")
        try:
            while True:
                self.send_chunk(f"data: {json.dumps({'token': inbox.get(timeout=60)})}\n\n".encode())
        except (queue.Empty, OSError):
            self.close_connection = True

    def begin(self, pieces: Iterator[str]) -> str:
        """Start an answer that the page fetches piece by piece, and return the name under which it is fetched."""
        name = str(len(self.answers))
        self.answers[name] = {"text": "", "done": False}

        def work() -> None:
            said = ""
            for token in pieces:
                said += token
                self.answers[name] = {"text": said, "done": False}
            self.answers[name] = {"text": said, "done": True}

        threading.Thread(target=work, daemon=True).start()
        return name

    def _tell(self, name: str, question: str) -> None:
        for token in tokens(question):
            self.subscribers[name].put(token)


def socket_chat(handler: Handler) -> None:
    """Answer questions over a web socket, with a heartbeat.

    `die` closes the web socket in the middle of the answer.
    """
    socket = Socket(handler)
    threading.Thread(target=socket.beat, daemon=True).start()
    try:
        while (text := socket.receive()) is not None:
            for token in tokens(_question(text)):
                socket.send(json.dumps({"token": token}))
            socket.send(json.dumps({"end": True}))
    except (ConnectionAbortedError, OSError):
        pass
    socket.close()


def _question(body: str) -> str:
    if body.startswith("{"):
        return str(json.loads(body).get("question", ""))
    return urllib.parse.parse_qs(body).get("q", [""])[0]


def _form(question: str) -> str:
    said = f"<dl><dt>{html.escape(question)}</dt><dd>{html.escape(''.join(tokens(question)))}</dd></dl>"
    return (
        "<!doctype html><title>Form</title><h1>Ask the policy desk</h1><p>We answer at once.</p>"
        f"{said if question else ''}<form method=post action=/form><label>Your question <input name=q></label>"
        "<input type=submit value=Ask></form><footer>Suraj Insurance 2026</footer>"
    )


class Zoo(ThreadingHTTPServer):
    """A server of the zoo's pages on a free port of the loopback interface."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        handler = type("BoundHandler", (Handler,), {"subscribers": {}, "answers": {}})
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """Return the address of the server."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the errors that a browser causes when it disconnects."""


if __name__ == "__main__":
    print(Zoo().address, flush=True)
    threading.Event().wait()
