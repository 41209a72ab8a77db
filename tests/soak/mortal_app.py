"""A chat page that can be killed at any moment. It writes each question to a file before it answers.

python -m tests.soak.mortal_app --port 8123 --asked asked.jsonl

Like many pages, the page ignores errors: if the stream of an answer breaks, the page shows the partial answer and
enables the text box without an error message, so that the partial answer looks complete.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html><title>Plans</title>
<main><div id=log role=log></div>
<form id=form><textarea id=box aria-label="Your question"></textarea><button>Send</button></form></main>
<script>
const log = document.getElementById("log"), box = document.getElementById("box"), form = document.getElementById("form");
const bubble = (kind) => { const made = document.createElement("p"); made.className = kind; return log.appendChild(made); };
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); form.requestSubmit(); }
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = box.value;
  bubble("user").textContent = question;
  box.value = "";
  box.disabled = true;
  const answer = bubble("bot");
  try {
    const response = await fetch("/ask", { method: "POST", body: question });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) answer.textContent += part.value;
  } catch {
  } finally {
    box.disabled = false;
  }
});
</script>"""


def answer_to(question: str, *, wrong: bool = False) -> str:
    """Return the answer to ``question``: the plan and its waiting period.

    ``wrong`` makes the period a month too long.
    """
    plan = question.rsplit(maxsplit=1)[-1].rstrip("?")
    months = months_of(plan) + wrong
    return f"The waiting period under {plan} is {months} months of continuous cover. [Source: {plan}, clause 4]"


def months_of(plan: str) -> int:
    """Return the waiting period of a plan such as Plan-7, in months.

    Each plan has a different waiting period, so that the answer to another question is wrong.
    """
    return 100 + int(plan.rsplit("-", 1)[1])


class Handler(BaseHTTPRequestHandler):
    """The request handler of the page. It streams the answer to each question word by word."""

    protocol_version = "HTTP/1.1"
    asked: int
    answered: int
    delay_s: float
    wrong: str

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Suppress the request log."""

    def do_GET(self) -> None:
        """Send the page."""
        body = PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Record the question, then answer it word by word."""
        question = self.rfile.read(int(self.headers["Content-Length"])).decode()
        _note(self.asked, question)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        words = answer_to(question, wrong=question.endswith(f" {self.wrong}?")).split()
        for word in words:
            time.sleep(self.delay_s / len(words))
            data = f"{word} ".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        _note(self.answered, question)
        self.wfile.write(b"0\r\n\r\n")


def _note(file: int, question: str) -> None:
    """Append the question to the file with one write, so that a line is never partial."""
    os.write(file, f"{json.dumps({'question': question, 'at': time.time()})}\n".encode())


def _file(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def main() -> None:
    """Serve until killed."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--asked", required=True, help="where questions are noted before they are answered")
    options.add_argument("--answered", default=os.devnull, help="where they are noted with their last word")
    options.add_argument("--delay-s", type=float, default=0.6, help="for a whole answer")
    options.add_argument("--wrong", default="-", help="the plan that gets a wrong answer")
    given = options.parse_args()
    Handler.asked, Handler.answered = _file(given.asked), _file(given.answered)
    Handler.delay_s, Handler.wrong = given.delay_s, given.wrong
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
