"""The assistant of Harbour Dental, an invented dental practice, as a JSON API: ``POST /ask`` with a question."""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWERS = {
    "check-up": "A check-up takes 30 minutes.",
    "cleaning": "A professional cleaning costs 95 euros.",
    "cancel": "Please cancel at least 48 hours before your appointment.",
    "children": "Yes, we treat children from the age of 3.",
    "saturday": "No, we are closed on Saturdays.",
}
OTHERWISE = "I'm sorry, I can't help with that. Please call the practice."


def reply(question: str) -> str:
    """The answer whose key stands in the question."""
    return next((answer for key, answer in ANSWERS.items() if key in question.lower()), OTHERWISE)


class PracticeApi(BaseHTTPRequestHandler):
    """One address, one answer for each question."""

    def do_GET(self) -> None:
        """Say what this is."""
        self._send(200, {"about": "POST a question"})

    def do_POST(self) -> None:
        """Answer the question in the body."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        if "question" not in body:
            self._send(422, {"detail": "question is missing"})
        else:
            self._send(200, {"answer": reply(body["question"]), "model": "rules-1"})

    def _send(self, status: int, content: dict[str, str]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until interrupted."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8401)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), PracticeApi).serve_forever()


if __name__ == "__main__":
    main()
