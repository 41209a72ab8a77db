"""A chat that requires a login: a form with a session cookie that expires, basic authentication, or a header."""

from __future__ import annotations

import base64
import json
import secrets

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer
from tests.zoo.server import PAGES, reply

USER, PASSWORD = "lookout@bots.example", "correct horse 7&battery"
KEY = "k3y-of-a-test-that-nobody-shows"
COOKIE = "site_session"
CHAT = """<!doctype html><title>Members' chat</title><script src="/chat.js"></script>
<h1>Members only</h1><p id="who">Signed in</p><div id="talk" role="log"></div>
<textarea id="box" placeholder="Message"></textarea>
<script>
  box.onkeydown = async (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const question = box.value;
    box.value = "";
    add(talk, "user", question);
    const response = await fetch("ask", { method: "POST", body: JSON.stringify({ question }) });
    if (response.status === 401) { location = "/login"; return; }
    add(talk, "bot", (await response.json()).text);
  };
</script>"""
FORM = """<!doctype html><title>Sign in</title><h1>Welcome back</h1><p>%s</p>
<form method="post" action="/login"><label>E-mail <input name="email" type="email"></label>
<label>Password <input name="password" type="password"></label><button>Sign in</button></form>"""
TWO_STEPS = """<!doctype html><title>Sign in</title><main></main><script>
  const main = document.querySelector("main");
  main.innerHTML = `<input id="name" placeholder="Your e-mail"><button id="next">Next</button>`;
  next.onclick = () => {
    const email = document.getElementById("name").value;
    main.innerHTML = `<p>${email}</p><input id="secret" type="password"><button id="go">Go on</button>`;
    go.onclick = async () => {
      const body = new URLSearchParams({ email, password: secret.value });
      const response = await fetch("/login", { method: "POST", body });
      if (response.url.endsWith("/login")) { main.append("Wrong password"); return; }
      main.innerHTML = "";
      setTimeout(() => { location = "/chat"; }, 300);
    };
  };
</script>"""
BY_ITSELF = """<!doctype html><title>Single sign-on</title><p>One moment…</p><script>
  setTimeout(async () => { await fetch("/sso", { method: "POST" }); location = "/chat"; }, 800);
</script>"""


class LoginSite(ThreadedServer):
    """A site with a chat at `/chat` for signed-in users.

    Users sign in at `/login`, `/login/steps` or `/sso`. `/basic/chat` needs basic authentication, and
    `/header/chat` a header. ``sessions`` maps each valid session to its number of questions. ``logins`` is the
    number of successful logins, and ``tries`` the number of submitted forms. A session ends when the question after
    ``asks_per_session`` questions arrives.
    """

    def __init__(self, asks_per_session: int | None = None) -> None:
        super().__init__()
        self.sessions: dict[str, int] = {}
        self.logins = self.tries = 0
        self.asked: list[str] = []
        self.keys_elsewhere: list[str] = []
        self.asks_per_session = asks_per_session

    def end_sessions(self) -> None:
        """End all sessions."""
        self.sessions.clear()

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/chat", self._chat)
        made.router.add_post("/ask", self._ask)
        made.router.add_get("/login", _form)
        made.router.add_get("/login/steps", _steps)
        made.router.add_post("/login", self._sign_in)
        made.router.add_get("/sso", _by_itself)
        made.router.add_post("/sso", self._let_in)
        made.router.add_get("/basic/chat", self._basic)
        made.router.add_post("/basic/ask", self._open_ask)
        made.router.add_get("/header/chat", self._header)
        made.router.add_post("/header/ask", self._header_ask)
        made.router.add_get("/header/moved", self._moved)
        made.router.add_get("/elsewhere", self._elsewhere)
        made.router.add_get("/chat.js", _script)
        return made

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if request.cookies.get(COOKIE) not in self.sessions:
            raise web.HTTPFound("/login")
        return await _page(CHAT)

    async def _ask(self, request: web.Request) -> web.Response:
        session = request.cookies.get(COOKIE, "")
        if self.asks_per_session is not None and self.sessions.get(session, 0) >= self.asks_per_session:
            self.sessions.pop(session, None)
        if session not in self.sessions:
            return web.json_response({"error": "signed out"}, status=401)
        self.sessions[session] += 1
        return await self._open_ask(request)

    async def _open_ask(self, request: web.Request) -> web.Response:
        question = json.loads(await request.read())["question"]
        self.asked.append(question)
        secret = f" Your password is {PASSWORD}." if "password" in question else ""
        if "session" in question:
            secret = f" Your session is {request.cookies.get(COOKIE)}."
        return web.json_response({"text": reply(question) + secret})

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        self.tries += 1
        given = await request.post()
        if (given.get("email"), given.get("password")) != (USER, PASSWORD):
            return await _page(FORM % f"Wrong password for {given.get('email')}: {given.get('password')}")
        return await self._let_in(request)

    async def _let_in(self, _request: web.Request) -> web.StreamResponse:
        self.logins += 1
        token = secrets.token_hex(16)
        self.sessions[token] = 0
        response = web.HTTPFound("/chat")
        response.set_cookie(COOKIE, token, httponly=True)
        raise response

    async def _basic(self, request: web.Request) -> web.StreamResponse:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if request.headers.get("Authorization") != wanted:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="members"'}, text="sign in")
        return await _page(CHAT)

    async def _header(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("X-Key") != KEY:
            return web.Response(status=403, text="no")
        return await _page(CHAT)

    async def _header_ask(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Key") != KEY:
            return web.Response(status=403, text="no")
        return await self._open_ask(request)

    async def _moved(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(request.query["to"])

    async def _elsewhere(self, request: web.Request) -> web.StreamResponse:
        self.keys_elsewhere.append(request.headers.get("X-Key", "none"))
        return await _page(CHAT)


async def _page(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


async def _form(_request: web.Request) -> web.Response:
    return await _page(FORM % "")


async def _steps(_request: web.Request) -> web.Response:
    return await _page(TWO_STEPS)


async def _by_itself(_request: web.Request) -> web.Response:
    return await _page(BY_ITSELF)


async def _script(_request: web.Request) -> web.Response:
    return web.Response(text=(PAGES / "chat.js").read_text(encoding="utf-8"), content_type="text/javascript")
