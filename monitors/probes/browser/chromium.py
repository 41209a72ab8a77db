"""Find a Chromium browser, start it, and restart it after a crash."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypedDict, TypeVar

from monitors.errors import BrowserLost, BrowserMissing
from monitors.probes.browser.processes import (
    BrowserLimiter,
    Limits,
    make_folder_and_remove_stale,
    remove_folder,
    set_playwright_temporary_folder,
)
from monitors.probes.browser.proxy import GuardedProxy
from monitors.records.base import Record

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright, ProxySettings


class ContextOptions(TypedDict):
    """The keyword arguments of Playwright's `new_context`."""

    proxy: ProxySettings
    accept_downloads: bool
    service_workers: Literal["allow", "block"]


Value = TypeVar("Value")

log = logging.getLogger(__name__)

_NO_SANDBOX = re.compile(
    "No usable sandbox|without --no-sandbox is not supported|SUID sandbox helper|Failed to move to new namespace"
)
"""A pattern for errors of Chromium on a system that allows no sandbox. Chromium then starts without a sandbox."""

MARK = "--lookout-browser="
"""A command-line flag that identifies the processes of one browser. Chromium ignores the flag."""
WARNING_ROOT = (
    "Chromium runs without its sandbox, because Lookout runs as root. Run Lookout as a user without root rights"
)
WARNING_NO_SANDBOX = (
    "Chromium runs without its sandbox, because this system does not allow it. Allow user namespaces for "
    "unprivileged users. In a container, use the seccomp profile of Lookout (docs/security.md)"
)

