"""The pages in a real browser, on a phone and on a desk: they can be read, run nothing, and ask nobody for anything."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from deployments.site.application import PAGES
from deployments.site.serve import tokens_in
from deployments.site.tokens import Role
from tests.deployments.site.site_server import EXAMPLES, config_of, filled, run_rows, serving_site
from tests.warehouse.sample_rows import NOON

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SYSTEM_CHROMIUM = Path("/usr/bin/chromium-headless-shell")
CHROMIUM = os.environ.get("CHROMIUM_PATH") or (str(SYSTEM_CHROMIUM) if SYSTEM_CHROMIUM.exists() else None)
RULES = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")
ADDRESSES = [route.path for route in PAGES if route.path != "/now"]
PHONE, DESK, NARROW = 390, 1280, 320


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        await browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site on loopback whose answers are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    with serving_site(config_of(folder, refresh_s=1), filled(folder, cases=60)) as served:
        yield served


@asynccontextmanager
async def opened(
    chromium: Browser,
    address: str,
    *,
    width: int = DESK,
    dark: bool = False,
    script: bool = True,
    zone: str = "UTC",
    without_policy: bool = False,
) -> AsyncIterator[tuple[Page, list[str]]]:
    """The page, and a growing list of all that went wrong or elsewhere."""
    context = await chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        timezone_id=zone,
        locale="en-GB",
        bypass_csp=without_policy,
    )
    page = await context.new_page()
    heard: list[str] = []
    host = "/".join(address.split("/")[:3])
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
    page.on("popup", lambda _: heard.append("popup"))
    page.on(
        "request",
        lambda request: None if request.url.startswith((host, "data:")) else heard.append(f"asked {request.url}"),
    )
    await page.goto(address)
    yield page, heard
    await context.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, PHONE, DESK])
@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.a_slice(36)
async def test_a_page_can_be_read_and_used(chromium, site, path, width, dark):
    """By our own rules for accessibility (fewer than axe-core's), in both colours, without a bar to scroll sideways."""
    async with opened(chromium, site.address + path.format(**EXAMPLES), width=width, dark=dark) as (page, heard):
        assert await page.evaluate(RULES) == []
        assert heard == []


@pytest.mark.parametrize(
    ("markup", "rule"),
    [
        ("<button></button>", "no name"),
        ("<input name=x>", "no label"),
        ("<p style='color:#999;background:#fff'>pale</p>", "contrast"),
        ("<h5>deep</h5>", "heading skips"),
        ("<p id=main>twice</p>", "occurs twice"),
        ("<div style='width:3000px;height:1px'></div>", "wider than the window"),
    ],
)
async def test_the_rules_find_what_is_planted(chromium, site, markup, rule):
    """A rule that finds nothing anywhere would hold for every page."""
    async with opened(chromium, f"{site.address}/runs") as (page, _):
        await page.evaluate("markup => document.querySelector('h1').insertAdjacentHTML('afterend', markup)", markup)
        await page.evaluate(
            "() => document.querySelectorAll('main [style]').forEach(one => one.style.cssText = one.getAttribute('style'))"
        )
        assert any(rule in line for line in await page.evaluate(RULES))


@pytest.mark.parametrize("path", ADDRESSES)
async def test_a_page_needs_no_script(chromium, site, path):
    """Without JavaScript it shows the same, with its times in UTC."""
    async with opened(chromium, site.address + path.format(**EXAMPLES), script=False) as (page, _):
        plain = await page.locator("main h1").inner_text()
        times = await page.locator("main time").all_inner_texts()
    async with opened(chromium, site.address + path.format(**EXAMPLES)) as (page, _):
        assert await page.locator("main h1").inner_text() == plain
    assert times
    assert all(text.endswith(" UTC") for text in times)


async def test_times_are_in_the_readers_zone_with_utc_on_hover(chromium, site):
    """A reader in India sees India's time, and UTC when they ask."""
    async with opened(chromium, f"{site.address}/runs", zone="Asia/Kolkata") as (page, _):
        time = page.locator("td time").first
        utc = await time.get_attribute("title")
        shown = await page.evaluate(
            "at => new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'short', timeZone: 'Asia/Kolkata'})"
            ".format(new Date(at))",
            await time.get_attribute("datetime"),
        )
        assert utc is not None
        assert utc.endswith("UTC")
        assert await time.inner_text() == shown


async def test_a_filter_is_in_the_address_and_works_without_script(chromium, site):
    """Choosing a filter leads to an address that shows the same to whoever opens it."""
    async with opened(chromium, f"{site.address}/runs", script=False) as (page, _):
        await page.get_by_label("Verdict").select_option("PASS")
        await page.get_by_role("button", name="Show").click()
        assert "verdict=PASS" in page.url
        assert "No run is like that" in await page.locator("main").inner_text()
        await page.get_by_role("link", name="all", exact=True).click()
        assert await page.locator("tbody tr").count() >= 3


async def test_a_long_table_is_paged(chromium, site):
    """Sixty cases are two pages, and the way back leads to the first."""
    async with opened(chromium, f"{site.address}/runs/run-1", width=PHONE) as (page, _):
        assert await page.locator("#cases tbody tr").count() == 50
        await page.get_by_role("link", name="older").click()
        assert await page.locator("#cases tbody tr").count() == 10
        await page.get_by_role("link", name="newer").click()
        assert "page=" not in page.url


async def test_a_person_logs_in_and_out(chromium, tmp_path):
    """The login opens the page that was asked for; logging out closes it again."""
    store = filled(tmp_path, runs=1)
    token = tokens_in(tmp_path).add("asha", Role.READ, sees_personal_data=False, at=NOON)
    with serving_site(config_of(tmp_path, login=True), store) as served:
        async with opened(chromium, f"{served.address}/runs?verdict=FAIL", width=PHONE) as (page, heard):
            assert await page.evaluate(RULES) == []
            await page.get_by_label("Your token").fill(token)
            await page.get_by_role("button", name="Log in").click()
            await page.wait_for_url("**/runs?verdict=FAIL")
            await page.get_by_role("button", name="Log out").click()
            await page.wait_for_url("**/login")
            await page.goto(f"{served.address}/runs")
            assert await page.locator("h1").inner_text() == "Log in"
            assert [line for line in heard if "401" not in line] == []


async def test_a_page_renews_itself(chromium, site):
    """A run that is loaded while somebody looks appears without a click."""
    async with opened(chromium, site.address) as (page, heard):
        await page.evaluate("() => { document.getElementById('main').dataset.live = '1'; keepLive(main); }")
        before = await page.locator(".card .note").first.inner_text()
        site.store.journal.append(run_rows("run-new", 1, hours_ago=0), run_id="run-new")
        site.store.load_pending(5)
        await page.wait_for_function("() => document.querySelector('.card a[href$=run-new]')")
        assert await page.locator(".card .note").first.inner_text() == before
        assert heard == []
