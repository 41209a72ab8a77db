"""An agent that triages issues of an invented lamp shop.

``POST /jobs`` starts a job. ``GET /jobs/ID`` returns the state of the job, with its report.
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPORTS = {
    "issues/1": {
        "severity": "high",
        "root_cause": "charge() raises before it releases the lock of the order, so every later order waits",
        "relevant_files": ["shop/payments.py"],
        "recommended_fix": "release the lock in a finally block",
    },
    "issues/2": {
        "severity": "low",
        "root_cause": "the footer formats dates in the server's own time zone instead of the visitor's",
        "relevant_files": ["shop/footer.py"],
        "recommended_fix": "pass the zone of the visitor to the formatter",
    },
    "issues/3": {
        "severity": "medium",
        "root_cause": "search() compares the words before it folds their accents",
        "relevant_files": ["shop/search.py"],
        "recommended_fix": "normalise both sides",
    },
    "issues/4": {
        "severity": "critical",
        "root_cause": "the voucher is checked on the basket page only, and the checkout trusts the form",
        "relevant_files": ["shop/checkout.py", "shop/vouchers.py"],
        "recommended_fix": "check the voucher again when the order is placed",
    },
}
STEPS = [{"name": "read_issue"}, {"name": "search_code"}, {"name": "open_file"}]


class Jobs(BaseHTTPRequestHandler):
    """Starts jobs and shows their reports. A job is done at once, and its id is the number of its issue."""

    def do_POST(self) -> None:
        """Start a job for the issue in the request's body. For an unknown issue, answer with HTTP 422."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        issue = "/".join(body.get("issue_url", "").split("/")[-2:])
        self._send(202 if issue in REPORTS else 422, {"id": issue.rpartition("/")[2], "status": "queued"})

    def do_GET(self) -> None:
        """Send the state of a job, with its report and steps."""
        report = REPORTS.get(f"issues/{self.path.rsplit('/', 1)[-1]}")
        state = {"status": "done", "report": report, "steps": STEPS}
        self._send(200, state if report else {"about": "POST an issue_url to /jobs"})

    def _send(self, status: int, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Start the agent and serve it until Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8405)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), Jobs).serve_forever()


if __name__ == "__main__":
    main()
