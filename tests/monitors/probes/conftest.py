"""Fixtures for the applications under test and the driver that asks them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from monitors.probes.browser.chromium import Chromium
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.settings import ProbeSettings
from tests.zoo.server import Zoo

ROOT = Path(__file__).parents[3]
QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="session")
def zoo() -> Iterator[str]:
    """Yield the address of the hand-written pages."""
    server = Zoo()
    yield server.address
    server.shutdown()
    server.server_close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="session")
def streamlit() -> Iterator[str]:
    """Yield the address of a real Streamlit chat."""
    port = str(_free_port())
    options = {"port": port, "address": "127.0.0.1", "headless": "true", "fileWatcherType": "none"}
    flags = [flag for name, value in options.items() for flag in (f"--server.{name}", value)]
    command = [sys.executable, "-m", "streamlit", "run", "tests/zoo/streamlit_echo.py", *flags]
    quiet = {**os.environ, "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}
    with subprocess.Popen(command, cwd=ROOT, env=quiet, stdout=subprocess.PIPE, text=True) as app:
        assert app.stdout is not None
        for line in app.stdout:
            if "URL:" in line:
                break
        yield f"http://127.0.0.1:{port}"
        app.kill()


def _served(*options: str) -> Iterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", "tests.zoo.gradio_echo", "--port", str(port), *options]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **QUIET}, stdout=subprocess.PIPE, text=True) as app:
        assert app.stdout is not None
        assert app.stdout.readline().strip() == "listening"
        yield f"http://127.0.0.1:{port}"
        app.kill()


@pytest.fixture(scope="session")
def gradio() -> Iterator[str]:
    """Yield the address of a real Gradio ChatInterface."""
    yield from _served()


@pytest.fixture(scope="session")
def gradio_blocks() -> Iterator[str]:
    """Yield the address of a real Gradio Blocks page, whose message box stays enabled."""
    yield from _served("--blocks")


@pytest.fixture
def settings() -> ProbeSettings:
    """Return settings with deadlines that are long enough for a busy test machine.

    No test waits until they expire.
    """
    return ProbeSettings(
        answer_deadline_s=120, page_deadline_s=90, retry_pause_s=0, browser_path=os.environ.get("CHROMIUM_PATH")
    )


MakeDriver = Callable[..., BrowserDriver]
ONE_BROWSER = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
"""Pytest marks for tests of pages. The drivers of all marked tests share one browser and its event loop."""


def shares_browser(test: Callable[..., object]) -> Callable[..., object]:
    """Decorate a single test with the marks of `ONE_BROWSER`.

    Use it in a module whose other tests do not share a browser.
    """
    for mark in ONE_BROWSER:
        test = mark(test)
    return test


class SharedChromium(Chromium):
    """One browser that the drivers of many tests share.

    Each driver has its own contexts, and no driver ends the browser.
    """

    async def close(self) -> None:
        """Do nothing, because the browser outlives the driver."""

    async def end(self) -> None:
        """Close the browser at the end of the tests."""
        await super().close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_chromium(browser_path: str | None) -> AsyncIterator[SharedChromium]:
    """Yield the shared browser, which starts when the first driver needs it."""
    chromium = SharedChromium(browser_path=browser_path)
    yield chromium
    await chromium.end()


@pytest.fixture
def driver_for(request: pytest.FixtureRequest, tmp_path: Path, settings: ProbeSettings) -> MakeDriver:
    """Return a function that makes a driver for an address; its keywords change the settings.

    Drivers share a browser if `ONE_BROWSER` applies; ``own_browser`` gives the driver its own.
    """
    loop = request.node.get_closest_marker("asyncio")
    shared = loop is not None and loop.kwargs.get("loop_scope") == "session"
    chromium = request.getfixturevalue("shared_chromium") if shared else None

    def make(address: str, *, own_browser: bool = False, **changes: object) -> BrowserDriver:
        changed = ProbeSettings.model_validate({**settings.model_dump(), **changes})
        driver = BrowserDriver(address, changed, run_folder=tmp_path)
        if chromium is not None and not changed.load_images and not own_browser:
            driver.chromium = driver._pages._chromium = chromium
        return driver

    return make
