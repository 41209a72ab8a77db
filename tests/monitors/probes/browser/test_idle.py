"""Test that Lookout gives up an idle page without a chat, but waits while a chat may still appear."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from monitors.probes.browser.chromium import find_browser
from monitors.probes.browser.discover import IDLE_S, is_idle
from monitors.probes.browser.inpage import call_in_page, load_page_script
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.zoo.server import reply

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = ONE_BROWSER


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Yield a browser with direct network access. In production, browsers use the proxy of their run."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        path = find_browser(os.environ.get("CHROMIUM_PATH")).executable
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with await browser.new_context() as context:
        await context.add_init_script(load_page_script())
        yield await context.new_page()


async def _is_idle_once_still(page: Page) -> bool:
    while await call_in_page(page.main_frame, "stillFor") < IDLE_S * 1000:
        await call_in_page(page.main_frame, "waitForBox", {}, 100, 100)
    return await is_idle(page, page.main_frame)


PATIENCE_S = 60.0
"""How long a test repeats the check that a finished page is idle, in seconds. A busy machine needs time."""


async def _becomes_idle(page: Page) -> bool:
    deadline = monotonic() + PATIENCE_S
    while not await _is_idle_once_still(page):
        if monotonic() >= deadline:
            return False
    return True


@pytest.mark.parametrize("name", ["login.html", "nothing.html", "quota.html", "nothing.html?launcher"])
@pytest.mark.a_slice(1)
async def test_a_wall_has_nothing_left_to_do(zoo: str, page: Page, name: str) -> None:
    await page.goto(f"{zoo}/{name}", wait_until="networkidle")
    assert await _becomes_idle(page)


@pytest.mark.parametrize("name", ["guest.html", "slow_start.html?socket", "slow_start.html?fetch"])
@pytest.mark.a_slice(1)
async def test_a_page_whose_chat_comes_late_has_something_left_to_do(zoo: str, page: Page, name: str) -> None:
    await page.goto(f"{zoo}/{name}", wait_until="domcontentloaded")
    assert not await _is_idle_once_still(page)


@pytest.mark.whole_only
async def test_a_chat_that_comes_with_a_slow_response_is_asked(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/slow_start.html?fetch") as driver:
        answer = await driver.ask(("hello",))
    assert answer.visible_text == reply("hello")


TO_COME = (
    "setTimeout(() => {}, 60000)",
    "setTimeout('0', 60000)",
    "setInterval(() => {}, 60000)",
    "requestAnimationFrame(function draw() { requestAnimationFrame(draw); })",
    "fetch('/chat', { method: 'POST', body: '{\"question\": \"slow 60\"}' })",
    "new WebSocket(`ws://${location.host}/socket`)",
    "new Worker(URL.createObjectURL(new Blob(['onmessage = () => {}'])))",
    "document.head.insertAdjacentHTML('beforeend', '<meta http-equiv=Refresh content=60>')",
    "document.body.animate([{ opacity: 0.5 }, { opacity: 1 }], 60000)",
    "document.body.insertAdjacentHTML('beforeend', '<iframe src=guest.html></iframe>')",
)
OVER = (
    "clearTimeout(setTimeout(() => {}, 60000))",
    "clearInterval(setTimeout(() => {}, 60000))",
    "clearInterval(setInterval(() => {}, 60000))",
    "await new Promise((done) => setTimeout(done, 1))",
    "await new Promise((done) => requestAnimationFrame(done))",
    "await (await fetch('/chat', { method: 'POST', body: '{\"question\": \"eye\"}' })).text()",
    "await fetch('http://localhost:9/').catch(() => {})",
    "document.body.animate([{ opacity: 0.5 }, { opacity: 1 }], { duration: 900, iterations: Infinity })",
    "document.body.insertAdjacentHTML('beforeend', '<iframe src=quota.html></iframe>')",
)


async def _after(deed: str, zoo: str, page: Page) -> Page:
    other = await page.context.new_page()
    await other.goto(f"{zoo}/nothing.html", wait_until="networkidle")
    await other.evaluate(f"async () => {{ {deed} }}")
    return other


async def test_pending_work_keeps_the_page_busy(zoo: str, page: Page) -> None:
    async def ends_idle(deed: str) -> bool:
        return await _is_idle_once_still(await _after(deed, zoo, page))

    ends = await asyncio.gather(*map(ends_idle, TO_COME))
    assert not [deed for deed, idle in zip(TO_COME, ends, strict=True) if idle]


async def test_finished_requests_do_not_keep_a_page_busy(zoo: str, page: Page) -> None:
    async def ends_idle(deed: str) -> bool:
        return await _becomes_idle(await _after(deed, zoo, page))

    ends = await asyncio.gather(*map(ends_idle, OVER))
    assert not [deed for deed, idle in zip(OVER, ends, strict=True) if not idle]
