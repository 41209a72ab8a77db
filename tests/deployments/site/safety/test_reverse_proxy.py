"""Behind a reverse proxy with a prefix, all addresses stay below the prefix, and only the proxy is trusted."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from deployments.site.access import _PROXY_HEADERS as FORWARDED
from tests.deployments.site.browser_pages import PHONE, find_broken_rules, opened
from tests.deployments.site.safety.guarded_site import FORMS, INCIDENT, address_of, guarded_site, routes_of
from tests.deployments.site.safety.proxy_server import ProxyWay, reverse_proxy

WAYS = {
    "strips the prefix and renames the host": ProxyWay(strips=True, renames=True),
    "keeps a deep prefix": ProxyWay(prefix="/ops/monitor.v2/~lookout"),
}
SETTINGS = {"trusted_proxies": ["127.0.0.1"]}


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS.keys())
def behind(request, tmp_path_factory):
    """Serve a site behind a proxy, and yield the site and the proxy."""
    way = request.param
    folder = tmp_path_factory.mktemp("behind")
    with (
        guarded_site(folder, path_prefix=way.prefix, **SETTINGS) as guarded,
        reverse_proxy(guarded.site.address, way) as proxy,
    ):
        yield guarded, proxy, way


class _Addresses(HTMLParser):
    """Collects all addresses that a page links to, loads or sends forms to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, _tag, attrs):
        self.found |= {value for name, value in attrs if name in {"href", "src", "action", "formaction"} and value}


