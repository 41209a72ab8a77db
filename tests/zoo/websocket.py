"""The server side of a web socket (RFC 6455), as far as a chat needs it: only short text frames."""

from __future__ import annotations

import base64
import hashlib
import threading
from http.server import BaseHTTPRequestHandler

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
TEXT, CLOSE = 1, 8
BEAT_S = 2.0


class Socket:
    """A web socket connection, created when the client has requested the upgrade."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler
        self._lock = threading.Lock()
        self._closed = threading.Event()
        key = handler.headers["Sec-WebSocket-Key"] + GUID
        handler.send_response(101)
        handler.send_header("Upgrade", "websocket")
        handler.send_header("Connection", "Upgrade")
        handler.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        handler.end_headers()

    def receive(self) -> str | None:
        """Return the next text from the client, or ``None`` if the client closed the connection."""
        while True:
            head = self._handler.rfile.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 127
            if size > 125:
                size = int.from_bytes(self._handler.rfile.read(2 if size == 126 else 8))
            mask = self._handler.rfile.read(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self._handler.rfile.read(size)))
            if head[0] & 15 == CLOSE:
                return None
            if head[0] & 15 == TEXT:
                return data.decode()

    def send(self, text: str) -> None:
        """Send one text frame."""
        data = text.encode()
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2)
        with self._lock:
            self._handler.wfile.write(bytes([128 | TEXT]) + size + data)

    def beat(self) -> None:
        """Send heartbeats until the connection ends."""
        while not self._closed.wait(BEAT_S):
            try:
                self.send('{"beat": true}')
            except OSError:
                return

    def close(self) -> None:
        """Close the connection without a close frame, like a server that stops."""
        self._closed.set()
        self._handler.close_connection = True
