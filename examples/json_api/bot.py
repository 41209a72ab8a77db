"""The assistant of Harbour Dental, an invented dental practice, as a JSON API.

``POST /ask`` with ``{"question": …}`` returns ``{"answer": …}``.
"""

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


def find_answer(question: str) -> str:
    """Return the answer whose keyword is in the question, or a refusal if no keyword is in the question."""
    return next((answer for key, answer in ANSWERS.items() if key in question.lower()), OTHERWISE)


class PracticeApi(BaseHTTPRequestHandler):
    """Answers each POST request with the answer to its question, as JSON."""

    def do_GET(self) -> None:
        """Answer with a short description of the API."""
        self._send(200, {"about": "POST a question"})

    def do_POST(self) -> None:
        """Answer the question in the request's body."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        if "question" not in body:
            self._send(422, {"detail": "question is missing"})
        else:
            self._send(200, {"answer": find_answer(body["question"]), "model": "rules-1"})

    def _send(self, status: int, content: dict[str, str]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Start the API and serve it until Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8401)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), PracticeApi).serve_forever()


if __name__ == "__main__":
    main()
