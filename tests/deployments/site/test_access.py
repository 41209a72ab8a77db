"""Access to the site: who is let in, what a form needs, and what every response forbids."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from deployments.site.application import ACTIONS, FILES, PAGES
from deployments.site.serve import SiteEnvironment, build_site_application, build_token_store
from deployments.site.tokens import Role, SessionSigner
from monitors.errors import ConfigError
from tests.deployments.site.site_server import EXAMPLES, config_of, filled, serving_site

ADDRESSES = [*(route.path for route in PAGES), *(path for path, _ in FILES), "/assets/{name}", "/nowhere"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Serve a site with a login. Yield the site and the tokens of a reader and an operator."""
    folder = tmp_path_factory.mktemp("guarded")
    store = filled(folder)
    tokens = build_token_store(folder)
    made = {
        role: tokens.create_token(role.value, role, sees_personal_data=role is Role.OPERATE, at=datetime.now(UTC))
        for role in Role
    }
    with serving_site(config_of(folder, login=True), store) as site:
        yield site, made


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Serve a site on loopback without a login."""
    folder = tmp_path_factory.mktemp("local")
    with serving_site(config_of(folder), filled(folder)) as site:
        yield site


def get(site, path, **headers):
    return httpx.get(f"{site.address}{path}", headers=headers, trust_env=False)


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_without_a_token_every_address_answers_401(guarded, path, suffix):
    """Without a token, every address except login and health answers HTTP 401, even an unknown address.

    This holds for a page and for its JSON.
    """
    site, _ = guarded
    answer = get(site, path.format(**EXAMPLES) + suffix)
    assert answer.status_code == 401
    if suffix:
        assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("path", [route.path for route in ACTIONS] + ["/logout"])
def test_without_a_token_nothing_is_decided(guarded, path):
    """Every decision needs a token: without one, the response is HTTP 401."""
    site, _ = guarded
    assert httpx.post(f"{site.address}{path.format(**EXAMPLES)}", trust_env=False).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/login", "/login/assets/site.css", "/login/assets/site.js"])
def test_login_and_health_are_open(guarded, path):
    """The addresses for logging in, and the health check for a watchdog, need no token."""
    site, _ = guarded
    assert get(site, path).status_code == 200


@pytest.mark.parametrize("path", [route.path for route in PAGES])
def test_a_token_in_the_header_opens_every_page(guarded, path):
    """With a token in the header, a program gets every page as HTML and as JSON."""
    site, tokens = guarded
    bearer = {"authorization": f"Bearer {tokens[Role.READ]}"}
    address = path.format(**EXAMPLES)
    assert get(site, address, **bearer).status_code == 200
    as_json = get(site, address, **bearer, accept="application/json")
    assert set(as_json.json()) == {"as_of", "data"}
    suffixed = get(site, ("/now" if address == "/" else address) + ".json", **bearer)
    assert suffixed.json()["data"].keys() == as_json.json()["data"].keys()


def test_logging_in_sets_a_strict_cookie_that_opens_pages(guarded):
    """The session cookie is Secure, HttpOnly and SameSite=Strict. The user is redirected to the requested page."""
    site, tokens = guarded
    form = {"token": tokens[Role.OPERATE], "next": "/runs?verdict=FAIL"}
    answer = httpx.post(f"{site.address}/login", data=form, trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?verdict=FAIL")
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("Secure", "HttpOnly", "SameSite=strict", "Path=/"))
    assert get(site, "/runs", cookie=cookie.partition(";")[0]).status_code == 200


@pytest.mark.parametrize(
    "next_url", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_login_never_leads_to_another_host(guarded, next_url):
    """For any ``next_url``, the login redirects to an address of this site only."""
    site, tokens = guarded
    answer = httpx.post(
        f"{site.address}/login", data={"token": tokens[Role.READ], "next": next_url}, trust_env=False
    )
    assert answer.headers["location"] == "/"


def test_a_revoked_token_ends_its_session_at_once(tmp_path):
    """If a token is revoked, the person's sessions end. An expired or forged cookie gives no access."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    tokens = build_token_store(tmp_path)
    owner = tokens.find_owner(tokens.create_token("asha", Role.OPERATE, sees_personal_data=False, at=now))
    signer = SessionSigner(tokens, tokens.load_or_create_key(), timedelta(hours=1))
    cookie = signer.create_session_cookie(owner, now)
    assert signer.find_owner(cookie, now) == owner
    assert signer.find_owner(cookie, now + timedelta(hours=2)) is None
    assert signer.find_owner(cookie[:-1] + ("A" if cookie[-1] != "A" else "B"), now) is None
    tokens.revoke_token("asha")
    assert signer.find_owner(cookie, now) is None