# The headless shell first: it takes half the CPU of the full browser for the same page.
SYSTEM_NAMES = (
    "chromium-headless-shell",
    "headless_shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)
LEAN_FLAGS = ("--disable-gpu", "--disable-remote-fonts")
CLOSED_PROXY = "socks5://127.0.0.1:9"
"""The proxy for browser contexts that have no proxy of their own.

No server listens at this port, so no network is reachable.
"""
SAFE_FLAGS = (
    f"--proxy-server={CLOSED_PROXY}",
    "--proxy-bypass-list=<-loopback>",  # connections to this machine also use the proxy
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # only the proxy resolves names
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # the headless shell's name for this option
)
"""Chromium flags that allow connections only through the proxy of a browser context.

The proxy checks each address.
"""
NO_IMAGES = "--blink-settings=imagesEnabled=false"
LAUNCH_DEADLINE_S = 60.0
MAX_STARTS = 3
PLAYWRIGHT_DOWNLOAD = "Playwright's download"
BROWSER_MISSING = (
    "Chromium was not found. Run `lookout browser install`. Or install the package chromium-headless-shell or "
    "chromium. Or set CHROMIUM_PATH (probe.browser_path) to the path of Chromium"
)

HINT_OTHER_BROWSER = (
    "The browser may be damaged or have the wrong version. Run `lookout browser install`, or set CHROMIUM_PATH "
    "(probe.browser_path) to another browser"
)


def find_system_chromium(search_path: str | None = None) -> str | None:
    """Return the path of a Chromium in the folders `search_path` or in PATH, or ``None`` if there is none.

    If several are installed, the Chromium that needs the least CPU is returned.
    """
    paths = (shutil.which(name, path=search_path) for name in SYSTEM_NAMES)
    return next((path for path in paths if path is not None), None)


class FoundBrowser(Record):
    """The browser that a run would start. ``source`` describes where the browser was found."""

    executable: str
    source: str


def find_browser(configured_path: str | None = None, search_path: str | None = None) -> FoundBrowser:
    """Return the browser that a run would start. Raises `BrowserMissing`.

    The order is: the configured browser, Playwright's download, a browser of this system. The search takes about a
    second, because a Playwright command prints the path of its download.
    """
    if configured_path is not None:
        return FoundBrowser(executable=require_executable_browser(configured_path), source="CHROMIUM_PATH")
    for path, source in (
        (_find_downloaded_chromium(), PLAYWRIGHT_DOWNLOAD),
        (find_system_chromium(search_path), "this system"),
    ):
        if path is not None:
            return FoundBrowser(executable=path, source=source)
    raise BrowserMissing(BROWSER_MISSING)


def _find_downloaded_chromium() -> str | None:
    command = [sys.executable, "-m", "playwright", "install", "--dry-run", "--only-shell", "chromium"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=LAUNCH_DEADLINE_S, check=False)  # noqa: S603 - our own interpreter
    for folder in re.findall(r"Install location:\s+(.+)", printed.stdout):
        for path in sorted(Path(folder).rglob("*headless*shell*")):
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    return None


def require_executable_browser(browser_path: str) -> str:
    """Return the configured path of the browser. Raises `BrowserMissing` if the path is not an executable file."""
    if not Path(browser_path).is_file():
        raise BrowserMissing(
            f"CHROMIUM_PATH (probe.browser_path) = {browser_path!r} does not exist. {BROWSER_MISSING}"
        )
    if not os.access(browser_path, os.X_OK):
        raise BrowserMissing(
            f"CHROMIUM_PATH (probe.browser_path) = {browser_path!r} is not executable. {BROWSER_MISSING}"
        )
    return browser_path


async def run_within_deadline(deadline_s: float, work: Awaitable[Value], activity: str) -> Value:
    """Wait for `work` and return its result. Raises `BrowserLost` if `work` takes longer than ``deadline_s``.

    The limit is necessary because a crashed page never answers. ``activity`` describes ``work`` in the error
    message.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return await work
    except TimeoutError as error:
        raise BrowserLost(f"{activity} did not end within {deadline_s:g} s") from error


class Chromium:
    """One browser, started at its first use and restarted after a crash. Use it in one event loop only."""

    def __init__(
        self,
        *,
        browser_path: str | None = None,
        search_path: str | None = None,
        load_images: bool = False,
        close_deadline_s: float = 5.0,
        window: bool = False,
        run_folder: Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Set the options of the browser, without starting it.

        If ``window`` is True, the browser shows a window on the screen, which needs a full Chromium and not a
        headless shell. Temporary files are in a folder in ``run_folder`` and are removed when the browser is
        closed. ``limits`` apply to the processes of the browser.
        """
        self._run_folder = run_folder
        self._limits = limits or Limits()
        self._folder: Path | None = None
        self._limiter: BrowserLimiter | None = None
        self._watching: asyncio.Task[None] | None = None
        self.unsandboxed = WARNING_ROOT if os.geteuid() == 0 else ""
        self._window = window
        self._browser_path = browser_path
        self._search_path = search_path
        self._flags = [*LEAN_FLAGS, *SAFE_FLAGS, *(() if load_images else (NO_IMAGES,))]
        self._close_deadline_s = close_deadline_s
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._retired: list[Browser] = []
        self.starts = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def start_if_needed(self) -> Browser:
        """Return the browser, after starting it if necessary. Raises `BrowserMissing` or `BrowserLost`."""
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                if not self._retired:
                    await self.close()
                self._browser = await self._start_with_retries()
                self.starts += 1
            return self._browser

    @property
    def version(self) -> str | None:
        """Return the version of the running browser, or ``None`` if no browser is running."""
        return self._browser.version if self._browser is not None else None

    @property
    def forced_end_reason(self) -> str:
        """Return the reason why Lookout last ended a process of the browser.

        The reason is empty if Lookout has ended no process. A process that crashes on its own does not change the
        reason.
        """
        return self._limiter.ended if self._limiter is not None else ""

    async def _start_with_retries(self) -> Browser:
        """Start the browser. If the browser process is killed while it starts, try again a few times."""
        for tries_left in reversed(range(MAX_STARTS)):
            try:
                return await self._launch_browser()
            except BrowserMissing:
                raise
            except BrowserLost:
                await self.close()  # the driver itself may be broken
                if not tries_left:
                    raise
        raise AssertionError("internal error: the last attempt must return or raise")

    def retire_browser(self, browser: Browser) -> None:
        """Stop using ``browser``, because it does not respond. The next page starts a new browser.

        Pages that are open in this browser may finish. After that, `close_idle_retired_browsers` closes the
        browser. For example, a browser whose helper process was killed still seems to run, but never opens a page
        again.
        """
        if browser is self._browser:
            self._browser = None
            self._retired.append(browser)

    async def close_idle_retired_browsers(self) -> None:
        """Close each retired browser that has no open pages."""
        for browser in [retired for retired in self._retired if not retired.contexts]:
            self._retired.remove(browser)
            await finish_within_deadline(browser.close(), self._close_deadline_s)

    async def close(self) -> None:
        """Close all browsers and Playwright, each within the deadline. Remove the temporary files."""
        browsers, playwright = [*self._retired, self._browser], self._playwright
        self._browser = self._playwright = None
        self._retired.clear()
        for stop in (*(browser and browser.close for browser in browsers), playwright and playwright.stop):
            if stop is not None:
                await finish_within_deadline(stop(), self._close_deadline_s)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        if self._folder is not None:
            await asyncio.to_thread(remove_folder, self._folder)
            self._folder = None

    async def _launch_browser(self) -> Browser:
        from playwright.async_api import Error, async_playwright  # 0.4 s

        configured_path = require_executable_browser(self._browser_path) if self._browser_path else None
        if self._playwright is None:
            self._folder = await asyncio.to_thread(make_folder_and_remove_stale, self._run_folder)
            set_playwright_temporary_folder(self._folder)
            self._playwright = await self._start_playwright(asyncio.ensure_future(async_playwright().start()))
            self._limiter = BrowserLimiter(f"{MARK}{self._folder.name}", self._limits)
            self._watching = asyncio.create_task(self._limiter.enforce_limits())
        for path in dict.fromkeys(
            (configured_path,) if configured_path else (None, find_system_chromium(self._search_path))
        ):
            try:
                return await self._launch_sandboxed_if_possible(self._playwright, path)
            except Error as error:
                if "Executable doesn't exist" not in error.message:
                    first = error.message.splitlines()[0]
                    raise BrowserLost(
                        f"Chromium ({path or 'downloaded'}) did not start: {first}. {HINT_OTHER_BROWSER}"
                    ) from error
        raise BrowserMissing(BROWSER_MISSING)

    async def _start_playwright(self, starting: asyncio.Future[Playwright]) -> Playwright:
        """Start Playwright. If the start is cancelled, wait until Playwright runs and then stop it."""
        try:
            return await run_within_deadline(LAUNCH_DEADLINE_S, asyncio.shield(starting), "starting Playwright")
        except BaseException as error:  # also on cancellation
            # A start that is abandoned halfway leaves its process behind. So a cancelled start gets its whole time.
            deadline_s = self._close_deadline_s if isinstance(error, BrowserLost) else LAUNCH_DEADLINE_S
            await finish_within_deadline(_stop_playwright_once_started(starting), deadline_s)
            raise

    async def _launch_sandboxed_if_possible(self, playwright: Playwright, path: str | None) -> Browser:
        """Start Chromium with a sandbox. If the system allows no sandbox, log a warning and start without one."""
        from playwright.async_api import Error  # already imported

        if not self.unsandboxed:
            try:
                return await self._launch_executable(playwright, path, sandbox=True)
            except Error as error:
                if not _NO_SANDBOX.search(error.message):
                    raise
                self.unsandboxed = WARNING_NO_SANDBOX
        _log_warning_once(self.unsandboxed)
        return await self._launch_executable(playwright, path, sandbox=False)

    async def _launch_executable(self, playwright: Playwright, path: str | None, *, sandbox: bool) -> Browser:
        mark = self._limiter.mark if self._limiter is not None else MARK
        return await playwright.chromium.launch(
            executable_path=path,
            args=[*self._flags, mark],
            timeout=LAUNCH_DEADLINE_S * 1000,
            handle_sigint=False,
            headless=not self._window,
            chromium_sandbox=sandbox,
        )


@cache
def _log_warning_once(text: str) -> None:
    log.warning("%s", text)


def build_context_options(proxy: GuardedProxy, *, service_workers: bool = False) -> ContextOptions:
    """Return the options of a browser context that connects only through ``proxy`` and stores no downloads.

    If ``service_workers`` is True, the page may register service workers.
    """
    return {
        "proxy": {"server": proxy.address, "bypass": "<-loopback>"},
        "accept_downloads": False,
        "service_workers": "allow" if service_workers else "block",
    }


async def _stop_playwright_once_started(starting: asyncio.Future[Playwright]) -> None:
    await (await starting).stop()


async def finish_within_deadline(closing: Awaitable[object], deadline_s: float) -> bool:
    """Wait for ``closing``, such as ``page.close()``. Return whether ``closing`` succeeded within ``deadline_s``.

    After an error of Playwright, which is not raised, the result is False.
    """
    from playwright.async_api import Error  # already imported: something was started

    try:
        async with asyncio.timeout(deadline_s):
            await closing
    except (TimeoutError, Error):
        return False
    return True
