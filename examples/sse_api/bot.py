"""The assistant of Fjord Ferries, an invented ferry line: an API that streams its answer as server-sent events."""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWERS = {
    "crossing": "The crossing takes 45 minutes.",
    "car": "A car with its driver costs 32 euros.",
    "dog": "Yes, dogs are allowed on deck.",
    "last ferry": "The last ferry leaves at 22:30.",
}
OTHERWISE = "I'm sorry, I can't help with that. I only know our ferries."


def reply(question: str) -> str:
    """The answer whose key stands in the question."""
    return next((answer for key, answer in ANSWERS.items() if key in question.lower()), OTHERWISE)


class FerryApi(BaseHTTPRequestHandler):
    """An event for each word, then which version answered, then the end."""

    def do_GET(self) -> None:
        """Say that it is there."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Stream the answer to the question in the body."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for word in reply(body.get("message", "")).split():
            self._event(json.dumps({"token": f"{word} "}))
        self._event(json.dumps({"version": "2026-11"}))
        self._event("[DONE]")

    def _event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()


def main() -> None:
    """Serve until interrupted."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8402)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), FerryApi).serve_forever()


if __name__ == "__main__":
    main()
