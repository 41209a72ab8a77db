"""The assistant of Pine Library, an invented library. Only members see its page: they sign in with a form."""

from __future__ import annotations

import argparse
import json
import os
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

ANSWERS = {
    "how long": "You can keep a book for 28 days.",
    "late": "A book that comes back late costs 20 cents a day.",
    "how many": "You may borrow 12 books at once.",
    "renew": "Yes, you can renew a book online.",
}
OTHERWISE = "I'm sorry, I can't help with that. I only know how borrowing works."
FORM = """<!doctype html><title>Pine Library</title><h1>Sign in</h1><form method="post" action="/login">
<label>User <input name="user"></label> <label>Password <input name="password" type="password"></label>
<button>Sign in</button></form>"""
CHAT = """<!doctype html><title>Pine Library</title><h1>Ask the library</h1><div id="talk" role="log"></div>
<form id="ask"><textarea id="box" placeholder="Your question"></textarea><button>Send</button></form><script>
const add = (who, text) => {
  const p = document.createElement("p");
  p.className = who;
  p.textContent = text;
  talk.append(p);
};
const send = async () => {
  const question = box.value;
  box.value = "";
  add("user", question);
  const answer = await fetch("/ask", { method: "POST", body: JSON.stringify({ question }) });
  add("bot", (await answer.json()).answer);
};
ask.onsubmit = (event) => { event.preventDefault(); send(); };
box.onkeydown = (event) => { if (event.key === "Enter") { event.preventDefault(); send(); } };
</script>"""
SESSION = secrets.token_hex()


def find_answer(question: str) -> str:
    """Return the answer whose keyword is in the question, or a refusal if no keyword is in the question."""
    return next((answer for key, answer in ANSWERS.items() if key in question.lower()), OTHERWISE)


class LibraryPages(BaseHTTPRequestHandler):
    """Shows the chat to members who are signed in, and the login form to all other users."""

    def do_GET(self) -> None:
        """Send the chat page to a member, otherwise the login form."""
        self._send(CHAT if self._is_member() else FORM)

    def do_POST(self) -> None:
        """Check a sent login form, or answer a member's question."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/login":
            fields = parse_qs(body)
            credentials = {"user": [os.environ["BOT_USER"]], "password": [os.environ["BOT_PASSWORD"]]}
            is_correct = fields == credentials
            self._send(CHAT if is_correct else FORM, cookie=SESSION if is_correct else "")
        elif self._is_member():
            self._send(json.dumps({"answer": find_answer(json.loads(body)["question"])}), "application/json")
        else:
            self.send_error(401)

    def _is_member(self) -> bool:
        return f"session={SESSION}" in self.headers.get("Cookie", "")

    def _send(self, text: str, kind: str = "text/html", cookie: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(text.encode())))
        if cookie:
            self.send_header("Set-Cookie", f"session={cookie}; HttpOnly; Path=/")
        self.end_headers()
        self.wfile.write(text.encode())


def main() -> None:
    """Start the pages and serve them until Ctrl-C.

    The environment variables BOT_USER and BOT_PASSWORD contain the name and the password of the only member.
    """
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8404)
    ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), LibraryPages).serve_forever()


if __name__ == "__main__":
    main()
