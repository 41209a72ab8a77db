"""Tests of a real Gradio 6 page, and of failures of pages, browsers and networks during a question."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Error, Page

from monitors.errors import AnswerIncomplete, AppErrorShown, BrowserLost, ProbeError
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.driver import Answer, EvidenceFilter
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.process_tree import descendants
from tests.zoo.cutter import Cutter

pytestmark = ONE_BROWSER


def whole(question: str) -> str:
    """Return the answer that the page of the echo app shows for a question."""
    return f"The waiting period for {question} is 24 months [Source: Policy P-100, clause 4.2]."


@pytest.mark.parametrize("question", ["knee", "instant eye", "slow 1 pause 3 hip", "steps ear"])
async def test_the_answer_is_whole_and_without_its_steps(
    gradio: str, driver_for: MakeDriver, question: str
) -> None:
    async with driver_for(gradio) as driver:
        assert (await driver.ask((question,))).visible_text == whole(question)


async def test_a_box_that_stays_enabled_says_nothing_about_the_end(
    gradio_blocks: str, driver_for: MakeDriver
) -> None:
    """If the message box stays enabled during a pause, only the open request shows that more text will come."""
    async with driver_for(gradio_blocks) as driver:
        answer = await driver.ask(("first", "pause 3 second"))
    assert (answer.earlier, answer.visible_text) == ((whole("first"),), whole("pause 3 second"))


@pytest.mark.parametrize("question", ["slow 1 pause 3 hip", "boom eye"])
async def test_it_needs_no_profile(gradio: str, driver_for: MakeDriver, question: str) -> None:
    """The page is read with the generic profile, which is used for unknown pages."""
    async with driver_for(gradio, profile="generic") as driver:
        if "boom" in question:
            with pytest.raises(AppErrorShown, match="out of reach"):
                await driver.ask((question,))
        else:
            assert (await driver.ask((question,))).visible_text == whole(question)


@pytest.mark.whole_only
async def test_many_at_once_are_not_mixed_up(gradio: str, driver_for: MakeDriver) -> None:
    questions = [f"case {number}" for number in range(3)]
    async with driver_for(gradio) as driver:
        answers = await asyncio.gather(*(driver.ask((question,)) for question in questions))
    assert [answer.visible_text for answer in answers] == [whole(question) for question in questions]


async def test_a_long_list_ends_where_it_ends(gradio: str, driver_for: MakeDriver) -> None:
    async with driver_for(gradio) as driver:
        text = (await driver.ask(("long list",))).visible_text
    assert len(text.splitlines()) == 42
    assert text.splitlines()[-2:] == ["item 39 of long list", "END"]


async def test_an_exception_of_the_bot_is_its_toast_with_the_partial_text(
    gradio: str, driver_for: MakeDriver
) -> None:
    async with driver_for(gradio) as driver:
        with pytest.raises(AppErrorShown, match="provider is out of reach") as raised:
            await driver.ask(("boom eye",))
    assert raised.value.partial_text
    assert whole("boom eye").startswith(raised.value.partial_text)


@pytest.mark.whole_only
async def test_f62_a_connection_lost_in_mid_answer_is_never_an_answer(gradio: str, driver_for: MakeDriver) -> None:
    proxy = Cutter(int(gradio.rsplit(":", 1)[1]))
    async with driver_for(proxy.address) as driver:
        asking, _ = await _ask_until_answer_begins(driver)
        proxy.cut()
        with pytest.raises(ProbeError) as raised:
            await asking
    assert isinstance(raised.value, AnswerIncomplete | AppErrorShown)
    assert raised.value.partial_text
    assert whole("pause 60 hip").startswith(raised.value.partial_text.replace("*", ""))


async def test_evidence_is_stored_when_requested(gradio: str, driver_for: MakeDriver, tmp_path: Path) -> None:
    """A requested screenshot is taken after grading, while the page still shows the answer."""
    seen: list[Answer] = []

    async def wrong(answer: Answer) -> EvidenceFilter:
        seen.append(answer)
        return EvidenceFilter(screenshot=True, trace=True)

    async with driver_for(gradio, traces="always") as driver:
        answer = await driver.ask(("knee",), name="case-7.r0.t0", select_evidence=wrong)
    assert [one.visible_text for one in seen] == [answer.visible_text]
    assert answer.evidence.screenshot == "evidence/case-7.r0.t0.jpg"
    assert answer.evidence.trace == "evidence/case-7.r0.t0.zip"
    assert (tmp_path / answer.evidence.screenshot).read_bytes().startswith(b"\xff\xd8")
    assert (tmp_path / answer.evidence.trace).read_bytes().startswith(b"PK")
    last = answer.evidence.settle_samples[-1]
    assert last.characters == len(answer.visible_text)


async def test_f59_a_page_crash_is_the_monitors(gradio: str, driver_for: MakeDriver) -> None:
    """A crash of the page is a fault of the monitor, not of the app, and the next question is answered."""
    async with driver_for(gradio) as driver:
        asking, page = await _ask_until_answer_begins(driver)
        crashing = asyncio.ensure_future(page.goto("chrome://crash"))
        with pytest.raises(BrowserLost):
            await asking
        crashing.cancel()
        await asyncio.gather(crashing, return_exceptions=True)
        assert (await driver.ask(("knee",))).visible_text == whole("knee")


async def test_f60_a_killed_browser_is_started_again(gradio: str, driver_for: MakeDriver) -> None:
    others = browser_processes()
    async with driver_for(gradio, own_browser=True) as driver:
        asking, _ = await _ask_until_answer_begins(driver)
        for process in browser_processes() - others:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(BrowserLost):
            await asking
        assert (await driver.ask(("knee",))).visible_text == whole("knee")
        assert driver.chromium.starts == 2


async def test_f60_a_killed_driver_is_started_again(gradio: str, driver_for: MakeDriver) -> None:
    """A killed Playwright driver is restarted, although the browser still seems to run.

    The memory limit of the browser also ends the driver.
    """
    others = playwright_drivers()
    async with driver_for(gradio, own_browser=True) as driver:
        for starts in (2, 3):
            asking, _ = await _ask_until_answer_begins(driver)
            for process in playwright_drivers() - others:
                os.kill(process, signal.SIGKILL)
            with pytest.raises(BrowserLost):
                await asking
            assert (await driver.ask(("knee",))).visible_text == whole("knee")
            assert driver.chromium.starts == starts


async def test_cancelling_leaves_no_browser_behind(gradio: str, driver_for: MakeDriver) -> None:
    others = browser_processes()
    async with driver_for(gradio, own_browser=True) as driver:
        asking, _ = await _ask_until_answer_begins(driver)
        assert browser_processes() - others
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert browser_processes() <= others


async def _ask_until_answer_begins(driver: BrowserDriver) -> tuple[asyncio.Future[Answer], Page]:
    """Ask a question, and wait until the page shows the first words of the answer, which then pauses for a minute.

    Return the question's future and the page. Raises the error of the question if it ends first. The browser may
    still have pages of other tests.
    """
    earlier = (await driver.chromium.start_if_needed()).contexts
    asking = asyncio.ensure_future(driver.ask(("pause 60 hip",)))
    while not asking.done():
        browser = await driver.chromium.start_if_needed()
        for page in [page for context in browser.contexts if context not in earlier for page in context.pages]:
            with suppress(Error):  # the driver has closed the page
                if await page.locator("[data-testid=bot]").count():
                    return asking, page
        await asyncio.sleep(0.05)
    pytest.fail(f"the question ended before its answer began: {await asking}")


def playwright_drivers() -> set[int]:
    """Return the process ids of Playwright drivers that are descendants of this process."""
    return {one.pid for one in descendants(os.getpid()) if "run-driver" in one.command}


def browser_processes() -> set[int]:
    """Return the ids of the main browser processes that are descendants of this process.

    Other tests may have left a shared browser.
    """
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
            command = (status.parent / "cmdline").read_text()
        except OSError:
            continue
        parents[int(status.parent.name)] = (int(fields[1]), command, fields[0])

    def ours(process: int) -> bool:
        while process in parents and process != 1:
            process = parents[process][0]
            if process == os.getpid():
                return True
        return False

    return {
        process
        for process, (_, command, state) in parents.items()
        if "--remote-debugging-pipe" in command and "--type=" not in command and state != "Z" and ours(process)
    }
