"""Test every route of the site: who may access it, and which token a submitted form must contain."""

from __future__ import annotations

import pytest

from tests.deployments.site.safety.guarded_site import FORMS, address_of, guarded_site, routes_of, stored

OPEN = {"/login", "/healthz", "/login/assets/{name}"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
OF_A_COPY = ("/index.html", "/now.json", "/index.json", "/runs/index.html", "/lookout-site.json", "/metrics.json")
ELSEWHERE = {
    "no form's token": {"form_token": None},
    "an empty one": {"form_token": ""},
    "one that was cut": {"form_token": "good[:-1]"},
    "one with a sign beyond ASCII": {"form_token": "é"},
    "that of another person": {"form_token": "other"},
    "that of an old session of the same person": {"form_token": "old"},
    "another site's page": {"headers": {"sec_fetch_site": "cross-site"}},
    "a sibling's page": {"headers": {"sec_fetch_site": "same-site"}},
    "an address typed by hand": {"headers": {"sec_fetch_site": "none"}},
    "another origin": {"headers": {"origin": "https://evil.example"}},
    "an origin whose name begins the same": {"headers": {"origin": "http://127.0.0.1.evil.example"}},
    "another port": {"headers": {"origin": "http://127.0.0.1:1"}},
    "a page in a sandbox": {"headers": {"origin": "null"}},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with guarded_site(tmp_path_factory.mktemp("guarded")) as found:
        yield found


@pytest.fixture(scope="module", params=["logged in", "on this machine"])
def visited(request, tmp_path_factory):
    """Serve a site with a login or, on loopback, a site without one. On both, a form needs its form token."""
    with guarded_site(tmp_path_factory.mktemp("visited"), login=request.param == "logged in") as found:
        yield found


def test_without_a_token_every_address_answers_401_to_every_method(guarded):
    """Without a token, every route is closed to every method, as a page and as JSON.

    Only the login and the health check are open. The test covers new routes automatically.
    """
    let_in = []
    for path, _ in routes_of(guarded.site.config):
        for method in METHODS:
            for suffix in ("", ".json"):
                answer = guarded.ask(address_of(path) + suffix, method=method)
                if path not in OPEN and answer.status != 401:
                    let_in.append((method, path + suffix, answer.status))
                if suffix and answer.status == 401 and method != "HEAD":
                    assert set(answer.text) > set('{"error"}'), (method, path)
    assert let_in == []


@pytest.mark.parametrize("path", [*OF_A_COPY, "/badge/helpdesk.svg", "/assets/site.js", "/runs/run-1/report"])
def test_addresses_of_files_are_closed_too(guarded, path):
    """Without a token, the addresses of exported files and of machine-readable data are closed too."""
    assert guarded.ask(path).status == 401


@pytest.mark.parametrize(
    "path",
    [
        *("/login/../runs", "/login/%2e%2e/runs", "/login/..%2fruns", "/login//runs", "//runs", "/./runs"),
        *(
            "/healthz/../metrics",
            "/healthz.json/../../runs",
            "/healthz/",
            "/healthz/runs",
            "/login/assets/../../runs",
        ),
        *("/login/assets/..%2f..%2ftokens.json", "/LOGIN/../runs", "/login;/runs", "/login%00/runs", "/runs%00"),
        *("/login/.json", "/login?next=/runs", "/login%3f/../runs", "/login\\..\\runs", "/%6cogin/../metrics"),
    ],
)
def test_no_spelling_of_an_address_leads_around_the_login(guarded, path):
    """Without a token, neither unusual spellings of a path nor paths below a public one show any stored data."""
    answer = guarded.ask(path)
    assert answer.status in {200, 400, 401, 404}
    assert "helpdesk" not in answer.text
    assert "lookout_" not in answer.text


@pytest.mark.parametrize("path", ["/runs/%00", "/runs/a%00b", "/incidents/%0a", "/runs/x/case/%ed%a0%80", "/%1b"])
def test_f104_an_address_with_what_no_name_can_hold_is_not_there(guarded, path):
    """An address with a character that no name can contain, such as a null byte, is answered with HTTP 404.

    Even for a logged-in user, such a name is not used to open a file or to run a query.
    """
    answer = guarded.ask(path, cookie=guarded.session("read"))
    assert answer.status == 404


def test_a_reader_decides_nothing_by_any_form(guarded):
    """A user with the role read gets HTTP 403 from every form, and nothing is stored.

    The user has a session with its form token, or sends a token in the header.
    """
    before, cookie = stored(guarded.site.config.data_folder), guarded.session("read")
    bearer = f"Bearer {guarded.tokens['read']}"
    let_through = []
    for path, methods in routes_of(guarded.site.config):
        if "POST" not in methods or path in {"/login", "/logout"}:
            continue
        fields = FORMS[path] | {"form_token": guarded.form_token(cookie)}
        for headers in ({"cookie": cookie}, {"authorization": bearer}):
            status = guarded.ask(address_of(path), method="POST", form=fields, **headers).status
            if status != 403:
                let_through.append((path, status))
    assert let_through == []
    assert stored(guarded.site.config.data_folder) == before


def _session(visited, name):
    return visited.session(name) if visited.site.config.site.login else None


def _forged(visited, cookie, change):
    good = visited.form_token(cookie)
    given = change.get("form_token", "good")
    match given:
        case "old":
            return visited.form_token(_session(visited, "operate")) if cookie else "x" * 43
        case "other":
            return visited.form_token(_session(visited, "privacy")) if cookie else "y" * 43
        case "good[:-1]":
            return good[:-1]
        case "good":
            return good
        case _:
            return given


@pytest.mark.whole_only
@pytest.mark.parametrize("change", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_form_from_elsewhere_is_refused_and_nothing_is_stored(visited, change):
    """A form that was sent from elsewhere is refused with HTTP 403 at every address, and nothing is stored.

    The journal, names, drafts and sessions are unchanged.
    """
    cookie = _session(visited, "operate")
    token = _forged(visited, cookie, change)
    folder = visited.site.config.data_folder
    before, let_through = stored(folder), []
    for path, methods in routes_of(visited.site.config):
        if "POST" not in methods or path == "/login":
            continue
        fields = FORMS[path] | ({} if token is None else {"form_token": token})
        headers = change.get("headers", {}) | ({"cookie": cookie} if cookie else {})
        answer = visited.ask(address_of(path), method="POST", form=fields, **headers)
        if answer.status != 403:
            let_through.append((path, answer.status, answer.text[:80]))
    assert let_through == []
    assert stored(folder) == before
    assert cookie is None or visited.ask("/runs", cookie=cookie).status == 200


@pytest.mark.parametrize("change", [one for one in ELSEWHERE.values() if "headers" in one])
def test_a_form_of_another_site_logs_no_user_in(guarded, change):
    """A valid token in another site's form starts no session, so another site cannot choose who acts."""
    form = {"token": guarded.tokens["operate"]}
    answer = guarded.ask("/login", method="POST", form=form, **change["headers"])
    assert (answer.status, answer.cookie) == (403, "")


def test_the_same_forms_from_their_own_page_are_carried_out(tmp_path):
    """The forms that are refused from elsewhere are valid: if their own page sends them, each is stored."""
    with guarded_site(tmp_path, login=False) as visited:
        token = visited.form_token(None)
        own = {"sec_fetch_site": "same-origin", "origin": visited.site.address}
        carried_out = {}
        for path, fields in FORMS.items():
            before = stored(tmp_path)
            instead = _existing(visited, path)
            answer = visited.ask(
                address_of(path, **{name: text for name, text in instead.items() if name in {"silence", "draft"}}),
                method="POST",
                form=fields | instead | {"form_token": token},
                **own,
            )
            carried_out[path] = (answer.status, stored(tmp_path) != before)
    assert carried_out == {path: (303, path != "/logout") for path in FORMS}


def _existing(visited, path):
    """Return the id of a silence, an answer or a draft that the form at ``path`` needs, read from the site."""
    if path.endswith("/end"):
        shown = visited.ask(address_of("/incidents/{incident}.json")).text
        return {"silence": shown.partition('"silences":[{"id":"')[2].partition('"')[0]}
    if path == "/review/answer":
        page = visited.ask("/review?said=wrong").text
        return {"answer": page.partition('name="answer" value="')[2].partition('"')[0]}
    if path in {"/review/drafts/{draft}", "/review/incidents/{draft}"}:
        page = visited.ask(path.replace("/{draft}", ".json")).text
        return {"draft": page.partition('"item":{"id":"')[2].partition('"')[0]}
    return {}
