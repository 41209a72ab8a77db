"""The assistant of Fjord Ferries, an invented ferry line, as an API that streams its answers.

Each answer is a stream of server-sent events.
"""

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


def find_answer(question: str) -> str:
    """Return the answer whose keyword is in the question, or a refusal if no keyword is in the question."""
    return next((answer for key, answer in ANSWERS.items() if key in question.lower()), OTHERWISE)


class FerryApi(BaseHTTPRequestHandler):
    """Sends one event for each word of the answer, then one with the version of the bot, then ``[DONE]``."""

    def do_GET(self) -> None:
        """Answer with HTTP 200, which shows that the API is up."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Stream the answer to the question in the request's body."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for word in find_answer(body.get("message", "")).split():
            self._send_event(json.dumps({"token": f"{word} "}))
        self._send_event(json.dumps({"version": "2026-11"}))
        self._send_event("[DONE]")

    def _send_event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()


def main() -> None:
    """Start the API and serve it until Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8402)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), FerryApi).serve_forever()


if __name__ == "__main__":
    main()
