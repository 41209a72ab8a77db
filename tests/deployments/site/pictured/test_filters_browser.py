"""Every filter of every page, used in a real browser at both widths, with and without scripts."""

from __future__ import annotations

from contextlib import chdir
from typing import NamedTuple

import pytest

from deployments.site.application import PAGES
from deployments.site.rendering import NAVIGATION
from tests.deployments.site.browser_pages import DESKTOP, PHONE, opened
from tests.deployments.site.pictured.example_site import (
    CASES,
    LEAK,
    NOW,
    RUNS,
    TARGET,
    config_of,
    filled,
    with_drafts,
)
from tests.deployments.site.site_server import serving_site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


class Filtered(NamedTuple):
    """A value of a filter, with a text that the filtered page shows, and a text that it no longer shows."""

    value: str
    there: str
    gone: str = ""


PLACES = {
    "/runs/{run}": f"/runs/run-{RUNS - 1}",
    "/cases/{case}": "/cases/maternity",
    "/incidents/{incident}": f"/incidents/{LEAK}",
}
FILTERS: dict[str, dict[str, Filtered]] = {
    "/": {},
    "/runs": {
        "target": Filtered("claims-chat", "claims-3", "run-13"),
        "verdict": Filtered("FAIL", "run-13", "run-11"),
        "suite": Filtered("policy-gold", "run-13"),
        "commit": Filtered("nothing-has-this", "No run matches these filters", "run-13"),
    },
    "/runs/{run}": {"outcome": Filtered("failed", "room-rent", "ayush")},
    "/cases": {
        "target": Filtered("claims-chat", "13 of 13", "Broke"),
        "suite": Filtered("policy-gold", "room-rent"),
        "severity": Filtered("3", "waiting-period", "room-rent"),
        "type": Filtered("renewal", "renewal-grace", "room-rent"),
        "language": Filtered("hi", "hi-cataract", "room-rent"),
        "outcome": Filtered("failed", "room-rent", "ayush"),
        "course": Filtered("fixed", "co-payment", "room-rent"),
    },
    "/cases/{case}": {
        "target": Filtered("claims-chat", "Answers, newest first 4"),
        "outcome": Filtered("failed", "usually it is 2 %", "clause 5.2"),
    },
    "/compare": {
        "before": Filtered("run-03", "run-03"),
        "now": Filtered("run-12", "run-12", "run-13"),
        "way": Filtered("fixed", "No case matches these filters"),
    },
    "/nightly": {
        "target": Filtered("claims-chat", "No night matches these filters", "nights"),
        "drift": Filtered("worse", "1–1 of 1"),
    },
    "/judge": {"target": Filtered("claims-chat", "on claims-chat", "on policy-chat")},
    "/suite": {
        "target": Filtered("claims-chat", "in run claims-3", "run-13"),
        "suite": Filtered("policy-gold", "policy-gold"),
    },
    "/incidents": {
        "target": Filtered("claims-chat", "No incident matches these filters", "room-rent"),
        "state": Filtered("open", "room-rent"),
        "severity": Filtered("3", "An account number", "room-rent"),
        "kind": Filtered("drift", "More conversations", "room-rent"),
    },
    "/incidents/{incident}": {},
    "/hallucinations": {
        "target": Filtered("claims-chat", "No entry matches these filters", "robotic"),
        "since": Filtered("2026-03-02T00:00", "robotic", "dental"),
        "until": Filtered("2026-03-01T00:00", "dental", "robotic"),
    },
    "/review": {"target": Filtered("policy-chat", "policy-chat", "claims-chat")},
    "/review/drafts": {
        "target": Filtered(TARGET, "Yes, it is gold", "Choose a target above"),
        "kind": Filtered("translation", "मोतियाबिंद", "number 1 under"),
    },
    "/review/incidents": {"target": Filtered("claims-chat", "No drafts", "neighbour")},
}
"""All pages, each with all filters of its form. A page or filter that is missing here fails a test."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Serve the site with the data of the screenshots."""
    folder = tmp_path_factory.mktemp("filters")
    store = filled(folder)
    with_drafts(folder)
    with chdir(folder), serving_site(config_of(folder), store, now=lambda: NOW) as served:
        yield served


async def test_every_page_is_in_the_table():
    """Every page of the site has a row in the table ``FILTERS``, so a new page needs a new row."""
    assert set(FILTERS) == {route.path for route in PAGES if route.path != "/now"}
    assert len(CASES) == 13


@pytest.mark.whole_only
@pytest.mark.parametrize(
    ("width", "script"), [(PHONE, True), (DESKTOP, False)], ids=["phone", "desktop, no script"]
)
@pytest.mark.parametrize("path", FILTERS)
@pytest.mark.a_slice(14)
async def test_every_filter_of_a_page_works(chromium, site, path, width, script):
    """If a filter value is selected in the form, the address and the form contain it.

    The page then shows only matching entries.
    """
    address = site.address + PLACES.get(path, path)
    async with opened(chromium, address, width=width, script=script) as (page, heard):
        named = [await one.get_attribute("name") for one in await page.locator("form.filters [name]").all()]
        assert sorted(filter(None, named)) == sorted(FILTERS[path])
        for name, wanted in FILTERS[path].items():
            await page.goto(address)
            field = page.locator(f"form.filters [name={name}]")
            if choices := await options(field):
                assert wanted.value in choices
                await field.select_option(wanted.value)
            else:
                await field.fill(wanted.value)
            if not choices or not script:  # with scripts, selecting a value is enough
                await page.get_by_role("button", name="Show").click()
            await page.wait_for_url(lambda url, name=name: f"{name}=" in url)
            assert await page.locator(f"form.filters [name={name}]").input_value() == wanted.value
            shown = await page.locator("main").inner_text()
            for form in await page.locator("form.filters").all():
                shown = shown.replace(await form.inner_text(), "")
            assert wanted.there in shown, (name, shown[:500])
            assert not wanted.gone or wanted.gone not in shown, (name, shown[:500])
        assert heard == []


async def options(field) -> list[str | None]:
    return [await one.get_attribute("value") for one in await field.locator("option").all()]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
async def test_the_menu_of_a_phone_is_one_line_and_leads_everywhere(chromium, site, script):
    """On a phone, the closed menu is one line with the page's name, and the open menu lists every page."""
    async with opened(chromium, f"{site.address}/runs", width=PHONE, script=script) as (page, heard):
        bar = await page.locator("header.bar").bounding_box()
        assert bar is not None
        assert bar["height"] < 60
        menu = page.locator(".menu summary")
        assert "Runs" in await menu.inner_text()
        await menu.click()
        assert await page.locator(".menu nav a").all_inner_texts() == [word for _, word in NAVIGATION]
        await page.locator(".menu nav").get_by_role("link", name="Suite").click()
        await page.wait_for_url("**/suite")
        assert "Suite" in await page.locator(".menu summary").inner_text()
        assert heard == []
