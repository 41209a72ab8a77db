"""Sessions and tokens over HTTP: what gives access, what ends it, and how often a token may be tried."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from deployments.site.access import AttemptLimit, choose_session_cookie_name, compute_visitor_key
from deployments.site.serve import build_token_store
from deployments.site.tokens import Role, SessionSigner
from tests.deployments.site.safety.guarded_site import guarded_site
from tests.warehouse.sample_rows import NOON

PROXY = {"trusted_proxies": ["127.0.0.1"]}
ELSEWHERE = (
    "/%5Cevil.example/",
    "/%09/evil.example",
    "/%0A/evil.example",
    "//evil.example/",
    "/%2F%2Fevil.example",
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with guarded_site(tmp_path_factory.mktemp("guarded")) as found:
        yield found


def signer_of(guarded):
    tokens = build_token_store(guarded.site.config.data_folder)
    return SessionSigner(tokens, tokens.load_or_create_key(), timedelta(hours=guarded.site.config.site.session_h))


def test_a_session_is_over_when_its_time_is(guarded):
    """A session ends after twelve hours.

    A cookie that is eleven hours old gives access, and one that is thirteen hours old does not.
    """
    signer = signer_of(guarded)
    owner = signer.tokens.find_owner(guarded.tokens["operate"])
    statuses = [
        guarded.ask(
            "/runs",
            cookie=f"{choose_session_cookie_name('')}={signer.create_session_cookie(owner, datetime.now(UTC) - ago)}",
        ).status
        for ago in (timedelta(hours=11), timedelta(hours=13))
    ]
    assert statuses == [200, 401]


def test_a_logged_out_session_opens_nothing_wherever_it_was_copied_to(guarded):
    """Logging out ends the session itself, so that a copied cookie gives no access either.

    The person's other sessions continue.
    """
    cookie, other = guarded.session(), guarded.session()
    form = {"form_token": guarded.form_token(cookie)}
    answer = guarded.ask("/logout", method="POST", form=form, cookie=cookie)
    assert (answer.status, answer.cookie) == (303, f'{choose_session_cookie_name("")}=""')
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert [guarded.ask("/runs", cookie=one).status for one in (cookie, other)] == [401, 200]


def test_ended_sessions_are_forgotten_after_their_lifetime(tmp_path):
    """An ended session is forgotten when its cookie expires, so the list of ended sessions stays small.

    Until then, the session stays in the list, because its cookie could still be used.
    """
    tokens = build_token_store(tmp_path)
    owner = tokens.find_owner(tokens.create_token("asha", Role.READ, sees_personal_data=False, at=NOON))
    signer = SessionSigner(tokens, tokens.load_or_create_key(), timedelta(hours=1))
    first, second = (
        signer.create_session_cookie(owner, NOON),
        signer.create_session_cookie(owner, NOON + timedelta(minutes=30)),
    )
    signer.end_session(first, NOON)
    signer.end_session(second, NOON + timedelta(minutes=70))
    assert len(list((tmp_path / "site" / "ended-sessions").iterdir())) == 1
    assert signer.find_owner(second, NOON + timedelta(minutes=71)) is None


def test_a_login_begins_a_new_session(guarded):
    """A cookie that existed before the login does not become a session."""
    planted = f"{choose_session_cookie_name('')}=planted"
    answer = guarded.ask("/login", method="POST", form={"token": guarded.tokens["read"]}, cookie=planted)
    assert answer.status == 303
    assert answer.cookie not in {planted, guarded.session("read")}
    assert guarded.ask("/runs", cookie=planted).status == 401


@pytest.mark.parametrize(
    "cookie",
    [
        *(
            "é.9999999999.x.y",
            "a.9999999999.é.é",
            "....",
            "a.b.c.d",
            "a.99999999999999999999.c.d",
            "",
            '"',
            "a.²³.c.d",
        ),
        *("x" * 4_000, "a.9999999999.c." + "d" * 4_000),
    ],
)
def test_a_cookie_that_is_none_of_ours_opens_nothing(guarded, cookie):
    """A cookie that the site did not issue leads to HTTP 401, never to an internal error."""
    assert (
        guarded.ask("/runs", cookie=f"{choose_session_cookie_name('')}={cookie}".encode().decode("latin-1")).status
        == 401
    )


def test_a_token_that_is_none_of_ours_opens_nothing(tmp_path):
    """An empty, malformed or too long token gives no access, and neither does another authentication scheme."""
    given = ("Bearer ", "Bearer é", "bearer lookout_", "Basic bG9va291dA==", "Bearer " + "x" * 9_000)
    with guarded_site(tmp_path) as guarded:
        found = [guarded.ask("/runs", authorization=one.encode().decode("latin-1")).status for one in given]
    assert found == [401] * len(given)


def test_another_installations_token_and_session_open_nothing(guarded, tmp_path):
    """A token or a session of another installation gives no access, even for the same person with the same role."""
    with guarded_site(tmp_path) as other:
        token, cookie = other.tokens["operate"], other.session()
        assert other.ask("/runs", cookie=cookie).status == 200
    assert guarded.ask("/runs", authorization=f"Bearer {token}").status == 401
    assert guarded.ask("/runs", cookie=cookie).status == 401
    assert guarded.ask("/login", method="POST", form={"token": token}).status == 401


def test_a_revoked_token_opens_nothing_more(tmp_path):
    """After a token is revoked, neither the token nor its sessions give access.

    This is true even if a new token of the same name is created.
    """
    with guarded_site(tmp_path) as guarded:
        token, cookie = guarded.tokens["operate"], guarded.session()
        build_token_store(tmp_path).revoke_token("operate")
        build_token_store(tmp_path).create_token(
            "operate", Role.OPERATE, sees_personal_data=False, at=datetime.now(UTC)
        )
        statuses = [
            guarded.ask("/runs", cookie=cookie).status,
            guarded.ask("/runs", authorization=f"Bearer {token}").status,
            guarded.ask("/login", method="POST", form={"token": token}).status,
        ]
    assert statuses == [401, 401, 401]


def test_a_damaged_file_of_tokens_lets_nobody_in_and_says_so(tmp_path):
    """If the file of tokens is damaged, nobody has access. The response is HTTP 503 and states the reason.

    The response does not contain the path of the file.
    """
    with guarded_site(tmp_path) as guarded:
        (tmp_path / "site" / "tokens.json").write_text("{")
        answer = guarded.ask("/runs", authorization=f"Bearer {guarded.tokens['operate']}")
    assert answer.status == 503
    assert "cannot read the tokens" in answer.text
    assert str(tmp_path) not in answer.text


def test_the_cookie_is_for_this_site_alone(guarded, tmp_path):
    """At the root, the cookie is bound to this host. Under a prefix, browsers send it only below that prefix."""
    at_root = guarded.ask("/login", method="POST", form={"token": guarded.tokens["read"]}).headers["set-cookie"]
    with guarded_site(tmp_path, path_prefix="/lookout", **PROXY) as under:
        below = under.ask("/login", method="POST", form={"token": under.tokens["read"]}).headers["set-cookie"]
    assert at_root.startswith("__Host-lookout=")
    assert below.startswith("__Secure-lookout=")
    for cookie, path in ((at_root, "/"), (below, "/lookout")):
        parts = {part.strip() for part in cookie.split(";")[1:]}
        assert parts == {"HttpOnly", "Max-Age=43200", f"Path={path}", "SameSite=strict", "Secure"}


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.onward = ""

    def handle_starttag(self, _tag, attrs):
        found = dict(attrs)
        if "data-continue" in found:
            self.onward = found["href"]


CONTROLS = ("/%09/evil.example", "/%0A/evil.example")


@pytest.mark.parametrize("path", [*ELSEWHERE, "/runs?next=//evil.example", "/runs/%3Fx=1"])
def test_the_login_goes_on_to_this_site_whatever_was_asked(guarded, path):
    """After the login, the user is sent to a page of this site, whatever address was requested before the login."""
    page = _Links()
    page.feed(guarded.ask(path).text)
    if path in CONTROLS:  # no page has such an address: it is refused before the login
        assert page.onward == ""
        return
    assert page.onward.startswith("/")
    assert not page.onward.startswith(("//", "/\\", "/\t", "/\n"))


def test_plain_http_beyond_this_machine_is_warned_of(tmp_path):
    """The login page warns of plain HTTP only if a trusted proxy reports that the browser uses it.

    With plain HTTP, the browser would drop the cookie, and others could read the token.
    """
    with guarded_site(tmp_path, host_names=["monitor.example"], **PROXY) as guarded:
        shown = [
            "plain http" in guarded.ask("/login", host="monitor.example", x_forwarded_proto=proto).text
            for proto in ("http", "https", "")
        ]
        at_home = guarded.ask("/login").text
    assert shown == [True, False, False]
    assert "plain http" not in at_home


def test_an_address_waits_for_its_own_wrong_tokens_whatever_it_says_it_is(tmp_path):
    """The attempts of each client address are limited by the wrong tokens from this address alone.

    An attacker does not count as another address by sending a forged forwarding header before the proxy's own
    header.
    """
    with guarded_site(tmp_path, **PROXY) as guarded:
        statuses = [
            guarded.ask(
                "/login",
                method="POST",
                form={"token": "lookout_wrong"},
                x_forwarded_for=f"198.51.100.{number}, 203.0.113.7",
            ).status
            for number in range(11)
        ]
        other = guarded.ask("/login", method="POST", form={"token": "wrong"}, x_forwarded_for="203.0.113.8").status
    assert statuses == [401] * 10 + [429]
    assert other == 401


def test_headers_of_a_peer_that_is_no_proxy_give_it_no_other_address(tmp_path):
    """Only headers of a trusted proxy count. Headers of other peers are ignored."""
    with guarded_site(tmp_path) as guarded:
        statuses = [
            guarded.ask(
                "/login", method="POST", form={"token": "wrong"}, x_forwarded_for=f"198.51.100.{number}"
            ).status
            for number in range(11)
        ]
    assert statuses == [401] * 10 + [429]


def test_many_tries_at_once_are_counted_as_many(tmp_path):
    """Of sixty wrong tokens that are sent at the same moment, ten get HTTP 401 and the rest HTTP 429."""
    with guarded_site(tmp_path) as guarded, ThreadPoolExecutor(20) as pool:
        tries = [
            pool.submit(guarded.ask, "/login", method="POST", form={"token": f"lookout_{number}"})
            for number in range(60)
        ]
        statuses = sorted(one.result().status for one in tries)
    assert statuses == [401] * 10 + [429] * 50


def test_wrong_tokens_in_a_header_count_as_those_of_the_form(tmp_path):
    """Wrong tokens in a header and wrong tokens in the form share one count.

    The response says when to try again.
    """
    with guarded_site(tmp_path) as guarded:
        for _ in range(5):
            assert guarded.ask("/runs", authorization="Bearer wrong").status == 401
            assert guarded.ask("/login", method="POST", form={"token": "wrong"}).status == 401
        answer = guarded.ask("/runs.json", authorization=f"Bearer {guarded.tokens['read']}")
        on_the_form = guarded.ask("/login.json", method="POST", form={"token": guarded.tokens["read"]})
        assert guarded.ask("/healthz").status == 200
    assert (answer.status, on_the_form.status) == (429, 429)
    assert 0 < int(answer.headers["retry-after"]) <= 300
    assert 0 < int(on_the_form.headers["retry-after"]) <= 300


def test_guessing_from_everywhere_waits_and_keeps_nobody_out_who_was_in():
    """After 200 wrong tokens from as many addresses, a new address has to wait.

    An address that sent a valid token before does not wait.
    """
    clock = [NOON]
    limit = AttemptLimit(lambda: clock[0])
    limit.remember_trusted_address("192.0.2.1")
    for number in range(200):
        limit.record_wrong_token(f"198.51.{number % 100}.{number}")
        clock[0] += timedelta(seconds=1)
    assert limit.compute_wait_s("203.0.113.9") == 100
    assert limit.compute_wait_s("192.0.2.1") == 0
    clock[0] += timedelta(minutes=5)
    assert limit.compute_wait_s("203.0.113.9") == 0


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("unknown", "unknown", True),
    ],
)
def test_one_visitors_addresses_are_one(first, second, same):
    """All addresses of one IPv6 network count as one address, so they have no more attempts than one address."""
    assert (compute_visitor_key(first) == compute_visitor_key(second)) is same


def test_the_memory_of_addresses_is_bounded():
    """A million addresses do not fill the memory: only the newest addresses are remembered."""
    limit = AttemptLimit(lambda: NOON, max_per_address=1, max_total=10_000, max_addresses=3)
    for number in range(10):
        limit.record_wrong_token(f"192.0.2.{number}")
        limit.remember_trusted_address(f"198.51.100.{number}")
    assert [limit.compute_wait_s(f"192.0.2.{number}") > 0 for number in range(10)] == [False] * 7 + [True] * 3