def test_tokens_are_stored_as_hashes_for_their_owner_alone(tmp_path):
    """The file of tokens contains hashes instead of tokens, and only its owner can read it."""
    tokens = build_token_store(tmp_path)
    token = tokens.create_token("asha", Role.READ, sees_personal_data=False, at=datetime(2026, 3, 1, tzinfo=UTC))
    file = tmp_path / "site" / "tokens.json"
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(ConfigError, match="already has a token"):
        tokens.create_token("asha", Role.READ, sees_personal_data=False, at=datetime(2026, 3, 1, tzinfo=UTC))


def test_wrong_tokens_have_to_wait(tmp_path):
    """After ten wrong tokens from an address, the next attempt has to wait. The response says how long."""
    store = filled(tmp_path)
    build_token_store(tmp_path).create_token("asha", Role.READ, sees_personal_data=False, at=datetime.now(UTC))
    with serving_site(config_of(tmp_path, login=True), store) as site:
        tries = [
            httpx.post(f"{site.address}/login", data={"token": "lookout_wrong"}, trust_env=False) for _ in range(11)
        ]
    assert [one.status_code for one in tries] == [401] * 10 + [429]
    assert int(tries[-1].headers["retry-after"]) > 0


@pytest.mark.parametrize("path", ["/", "/runs", "/nowhere", "/assets/site.css", "/healthz", "/now.json"])
def test_every_answer_forbids_what_no_page_needs(local, path):
    """Responses forbid inline scripts, foreign styles and scripts, frames, and requests to other hosts."""
    headers = get(local, path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8068", "127.0.0.1.evil.example", ""])
def test_another_name_is_refused(local, host):
    """A foreign page cannot reach the site with its own host name that resolves to this machine."""
    assert get(local, "/", host=host).status_code == 421


def test_a_proxy_that_nobody_named_is_refused(local):
    """A proxy that is not configured is refused, because all its users would count as local users of this machine.

    With a configured proxy, the site needs a login.
    """
    answer = get(local, "/", **{"x-forwarded-for": "203.0.113.7"})
    assert answer.status_code == 400
    assert "site.trusted_proxies" in answer.text


def test_beyond_loopback_a_token_is_needed(tmp_path):
    """A site outside loopback does not start if no user can log in."""
    outside = SiteEnvironment(lambda: datetime.now(UTC), "me")
    filled(tmp_path)
    with pytest.raises(ConfigError, match="lookout site token add"):
        build_site_application(config_of(tmp_path), "0.0.0.0", outside)
    with pytest.raises(ConfigError, match="lookout site token add"):
        build_site_application(config_of(tmp_path, trusted_proxies=["127.0.0.1"]), "127.0.0.1", outside)


def test_personal_data_is_masked_until_a_person_who_may_see_it_asks(guarded):
    """A reader never sees personal data. A permitted user requests it in the address, and the request is logged."""
    site, tokens = guarded
    plain = {role: get(site, "/runs/run-1", authorization=f"Bearer {token}") for role, token in tokens.items()}
    assert all("ask@example.org" not in answer.text for answer in plain.values())
    asked = {
        role: get(site, "/runs/run-1?personal=shown", authorization=f"Bearer {token}")
        for role, token in tokens.items()
    }
    assert asked[Role.READ].status_code == 403
    assert "ask@example.org" in asked[Role.OPERATE].text
    lines = [
        json.loads(line)
        for file in (site.config.data_folder / "site").glob("views-*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert any(
        line["who"] == "operate" and line["path"] == "/runs/run-1" and line["personal_data"] for line in lines
    )
    assert not any(line["personal_data"] for line in lines if line["who"] == "read")
