from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from deployments.up.guard import find_descendants
from monitors.errors import BrowserLost, BrowserMissing, ConfigError
from monitors.probes.browser.chromium import (
    Chromium,
    find_system_chromium,
    finish_within_deadline,
    require_executable_browser,
    run_within_deadline,
)
from monitors.probes.browser.discover import PROFILES, find_profile
from monitors.probes.settings import Selectors


def executable(path: Path) -> str:
    """Create an executable file at ``path`` and return ``path``."""
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def test_the_headless_shell_is_preferred(tmp_path: Path) -> None:
    executable(tmp_path / "chromium")
    shell = executable(tmp_path / "chromium-headless-shell")
    assert find_system_chromium(str(tmp_path)) == shell


def test_an_empty_machine_has_none(tmp_path: Path) -> None:
    assert find_system_chromium(str(tmp_path)) is None


def test_a_configured_browser_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrowserMissing, match=r"CHROMIUM_PATH.*nowhere.*does not exist.*lookout browser install"):
        require_executable_browser(str(tmp_path / "nowhere"))


def test_a_configured_browser_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "chromium"
    plain.write_text("")
    with pytest.raises(BrowserMissing, match="not executable"):
        require_executable_browser(str(plain))


async def test_a_browser_that_does_not_start_is_lost(tmp_path: Path) -> None:
    async with Chromium(browser_path=executable(tmp_path / "chromium")) as chromium:
        with pytest.raises(BrowserLost, match="did not start"):
            await chromium.start_if_needed()


@pytest.mark.browser
async def test_f60_a_browser_that_hangs_is_replaced_and_its_pages_end_well(browser_path) -> None:
    async with Chromium(browser_path=browser_path) as chromium:
        hung = await chromium.start_if_needed()
        page = await hung.new_page()
        chromium.retire_browser(hung)
        await chromium.close_idle_retired_browsers()
        assert await page.evaluate("1 + 1") == 2
        fresh = await chromium.start_if_needed()
        assert fresh is not hung
        assert chromium.starts == 2
        await page.close()
        await chromium.close_idle_retired_browsers()
        assert not hung.is_connected()
        assert fresh.is_connected()


@pytest.mark.browser
async def test_a_start_that_is_cancelled_leaves_no_driver_behind(browser_path) -> None:
    others = drivers()
    chromium = Chromium(browser_path=browser_path, close_deadline_s=0.01)  # the start takes longer than this
    starting = asyncio.create_task(chromium.start_if_needed())
    async with asyncio.timeout(60):
        while not drivers() - others:  # noqa: ASYNC110 - another process starts; there is no event for it
            await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    async with asyncio.timeout(60):
        while drivers() - others:  # noqa: ASYNC110 - a busy machine ends a process late
            await asyncio.sleep(0.01)
    await chromium.close()


def drivers() -> set[int]:
    """Return the process ids of the running Playwright drivers that are descendants of this process."""
    commands = {pid: Path(f"/proc/{pid}/cmdline") for pid in find_descendants(os.getpid())}
    return {pid for pid, command in commands.items() if command.exists() and b"run-driver" in command.read_bytes()}


@pytest.mark.browser
async def test_the_driver_and_the_browser_get_no_secret(browser_path, monkeypatch) -> None:
    """The environment of the driver's and the browser's processes contains no secret of the monitor."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-a-secret")
    monkeypatch.setenv("LOOKOUT_LOG_TOKEN", "a-secret")
    monkeypatch.setenv("LC_TIME", "C")
    before = find_descendants(os.getpid())
    async with Chromium(browser_path=browser_path) as chromium:
        await chromium.start_if_needed()
        variables = [read_environment(pid) for pid in find_descendants(os.getpid()) - before]
    assert any("PW_LANG_NAME=python" in lines for lines in variables), "the driver is one of them"
    assert any("LC_TIME=C" in lines for lines in variables)
    assert not any("secret" in line for lines in variables for line in lines)


def read_environment(pid: int) -> list[str]:
    with suppress(OSError):  # the process has ended meanwhile
        return Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    return []


async def test_f61_a_hanging_step_is_cut_at_its_own_deadline() -> None:
    forever = asyncio.Event()
    assert not await finish_within_deadline(forever.wait(), 0.01)
    with pytest.raises(BrowserLost, match="closing did not end within"):
        await run_within_deadline(0.01, forever.wait(), "closing")


@pytest.mark.browser
@pytest.mark.whole_only
async def test_f61_a_page_that_never_stops_computing_is_left_behind(driver_for, zoo: str) -> None:
    """The driver gives up a page whose renderer is stuck and does not respond even to a request to close."""
    async with driver_for(
        f"{zoo}/hang.html", answer_deadline_s=1, close_deadline_s=1, page_deadline_s=10
    ) as driver:
        with pytest.raises(BrowserLost):
            await driver.ask(("hello",))


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'gradeo'.*gradio, streamlit, generic"):
        find_profile("gradeo")


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_target_overrides_one_selector_and_keeps_the_rest(profile) -> None:
    merged = profile.selectors.with_overrides(Selectors(busy=".spinner"))
    assert merged == profile.selectors.model_copy(update={"busy": ".spinner"})
