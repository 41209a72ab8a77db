"""A chat page that tries in many ways to reach a service in Lookout's internal network, and the service itself."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar
from urllib.parse import urlsplit

Server = TypeVar("Server", bound=ThreadingHTTPServer)
SECRET = "the-keys-of-this-machine"
"""The secret that the internal service returns."""
OPEN_TO_ALL = {"Access-Control-Allow-Origin": "*"}
_QUIC = 0x40
"""The minimum first byte of a QUIC packet. STUN packets begin with a smaller byte (RFC 7983)."""
_END = b"no more packets"
_WEB_SOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

CHAT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bot</title>HEAD</head><body>
<div role="log" id="log"></div>
<form id="form"><textarea id="box" aria-label="Message" placeholder="Ask me anything"></textarea>
<button type="submit">Send</button></form>BODY
<script>
const say = (who, text) => {
  const line = document.createElement("p"); line.className = who; line.textContent = text; log.append(line);
};
const inTime = (work) => Promise.race([work, new Promise((done) => setTimeout(() => done("nothing came"), 1500))]);
const added = (element) => new Promise((done) => {
  element.onload = () => done("loaded"); element.onerror = () => done("refused"); document.head.append(element);
});
const made = (tag, given) => Object.assign(document.createElement(tag), given);
async function attempt(question) { ATTEMPT }
form.onsubmit = async (event) => {
  event.preventDefault();
  const question = box.value;
  box.value = "";
  say("user", question);
  const got = await inTime(attempt(question)).catch((error) => "refused: " + error);
  say("bot", "Knee surgery is covered. " + got);
};
box.onkeydown = (event) => { if (event.key === "Enter") { event.preventDefault(); form.requestSubmit(); } };
LOADED
</script></body></html>"""

LEAVING: dict[str, dict[str, str]] = {
    "at once": {"LOADED": 'location.href = "INSIDE/";'},
    "after 50 ms": {"LOADED": 'setTimeout(() => { location.href = "INSIDE/"; }, 50);'},
    "on submit": {"ATTEMPT": 'location.href = "INSIDE/?" + question; return "left";'},
    "form": {"LOADED": 'form.onsubmit = null; form.action = "INSIDE/"; form.method = "post"; box.name = "q";'},
    "meta refresh": {"HEAD": '<meta http-equiv="refresh" content="0; url=INSIDE/">'},
    "redirects": {"LOADED": 'location.href = "/hop";'},
    "frame alone": {"BODY": '<iframe src="INSIDE/"></iframe>', "LOADED": "form.remove(); log.remove();"},
    "frame of redirects": {"BODY": '<iframe src="/hop"></iframe>', "LOADED": "form.remove(); log.remove();"},
}
"""Ways in which a page leads a visitor away, keyed by name. Each way is the content for placeholders in `CHAT`."""

ASKING: dict[str, str] = {
    "frame": 'return added(made("iframe", {src: "INSIDE/"}));',
    "pop-up": 'window.open("INSIDE/");',
    "fetch": 'return (await fetch("INSIDE/", {method: "POST", body: question})).text();',
    "fetch-of-redirects": 'return (await fetch("/hop")).text();',
    "XHR": "return new Promise((done) => { const asked = new XMLHttpRequest(); "
    'asked.onloadend = () => done(asked.responseText); asked.open("GET", "INSIDE/"); asked.send(); });',
    "event-source": 'return new Promise((done) => { const source = new EventSource("INSIDE/"); '
    "source.onmessage = (event) => done(event.data); source.onerror = () => done('refused'); });",
    "web-socket": 'return new Promise((done) => { const socket = new WebSocket("SOCKET/"); '
    "socket.onmessage = (event) => done(event.data); socket.onerror = () => done('refused'); });",
    "beacon": 'navigator.sendBeacon("INSIDE/", question);',
    "worker": "return new Promise((done) => { const worker = new Worker('/worker.js'); "
    "worker.onmessage = (event) => done(event.data); });",
    "shared-worker": "return new Promise((done) => { const worker = new SharedWorker('/shared-worker.js'); "
    "worker.port.onmessage = (event) => done(event.data); worker.port.start(); });",
    "service-worker": "await navigator.serviceWorker.register('/service-worker.js'); "
    "await navigator.serviceWorker.ready; if (!navigator.serviceWorker.controller) await new Promise((done) => { "
    "navigator.serviceWorker.oncontrollerchange = done; }); return (await fetch('/through')).text();",
    "script": 'return added(made("script", {src: "INSIDE/"}));',
    "style": 'return added(made("link", {rel: "stylesheet", href: "INSIDE/"}));',
    "prefetch": 'return added(made("link", {rel: "prefetch", href: "INSIDE/"}));',
    "preload": 'return added(made("link", {rel: "preload", as: "fetch", href: "INSIDE/"}));',
    "module-preload": 'return added(made("link", {rel: "modulepreload", href: "INSIDE/"}));',
    "speculation": 'document.head.append(made("script", {type: "speculationrules", textContent: '
    'JSON.stringify({prefetch: [{source: "list", urls: ["INSIDE/"], eagerness: "immediate"}]})}));',
    "WebRTC": "const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:UDP'}, "
    "{urls: 'turn:INSIDEHOST?transport=tcp', username: 'u', credential: 'p'}]}); peer.createDataChannel('x'); "
    "await peer.setLocalDescription(await peer.createOffer());",
    "WebTransport": 'await new WebTransport("https://UDP/").ready; return "open";',
}
"""Scripts that send a request to the internal service, keyed by name. The name is also the requested path."""

