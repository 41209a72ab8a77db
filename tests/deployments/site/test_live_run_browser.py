"""A run in progress in a real browser: it is shown, and then becomes a report. A killed run can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from aiohttp import web

from monitors.config.file import load_config
from tests.conftest import ROOT
from tests.deployments.site.browser_pages import DESKTOP, PHONE, find_broken_rules, opened
from tests.deployments.site.site_server import serving_site
from tests.flows.chat import RIGHT, Chat, watched
from warehouse.database.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.prefect, pytest.mark.asyncio(loop_scope="session")]
WRONG = "The waiting period is 12 months. [Source: Gold, clause 4.2]"
CASES = 4
SOON_MS = 120_000


class SlowChat(Chat):
    """A chat that answers two questions, the first of them wrong.

    All further answers wait until `release` is called.
    """

    def __init__(self) -> None:
        super().__init__(WRONG, RIGHT, RIGHT, RIGHT)
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    async def _chat(self, request: web.Request) -> web.Response:
        if self.asked >= 2:
            await self._loop.run_in_executor(None, self._released.wait)
        return await super()._chat(request)


@pytest.fixture
def watching(tmp_path, prefect_environment):
    """Serve a site for an owner's lookout.toml with a slow target.

    Yield the site, and a function that starts a run.
    """
    with SlowChat() as chat:
        config = load_config(watched(tmp_path, chat, cases=CASES))
        known = {name: value for name, value in prefect_environment.items() if not name.startswith("LOOKOUT_")}

        def verify() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-m", "deployments.cli.app", "verify", "demo"],
                cwd=tmp_path,
                env=known | {"PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

        started: list[subprocess.Popen[bytes]] = []
        try:
            config.data_folder.mkdir()
            store = store_in(config)
            with serving_site(with_refresh(config), store) as served:
                yield served, chat, lambda: started.append(verify()) or started[-1]
        finally:
            chat.release()
            for process in started:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(60)


async def shown(page, address: str, where: str, text: str) -> None:
    """Reload a page until the part ``where`` contains ``text``, as a reader without scripts does."""
    while True:
        answer = await page.goto(address)
        assert answer is not None
        assert answer.status == 200
        if text in await page.locator(where).inner_text():
            return


def store_in(config) -> Store:
    from flows.data_folder import open_store

    return open_store(config)


def with_refresh(config):
    return config.model_copy(update={"site": config.site.model_copy(update={"refresh_s": 1})})


@pytest.mark.whole_only
async def test_a_run_is_seen_while_it_goes_on_and_becomes_its_report(chromium, watching):
    """A run is shown while it is in progress, and then becomes its report.

    The pages Now and Runs and the run's own page show it with its severe failure.
    """
    site, chat, verify = watching
    async with opened(chromium, site.address, width=PHONE) as (page, heard):
        assert "no data" in await page.locator(".card").inner_text()
        process = verify()
        going = page.locator(".card .going")
        await going.get_by_text(f"2 of {CASES} results, 2 graded, 1 failed").wait_for(timeout=SOON_MS)
        assert "running" in await going.inner_text()
        await page.goto(f"{site.address}/runs")
        assert f"2 of {CASES} results" in await page.locator("[aria-labelledby=unfinished]").inner_text()
        await page.locator("[aria-labelledby=unfinished] a").click()
        assert await page.locator("h1").inner_text() == "Running"
        failures = await page.locator("tbody tr").all_inner_texts()
        assert len(failures) == 1
        assert "waiting-0" in failures[0]
        assert await find_broken_rules(page) == []
        chat.release()
        await page.locator("h1", has_text="FAIL").wait_for(timeout=SOON_MS)
        assert await page.locator("#cases tbody tr").count() == CASES
        assert "FAIL" in await page.title()
        assert await page.locator("main").get_attribute("data-live") == ""
        assert heard == []
    assert process.wait(120) == 1


@pytest.mark.whole_only
async def test_a_killed_run_is_stopped_and_the_next_goes_on_with_it(chromium, watching):
    """A killed run is shown as stopped, and the next run continues it.

    With and without scripts, the page shows the results so far and the command that finishes the run. The
    command works.
    """
    site, chat, verify = watching
    process = verify()
    async with opened(chromium, site.address, width=DESKTOP, script=False) as (page, _):
        assert chat.wait_for(2)
        await shown(page, f"{site.address}/runs", "main", f"2 of {CASES} results")
        assert await page.locator("meta[http-equiv=refresh]").get_attribute("content") == "10"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
        await page.locator("[aria-labelledby=unfinished] a").click()
        await shown(page, page.url, "h1", "Stopped")
        text = await page.locator("main").inner_text()
        assert f"2 of {CASES} results" in text
        assert "lookout verify demo" in text
        address = page.url
        chat.release()
        assert verify().wait(240) == 1
        await shown(page, address, "h1", "FAIL")
        assert await page.locator("#cases tbody tr").count() == CASES