def session(proxy, prefix, token):
    """Log in through the proxy, and return the user's cookie."""
    answer = httpx.post(f"{proxy.address}{prefix}/login", data={"token": token}, trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{prefix}/")
    cookie = answer.headers["set-cookie"]
    assert f"Path={prefix};" in cookie
    return cookie.partition(";")[0]


@pytest.mark.whole_only
def test_every_link_form_and_file_stays_below_the_prefix(behind):
    """Every link, form and file on all reachable pages has an address below the prefix.

    All pages that the first page leads to are visited, and none of them is missing.
    """
    guarded, proxy, way = behind
    cookie = session(proxy, way.prefix, guarded.tokens["privacy"])
    begin = f"{proxy.address}{way.prefix}/"
    waiting, seen, wrong = [begin], {begin}, []
    with httpx.Client(trust_env=False, headers={"cookie": cookie}) as client:
        while waiting and len(seen) < 400:
            here = waiting.pop()
            answer = client.get(here)
            page = _Addresses()
            page.feed(answer.text if "html" in answer.headers["content-type"] else "")
            wrong += [(here, answer.status_code)] if answer.status_code != 200 else []
            for address in page.found - {"data:,"}:
                goal = urljoin(here, address).partition("#")[0]
                if not urlsplit(goal).path.startswith(f"{way.prefix}/"):
                    wrong.append((here, address))
                elif goal not in seen and "/decide" not in goal and "/silence" not in goal and "/name" not in goal:
                    seen.add(goal)
                    only_forms = goal.endswith(("/logout", "/answer")) or "/review/drafts/" in goal
                    waiting += [] if only_forms or "/review/incidents/" in goal else [goal]
    assert wrong == []
    assert proxy.outside == []
    assert len(seen) > len(routes_of(guarded.site.config))


def test_every_redirect_stays_below_the_prefix(behind):
    """Redirects after each form, and after a login that a page required, stay below the prefix."""
    guarded, proxy, way = behind
    cookie = session(proxy, way.prefix, guarded.tokens["operate"])
    with httpx.Client(trust_env=False, headers={"cookie": cookie}) as client:
        page = client.get(f"{proxy.address}{way.prefix}/incidents/{INCIDENT}").text
        form_token = page.split('name="form_token" value="')[1].partition('"')[0]
        for path, fields in FORMS.items():
            address = f"{proxy.address}{way.prefix}{address_of(path)}"
            answer = client.post(address, data=fields | {"form_token": form_token})
            assert answer.status_code != 403, path
            if answer.is_redirect:
                assert answer.headers["location"].startswith(f"{way.prefix}/"), path
    asked = httpx.get(f"{proxy.address}{way.prefix}/runs?verdict=FAIL", trust_env=False)
    assert asked.status_code == 401
    assert f'href="{way.prefix}/runs?verdict=FAIL" data-continue' in asked.text
    slash = httpx.get(f"{proxy.address}{way.prefix}/runs/", trust_env=False, headers={"cookie": cookie})
    assert not slash.is_redirect


@pytest.mark.whole_only
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_person_works_behind_the_proxy(chromium, behind):
    """A person logs in, decides and logs out in a browser, without a request outside the prefix."""
    guarded, proxy, way = behind
    address = f"{proxy.address}{way.prefix}/incidents/{INCIDENT}"
    async with opened(chromium, address, width=PHONE) as (page, heard):
        await page.get_by_label("Your token").fill(guarded.tokens["operate"])
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url(address)
        assert await find_broken_rules(page) == []
        await page.get_by_role("button", name="Add to gold").click()
        await page.locator(".flash").wait_for()
        (cookie,) = await page.context.cookies()
        await page.get_by_role("button", name="Log out").click()
        await page.wait_for_url(f"**{way.prefix}/login")
        assert [line for line in heard if "401" not in line] == []
    assert (cookie["path"], cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (
        way.prefix,
        True,
        True,
        "Strict",
    )
    assert proxy.outside == []


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with guarded_site(tmp_path_factory.mktemp("local"), login=False) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with guarded_site(tmp_path_factory.mktemp("guarded"), host_names=["monitor.example"]) as found:
        yield found


@pytest.mark.parametrize("name", FORWARDED)
def test_no_header_makes_anybody_local(local, guarded, name):
    """No forwarding header makes a user local.

    Behind an unconfigured proxy, a site without a login is closed. With a login, no header gives access.
    """
    for value in ("127.0.0.1", "for=127.0.0.1;host=localhost", "localhost", "/"):
        headers = {name.replace("-", "_"): value}
        assert local.ask("/runs", **headers).status == 400
        assert guarded.ask("/runs", **headers).status == 401


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example:8068",
            "[::1].evil.example",
        ),
        *(
            "127.0.0.1@evil.example",
            "evil.example#127.0.0.1",
            "evil.example/127.0.0.1",
            "",
            "0x7f000001.evil.example",
        ),
    ],
)
def test_a_page_elsewhere_cannot_reach_the_site_by_its_own_name(local, guarded, host):
    """A foreign page cannot read the site or decide anything through a host name of its own (DNS rebinding).

    This holds with and without a login. With a login, a forged forwarding header does not help either.
    """
    for site in (local, guarded):
        for method in ("GET", "POST"):
            for headers in ({}, {"x_forwarded_host": "127.0.0.1"} if site is guarded else {}):
                answer = site.ask("/incidents", method=method, host=host, **headers)
                assert answer.status == 421, (method, headers)
                assert "helpdesk" not in answer.text


@pytest.mark.parametrize(
    ("host", "forwarded", "status"),
    [
        ("lookout.internal", "monitor.example", 401),
        ("lookout.internal", "monitor.example:8443", 401),
        ("lookout.internal", "evil.example", 421),
        ("monitor.example", "", 401),
        ("evil.example", "", 421),
    ],
)
def test_a_trusted_proxys_word_for_the_host_counts(tmp_path, host, forwarded, status):
    """If a trusted proxy forwards the browser's host, the site checks that host.

    Otherwise, it checks the host of the request.
    """
    with guarded_site(tmp_path, host_names=["monitor.example"], **SETTINGS) as site:
        headers = {"x_forwarded_host": forwarded} if forwarded else {}
        assert site.ask("/runs.json", host=host, **headers).status == status


def test_an_error_behind_the_proxy_is_json_where_json_was_asked_for(behind):
    """Behind a proxy, an error is JSON if the path that was requested below the prefix ends with ``.json``."""
    _, proxy, way = behind
    answer = httpx.get(f"{proxy.address}{way.prefix}/runs/nobodys.json", trust_env=False)
    assert (answer.status_code, set(json.loads(answer.text))) == (401, {"error"})