_FETCHING = 'fetch("INSIDE/").then((answer) => answer.text()).catch((error) => "refused: " + error)'
SCRIPTS = {
    "/worker.js": f"{_FETCHING}.then((text) => postMessage(text));",
    "/shared-worker.js": f"onconnect = (event) => {_FETCHING}.then((text) => event.ports[0].postMessage(text));",
    "/service-worker.js": "oninstall = () => skipWaiting(); onactivate = (event) => "
    "event.waitUntil(clients.claim()); onfetch = (event) => { "
    'if (event.request.url.includes("through")) event.respondWith(fetch("INSIDE/")); };',
}


def asking_in_every_way() -> dict[str, str]:
    """Return the content for a page that runs all scripts in `ASKING`, and answers with their results."""
    ways = ", ".join(
        f"async () => {{ {script.replace('INSIDE/', f'INSIDE/{name}').replace('SOCKET/', f'SOCKET/{name}')} }}"
        for name, script in ASKING.items()
    )
    return {
        "ATTEMPT": f"const ways = [{ways}]; const tries = ways.map((way) => inTime(way()).catch(String)); "
        "await inTime(new Promise(() => {})); return (await Promise.all(tries)).join(' ');"
    }


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Suppress the request log."""

    def _send(self, status: int, body: str, kind: str = "text/html", **headers: str) -> None:
        content = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _read(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of a browser that closes its connection."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Inside(_Server):
    """The internal service, which answers every request with its secret.

    ``reached_by`` contains the requested paths, and "WebRTC" or "WebTransport" for received UDP packets.
    ``connections`` also counts connections without a request.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _InsideHandler)
        self.connections = 0
        self.reached_by: set[str] = set()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def process_request(self, request: object, client_address: object) -> None:
        """Count the connection, even if the client sends no request."""
        self.connections += 1
        super().process_request(request, client_address)  # type: ignore[arg-type] - handed on

    def _listen(self) -> None:
        while (packet := self.udp.recv(65_536)) != _END:
            self.reached_by.add("WebRTC" if packet[0] < _QUIC else "WebTransport")

    def server_close(self) -> None:
        """Close the TCP and UDP sockets."""
        self.udp.sendto(_END, self.udp.getsockname())
        self._listening.join()
        self.udp.close()
        super().server_close()


class _InsideHandler(_Quiet):
    server: Inside

    def _answer(self) -> None:
        self._read()
        name = urlsplit(self.path).path.removeprefix("/")
        self.server.reached_by.add(name)
        if name == "web-socket":
            return self._greet()
        if name == "event-source":
            return self._send(200, f"data: {SECRET}\n\n", "text/event-stream", **OPEN_TO_ALL)
        page = _filled(CHAT, {"ATTEMPT": f'return "{SECRET}";', "BODY": f"<p>{SECRET}</p>"})
        return self._send(200, page, **OPEN_TO_ALL)

    def _greet(self) -> None:
        key = self.headers["Sec-WebSocket-Key"].encode()
        accepted = base64.b64encode(hashlib.sha1(key + _WEB_SOCKET).digest()).decode()
        self.send_response(101)
        for name, value in (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", accepted),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(bytes([0x81, len(SECRET)]) + SECRET.encode())
        self.close_connection = True

    do_GET = do_POST = _answer  # noqa: N815 - the base class looks for these names


class Hostile(_Server):
    """The hostile app. ``way`` is the content for its page, and ``fill`` inserts the addresses into a text."""

    def __init__(self, way: dict[str, str], fill: Callable[[str], str]) -> None:
        self.way = way
        self.fill = fill
        super().__init__(("127.0.0.1", 0), _HostileHandler)


class _HostileHandler(_Quiet):
    server: Hostile

    def _answer(self) -> None:
        self._read()
        path, fill = urlsplit(self.path).path, self.server.fill
        if path in SCRIPTS:
            name = path.removeprefix("/").removesuffix(".js")
            return self._send(200, fill(SCRIPTS[path].replace("INSIDE/", f"INSIDE/{name}")), "text/javascript")
        if path.startswith("/hop"):
            return self._send(302, "", Location="/hop2" if path == "/hop" else fill("INSIDE/fetch-of-redirects"))
        if path == "/":
            return self._send(200, fill(_filled(CHAT, self.server.way)))
        return self._send(404, "nothing")

    do_GET = do_POST = _answer  # noqa: N815 - the base class looks for these names


def _filled(page: str, parts: dict[str, str]) -> str:
    for part in ("HEAD", "BODY", "ATTEMPT", "LOADED"):
        page = page.replace(part, parts.get(part, 'return "It is so."' if part == "ATTEMPT" else ""))
    return page


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve requests until the ``with`` block ends."""
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def hostile(way: dict[str, str], inside: Inside, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve an app whose page tries to reach ``inside`` at the host name ``host``, and yield the app's address."""
    udp = f"127.0.0.1:{inside.udp.getsockname()[1]}"

    def fill(text: str) -> str:
        there = f"{host}:{inside.server_port}"
        named = {"INSIDEHOST": there, "INSIDE": f"http://{there}", "SOCKET": f"ws://{there}", "UDP": udp}
        for name, value in named.items():
            text = text.replace(name, value)
        return text

    with serving(Hostile(way, fill)) as app:
        yield app.address
