"""Tests of the pages in a real browser, on a phone and on a desktop.

The pages are readable, run no script from a text, and send no request to another host.
"""

from __future__ import annotations

import pytest

from deployments.site.application import PAGES
from deployments.site.serve import build_token_store
from deployments.site.tokens import Role
from tests.deployments.site.browser_pages import PHONE, find_broken_rules, find_broken_rules_everywhere, opened
from tests.deployments.site.site_server import EXAMPLES, config_of, filled, run_rows, serving_site
from tests.warehouse.sample_rows import NOON

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ADDRESSES = [route.path for route in PAGES if route.path != "/now"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Serve a site on loopback whose answers are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    with serving_site(config_of(folder, refresh_s=1), filled(folder, cases=12)) as served:
        yield served


@pytest.mark.whole_only
@pytest.mark.parametrize("path", ADDRESSES)
async def test_a_page_can_be_read_and_used_with_and_without_script(chromium, site, path):
    """The page meets the rules of axe-core and our own, in both colours, without horizontal scrolling.

    Without JavaScript, the page shows the same content, with its times in UTC.
    """
    address = site.address + path.format(**EXAMPLES)
    async with opened(chromium, address) as (page, heard):
        assert await find_broken_rules_everywhere(page) == []
        assert heard == []
        heading = await page.locator("main h1").inner_text()
    async with opened(chromium, address, script=False) as (page, _):
        assert await page.locator("main h1").inner_text() == heading
        times = await page.locator("main time").all_inner_texts()
    assert times
    assert all(text.endswith(" UTC") for text in times)


async def test_times_are_in_the_readers_zone_with_utc_on_hover(chromium, site):
    """A reader in India sees times of India, and UTC on hover."""
    async with opened(chromium, f"{site.address}/runs", zone="Asia/Kolkata") as (page, _):
        time = page.locator("td time").first
        utc = await time.get_attribute("title")
        shown = await page.evaluate(
            "at => new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'short', timeZone: "
            "'Asia/Kolkata'})"
            ".format(new Date(at))",
            await time.get_attribute("datetime"),
        )
        assert utc is not None
        assert utc.endswith("UTC")
        assert await time.inner_text() == shown


async def test_a_filter_is_in_the_address_and_works_without_script(chromium, site):
    """A selected filter leads to an address that shows the same content to every user."""
    async with opened(chromium, f"{site.address}/runs", script=False) as (page, _):
        await page.get_by_label("Verdict").select_option("PASS")
        await page.get_by_role("button", name="Show").click()
        assert "verdict=PASS" in page.url
        assert await page.locator("tbody tr").count() == 0
        await page.get_by_role("link", name="all", exact=True).click()
        assert await page.locator("tbody tr").count() >= 3


async def test_a_long_table_is_paged(chromium, tmp_path):
    """Sixty cases need two pages, and the link back leads to the first page.

    The links can be read and used.
    """
    with serving_site(config_of(tmp_path), filled(tmp_path, runs=2, cases=60)) as long:
        async with opened(chromium, f"{long.address}/runs/run-1", width=PHONE) as (page, _):
            assert await page.locator("#cases tbody tr").count() == 50
            await page.get_by_role("link", name="older").click()
            assert await page.locator("#cases tbody tr").count() == 10
            assert await find_broken_rules_everywhere(page) == []
            await page.get_by_role("link", name="newer").click()
            assert "page=" not in page.url


async def test_a_person_logs_in_and_out(chromium, tmp_path):
    """The login opens the requested page, and logging out closes it again."""
    store = filled(tmp_path, runs=1)
    token = build_token_store(tmp_path).create_token("asha", Role.READ, sees_personal_data=False, at=NOON)
    with serving_site(config_of(tmp_path, login=True), store) as served:
        async with opened(chromium, f"{served.address}/runs?verdict=FAIL", width=PHONE) as (page, heard):
            assert await find_broken_rules(page) == []
            await page.get_by_label("Your token").fill(token)
            await page.get_by_role("button", name="Log in").click()
            await page.wait_for_url("**/runs?verdict=FAIL")
            await page.get_by_role("button", name="Log out").click()
            await page.wait_for_url("**/login")
            await page.goto(f"{served.address}/runs")
            assert await page.locator("h1").inner_text() == "Log in"
            assert [line for line in heard if "401" not in line] == []


async def test_a_page_renews_itself(chromium, site):
    """An open page updates itself: a run that is loaded into the warehouse appears without a click."""
    async with opened(chromium, site.address) as (page, heard):
        await page.evaluate("() => { document.getElementById('main').dataset.live = '1'; keepLive(main); }")
        before = await page.locator(".card .note").first.inner_text()
        site.store.journal.append(run_rows("run-new", 1, hours_ago=0), run_id="run-new")
        site.store.load_pending(5)
        await page.wait_for_function("() => document.querySelector('.card a[href$=run-new]')")
        assert await page.locator(".card .note").first.inner_text() == before
        assert heard == []
