"""A local server with the part of the Hugging Face Hub's API that the readiness check uses, and a Space's page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hub(ThreadingHTTPServer):
    """A server that returns the next of ``runtimes`` at each poll, and then repeats the last one.

    A runtime is the JSON of ``GET /api/spaces/{id}/runtime``, or an HTTP status. A Space with the stage SLEEPING
    sleeps until its page is visited.
    """

    daemon_threads = True

    def __init__(
        self,
        *runtimes: dict[str, Any] | int,
        page_status: Callable[[int], int] = lambda _visit: 200,
        redirects_to: str | None = None,
    ) -> None:
        self.redirects_to = redirects_to
        self.runtimes = list(runtimes)
        self.page_status = page_status
        self.visits = 0
        self.looks = 0
        self.tokens: list[str | None] = []
        self.version: dict[str, str] = {}
        self.accounts: dict[str, str] = {}
        """The account name that belongs to each token."""
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """Return the address of the server."""
        return f"http://127.0.0.1:{self.server_port}"

    def next_runtime(self) -> dict[str, Any] | int:
        """Return the runtime for this poll, and proceed to the next one unless the Space sleeps."""
        self.looks += 1
        now = self.runtimes[0]
        asleep = isinstance(now, dict) and now["stage"] == "SLEEPING" and not self.visits
        if len(self.runtimes) > 1 and not asleep:
            self.runtimes.pop(0)
        return now


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Suppress the request log."""

    def do_GET(self) -> None:
        if self.path.endswith("/runtime"):
            self.server.tokens.append(self.headers.get("Authorization"))
            document = self.server.next_runtime()
            self._send(
                document if isinstance(document, int) else 200,
                json.dumps(document if isinstance(document, dict) else {}),
            )
        elif self.path == "/api/whoami-v2":
            self._send(*self._whoami())
        elif self.path == "/version":
            self._send(200, json.dumps(self.server.version))
        else:
            self.server.visits += 1
            status = 302 if self.server.redirects_to else self.server.page_status(self.server.visits)
            self._send(status, "<title>chat</title>")

    def _whoami(self) -> tuple[int, str]:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        name = self.server.accounts.get(token)
        if name is None:
            return 401, json.dumps({"error": "Invalid username or password."})
        document = {"type": "user", "name": name, "auth": {"type": "access_token", "accessToken": {"role": "read"}}}
        return 200, json.dumps(document)

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if status == 302:
            self.send_header("Location", str(self.server.redirects_to))
        self.end_headers()
        self.wfile.write(text.encode())
