"""An export of the conversations that guests had with the assistant of Hotel Lumen, an invented hotel.

``GET /conversations?page=1`` returns the first page. Each page has two conversations. A request needs the bearer
token from the environment variable EXPORT_TOKEN.
"""

from __future__ import annotations

import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

DAY = "2026-11-23"
TALKS = [
    ("07:40", "When is breakfast?", "Breakfast is from 7 to 10 am."),
    ("09:05", "What does parking cost?", "Parking costs 30 euros a night."),
    ("11:30", "Can I check out late?", "Yes, until 2 pm."),
    ("15:10", "Is there a pool?", "I'm sorry, I don't know."),
    ("18:55", "Are dogs allowed?", "Error code: 529 - overloaded_error"),
]
PAGE_SIZE = 2


def list_conversations(page: int) -> list[dict[str, str]]:
    """Return the conversations of a page. The first page has the number 1."""
    numbered = list(enumerate(TALKS))[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return [
        {"id": f"talk-{number}", "finished": f"{DAY}T{at}:00Z", "asked": question, "said": answer}
        for number, (at, question, answer) in numbered
    ]


class Export(BaseHTTPRequestHandler):
    """Answers each GET request with one page of the export."""

    def do_GET(self) -> None:
        """Send a page of conversations. Without the right token, answer with HTTP 401."""
        is_allowed = self.headers.get("Authorization") == f"Bearer {os.environ['EXPORT_TOKEN']}"
        page = int(parse_qs(urlsplit(self.path).query).get("page", ["1"])[0])
        data = json.dumps(
            {"conversations": list_conversations(page)} if is_allowed else {"error": "wrong token"}
        ).encode()
        self.send_response(200 if is_allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Start the export and serve it until Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8408)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), Export).serve_forever()


if __name__ == "__main__":
    main()
