"""A site with a login and pending decisions, and the routes of its application, for tests of access."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from starlette.routing import Route

from deployments.site.access import AccessControl
from deployments.site.serve import SiteEnvironment, build_site_application, build_token_store
from deployments.site.tokens import Role
from monitors.config.file import Config
from tests.deployments.site.people_server import compute_fingerprint, wanted_case, with_drafts, with_people
from tests.deployments.site.site_server import EXAMPLES, ServedSite, config_of, serving_site
from warehouse.queries.operator_actions import append_draft

INCIDENT = compute_fingerprint("user-0")
FORMS: dict[str, dict[str, str]] = {
    "/incidents/{incident}/decide/{decision}": {"note": "seen"},
    "/incidents/{incident}/silence": {"lasting": "1h", "note": "known"},
    "/incidents/{incident}/silence/{silence}/end": {},
    "/review/name": {"name": "bina"},
    "/review/answer": {"verdict": "wrong", "failure_kind": "wrong_fact"},
    "/review/drafts/{draft}": {"word": "no", "target": "helpdesk"},
    "/review/incidents/{draft}": {"word": "no", "target": "helpdesk", "note": "no question of a user"},
    "/logout": {},
}
"""A valid form for each address that accepts one, for tests of all routes.

A new decision needs a form here.
"""


@dataclass
class Answered:
    """A response of the site, as it was sent."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def cookie(self) -> str:
        """Return the cookie that the response sets, without its attributes."""
        return (self.headers["set-cookie"] or "").partition(";")[0]


def asked(address: str, path: str, *, method: str = "GET", form: dict[str, str] | None = None, **headers: str):
    """Send a request with exactly this path and exactly these headers, and return the response."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    body = urlencode(form) if form is not None else None
    sent = {"Content-Type": "application/x-www-form-urlencoded"} if form is not None else {}
    connection.request(method, path, body, sent | {name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    found = Answered(answer.status, answer.headers, answer.read().decode())
    connection.close()
    return found


@dataclass
class Guarded:
    """A served site, and the access token of each user by the user's name."""

    site: ServedSite
    tokens: dict[str, str]

    def ask(self, path: str, **given) -> Answered:
        """Send a request to the site, and return the response."""
        return asked(self.site.address, path, **given)

    def session(self, name: str = "operate") -> str:
        """Start a new session of the person ``name``, and return its cookie."""
        answer = self.ask("/login", method="POST", form={"token": self.tokens[name]})
        assert answer.status == 303, answer.text
        return answer.cookie

    def form_token(self, cookie: str | None) -> str:
        """Return the form token of a session. Without a cookie, return the form token of the site on loopback."""
        page = self.ask(f"/incidents/{INCIDENT}", **({"cookie": cookie} if cookie else {})).text
        return page.split('name="form_token" value="')[1].partition('"')[0]


@contextmanager
def guarded_site(folder: Path, *, login: bool = True, **settings: object) -> Iterator[Guarded]:
    """Serve a site with incidents, answers and drafts.

    With a login, the persons ``read``, ``operate`` and ``privacy`` have a token each.
    """
    store, tokens, drafts = with_people(folder), build_token_store(folder), with_drafts(folder, 12)
    assert drafts.exists()
    append_draft(store.journal, wanted_case())
    store.load_pending(5)
    made = {
        name: tokens.create_token(name, role, sees_personal_data=name == "privacy", at=datetime.now(UTC))
        for name, role in (("read", Role.READ), ("operate", Role.OPERATE), ("privacy", Role.OPERATE))
    }
    with chdir(folder), serving_site(config_of(folder, login=login, **settings), store) as site:
        yield Guarded(site, made)


def routes_of(config: Config) -> list[tuple[str, frozenset[str]]]:
    """Return every path of the application's routing table, with its HTTP methods."""
    application = build_site_application(config, "127.0.0.1", SiteEnvironment(lambda: datetime.now(UTC), "me"))
    assert isinstance(application, AccessControl)
    found = [route for route in application.app.routes if isinstance(route, Route)]
    assert len(found) == len(application.app.routes)
    return [(route.path, frozenset(route.methods or ())) for route in found]


def address_of(path: str, **instead: str) -> str:
    """Return an example address for the path of a route. ``instead`` replaces some of the values in the address."""
    return path.format(**{**EXAMPLES, "incident": INCIDENT, **instead})


def stored(folder: Path) -> dict[str, str]:
    """Return the hashes of all files that decisions change: the journal, names, drafts, the suite, tokens."""
    skipped = ("site/views-", "snapshots/", "warehouse")
    files = (file for file in folder.rglob("*") if file.is_file())
    named = {str(file.relative_to(folder)): file for file in files}
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in named.items()
        if not name.startswith(skipped)
    }


def views(folder: Path) -> list[dict]:
    """Return the entries of the view log."""
    files = sorted((folder / "site").glob("views-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
