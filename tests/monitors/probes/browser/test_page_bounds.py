"""Test that a page cannot use up the disk, the screen or the memory of the machine."""

from __future__ import annotations

import os

import pytest

from monitors.errors import BrowserLost
from monitors.probes.browser.chromium import Chromium
from monitors.probes.browser.inpage import load_page_script
from tests.monitors.probes.conftest import MakeDriver
from tests.servers.hostile_page import Inside, hostile, serving

pytestmark = pytest.mark.browser
QUESTION = "is knee surgery covered?"

WORKER = (
    "try { await navigator.serviceWorker.register('/service-worker.js'); } catch (error) { return 'refused'; } "
    "return (await navigator.serviceWorker.getRegistrations()).length + ' workers';"
)
WINDOW = (
    'const other = window.open("/"); await inTime(new Promise(() => {})); return other.closed ? "closed" : "open";'
)
BOXES = "for (;;) confirm('really?');"


async def ask(driver_for: MakeDriver, attempt: str, **changes: object) -> str:
    with serving(Inside()) as inside, hostile({"ATTEMPT": attempt}, inside) as address:
        async with driver_for(address, patience_s=3, **changes) as driver:
            return (await driver.ask((QUESTION,))).visible_text


@pytest.mark.whole_only
async def test_service_workers_are_for_targets_that_ask_for_them(driver_for: MakeDriver) -> None:
    assert "1 workers" not in await ask(driver_for, WORKER)
    assert "1 workers" in await ask(driver_for, WORKER, service_workers=True)


@pytest.mark.whole_only
async def test_a_window_that_a_page_opens_is_closed(driver_for: MakeDriver) -> None:
    assert "closed" in await ask(driver_for, WINDOW)


async def test_a_page_that_asks_without_end_is_closed(driver_for: MakeDriver) -> None:
    with pytest.raises(BrowserLost, match="the browser lost the page"):
        await ask(driver_for, BOXES)


async def test_a_flooded_console_is_heard_for_a_while() -> None:
    heard = []
    async with Chromium(browser_path=os.environ.get("CHROMIUM_PATH")) as chromium:
        page = await (await chromium.start_if_needed()).new_page()
        await page.add_init_script(load_page_script())
        page.on("console", lambda message: heard.append(message.text))
        await page.goto("data:text/html,<p>x")
        await page.evaluate(
            "() => { for (let i = 0; i < 5000; i++) { console.log('x'.repeat(9000)); console.error(i); } }"
        )
    assert 100 < len(heard) <= 300
    assert max(map(len, heard)) == 2000
