"""Personal data is redacted on every page, in JSON and in files, until a permitted user requests it."""

from __future__ import annotations

from contextlib import chdir
from datetime import UTC, datetime

import pytest

from deployments.site.application import PAGES
from deployments.site.export import export_site
from deployments.site.serve import SiteEnvironment, build_token_store, open_site
from deployments.site.tokens import Role
from tests.deployments.site.page_text import page_text
from tests.deployments.site.safety.guarded_site import Guarded, routes_of, views
from tests.deployments.site.safety.texts_from_outside import compute_fingerprint, store_of
from tests.deployments.site.site_server import EXAMPLES, config_of, serving_site
from tests.stable_text import replace_volatile

SECRETS = ("asha.rao@example.org", "4111 1111 1111 1111", "98765 43210")
TEXTS = (
    "Write to asha.rao@example.org about it.",
    "The card 4111 1111 1111 1111 was charged.",
    "Call her at +91 98765 43210 before noon.",
)
IN_THIS_STORE = EXAMPLES | {"run": "run-0", "case": "h0", "incident": compute_fingerprint(0)}
SHOWING = ("/cases/h0", "/hallucinations", "/review/drafts", "/incidents", "/nightly", "/runs/run-1", "/compare")
"""Pages that show personal data to users with the permission if they request it."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Serve a site with personal data in every text.

    The site has two readers and two operators. One of each may see personal data.
    """
    folder = tmp_path_factory.mktemp("personal")
    store, tokens = store_of(folder, TEXTS), build_token_store(folder)
    (folder / "reviewer").write_text("bina\n")
    people = {(role.value, sees) for role in Role for sees in (False, True)}
    made = {
        f"{role}{'-privacy' if sees else ''}": tokens.create_token(
            f"{role}{'-privacy' if sees else ''}", Role(role), sees_personal_data=sees, at=datetime.now(UTC)
        )
        for role, sees in people
    }
    with chdir(folder), serving_site(config_of(folder, login=True), store) as site:
        yield Guarded(site, made)


def bearer(guarded, name):
    return {"authorization": f"Bearer {guarded.tokens[name]}"}


def found_in(text):
    return [secret for secret in SECRETS if secret in text or secret.replace(" ", "") in text]


@pytest.mark.whole_only
@pytest.mark.parametrize("name", ["read", "operate", "read-privacy", "operate-privacy"])
def test_no_address_shows_it_unasked(guarded, name):
    """Without a request to show it, no role sees personal data at any address, as a page or as JSON."""
    leaks = []
    for path, methods in routes_of(guarded.site.config):
        if "GET" in methods:
            for suffix in ("", ".json", "?rows=200", ".json?rows=200", "?personal=hidden"):
                answer = guarded.ask(path.format(**IN_THIS_STORE) + suffix, **bearer(guarded, name))
                leaks += [(path, suffix, found_in(answer.text))] if found_in(answer.text) else []
    assert leaks == []


@pytest.mark.parametrize(
    "asking", ["personal=shown", "personal=sh%6fwn", "personal=x&personal=shown", "%70ersonal=shown"]
)
def test_a_permitted_user_asks_and_is_logged(guarded, asking):
    """A permitted user who requests personal data sees it, and each request is one line of the view log.

    The data is shown as a page and as JSON, and for any spelling of the address.
    """
    folder, before = guarded.site.config.data_folder, len(views(guarded.site.config.data_folder))
    for path in SHOWING:
        for suffix in ("", ".json"):
            answer = guarded.ask(f"{path}{suffix}?rows=200&{asking}", **bearer(guarded, "read-privacy"))
            assert answer.status == 200
            assert found_in(answer.text), (path, suffix)
    written = views(folder)[before:]
    assert [(line["who"], line["path"], line["personal_data"]) for line in written] == [
        ("read-privacy", path, True) for path in SHOWING for _ in range(2)
    ]
    assert all("rows=200" in line["query"] for line in written)


@pytest.mark.whole_only
@pytest.mark.parametrize("name", ["read", "operate"])
def test_an_unpermitted_user_is_refused_and_logged(guarded, name):
    """A user without permission gets no personal data from any page or its JSON.

    Each of these requests is logged, with the note that it showed no personal data.
    """
    folder, before = guarded.site.config.data_folder, len(views(guarded.site.config.data_folder))
    asked = [
        f"{route.path.format(**IN_THIS_STORE)}{suffix}?personal=shown"
        for route in PAGES
        for suffix in ("", ".json")
        if route.path != "/" or not suffix
    ]
    for path in asked:
        answer = guarded.ask(path, **bearer(guarded, name))
        assert found_in(answer.text) == [], path
        assert answer.status in {200, 403}, path
    written = views(folder)[before:]
    assert len(written) == len(asked)
    assert not any(line["personal_data"] for line in written)
    assert all("personal=shown" in line["query"] for line in written)


def test_every_look_is_written_down_with_its_filters(guarded):
    """The view log contains who viewed what, when, and with which filters: pages, JSON, figures and decisions.

    Assets that pages load are not logged.
    """
    folder = guarded.site.config.data_folder
    before = len(views(folder))
    for path in ("/runs?verdict=FAIL&page=1", "/metrics", "/badge/helpdesk.svg", "/assets/site.css", "/nowhere"):
        guarded.ask(path, **bearer(guarded, "read"))
    guarded.ask("/review/name", method="POST", form={}, **bearer(guarded, "operate"))
    guarded.ask("/runs?done=said&seal=x", **bearer(guarded, "read"))
    assert [(one["who"], one["method"], one["path"], one["query"]) for one in views(folder)[before:]] == [
        ("read", "GET", "/runs", "verdict=FAIL&page=1"),
        ("read", "GET", "/metrics", ""),
        ("read", "GET", "/badge/helpdesk.svg", ""),
        ("read", "GET", "/nowhere", ""),
        ("operate", "POST", "/review/name", ""),
        ("read", "GET", "/runs", ""),
    ]


def test_actions_that_cannot_be_stored_are_not_shown(tmp_path, snapshot):
    """If the view log cannot be written, no page is shown, and the response contains advice."""
    store = store_of(tmp_path, TEXTS[:2])
    with serving_site(config_of(tmp_path), store) as site:
        guarded = Guarded(site, {})
        assert guarded.ask("/runs").status == 200
        for file in (tmp_path / "site").glob("views-*"):
            file.unlink()
            file.mkdir()
        answer = guarded.ask("/runs")
        assert answer.status == 503
        assert replace_volatile(page_text(answer.text), tmp_path) == snapshot
        assert guarded.ask("/healthz").status == 200


def test_a_copy_in_files_is_masked_for_every_role(guarded, tmp_path):
    """An export contains no personal data in its pages, JSON, figures and badges.

    This also holds if the owner on this machine, who may see personal data, creates it.
    """
    outside = SiteEnvironment(lambda: datetime.now(UTC), "me")
    with open_site(config_of(guarded.site.config.data_folder), outside) as (site, renderer):
        written = export_site(site, renderer, tmp_path / "copy")
    leaks = {name: found_in((tmp_path / "copy" / name).read_text(encoding="utf-8")) for name in written.files}
    assert {name: found for name, found in leaks.items() if found} == {}
    assert len(written.files) > 20
