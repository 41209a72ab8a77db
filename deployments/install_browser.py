"""Which browser the probes drive, whether it works, and one where there is none: ``lookout browser [install]``.

The order is that of the probes: ``CHROMIUM_PATH``; Playwright's own download; a Chromium of the system. Nothing is
fetched while one of them works.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from deployments.cli.exit_codes import ExitCode
from flows.terminal import print_text, write_json
from flows.waiting import waiting
from monitors.errors import BrowserMissing, MonitorError
from monitors.probes.browser.chromium import DOWNLOADED, Chromium, FoundBrowser, find_browser, within
from monitors.records.base import Record

DOWNLOAD_TIMEOUT_S = 600
"""A headless shell is about 110 MB; a slow line gets ten minutes."""
PAGE_TIMEOUT_S = 30

PACKAGES = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Names under which distributions package it; the shell is half the cost per question of the full browser."""

FONTS = ("fonts-noto-core", "fonts-noto-color-emoji")
"""With them a picture of a page shows Hindi and emoji and not boxes; a browser without them works all the same."""

OTHER_WAYS = (
    "Behind a proxy set HTTPS_PROXY; PLAYWRIGHT_DOWNLOAD_HOST names a mirror. Or install your system's "
    "chromium-headless-shell or chromium package, or set CHROMIUM_PATH to a Chromium."
)
_REASON = re.compile(r"^Error: (.+?)(?: body '|$)", re.MULTILINE)
_ADDRESS = re.compile(r" from (https?://[^\s\x1b]+)")


class WorkingBrowser(Record):
    """A browser that started and opened a page. ``unsandboxed`` says why it has no sandbox, if it has none."""

    executable: str
    source: str
    version: str
    unsandboxed: str


def working_browser(environment: Mapping[str, str]) -> WorkingBrowser:
    """Find the browser that a run would drive and try it: about 2 s.

    Raises:
        BrowserMissing: there is none, or it opens no page.
        BrowserLost: there is one, and it does not start.
    """
    return asyncio.run(_tried(find_browser(environment.get("CHROMIUM_PATH"))))


async def _tried(found: FoundBrowser) -> WorkingBrowser:
    from playwright.async_api import Error  # 0.4 s

    async with Chromium(browser_path=found.executable) as chromium:
        browser = await chromium.browser()
        try:
            page = await within(PAGE_TIMEOUT_S, browser.new_page(), f"opening a page of {found.executable}")
            await within(PAGE_TIMEOUT_S, page.evaluate("1 + 1"), f"a page of {found.executable}")
        except Error as error:
            reason = error.message.splitlines()[0]
            raise BrowserMissing(f"Chromium ({found.executable}) starts and opens no page: {reason}") from error
        return WorkingBrowser(
            executable=found.executable,
            source=found.source,
            version=browser.version,
            unsandboxed=chromium.unsandboxed,
        )


def report_browser(*, as_json: bool) -> ExitCode:
    """Print which browser is used and that it works; exit code 2, with what to do, where none does."""
    from flows.runtime.secrets import environment  # duckdb, slack_sdk

    try:
        with waiting("Starting the browser"):
            found = working_browser(environment())
    except MonitorError as error:
        print_text(f"lookout: {error}", err=True)
        return ExitCode.USAGE
    if as_json:
        write_json(f"{found.model_dump_json()}\n")
    else:
        print_text(_format_found(found))
    return ExitCode.PASS


def _format_found(found: WorkingBrowser) -> str:
    """One line; that it has no sandbox stands in the log of its start."""
    return f"Browser: {found.executable} ({found.source}), Chromium {found.version}. It starts and opens a page."


def install_command() -> ExitCode:
    """Fetch a browser for the probes, where none works yet: a download or, as root, the system's package.

    Exit code 2, with what to do, where none can be had.
    """
    from flows.runtime.secrets import environment  # duckdb, slack_sdk

    given = environment()
    trouble: MonitorError | None = None
    for fetch in (_nothing, _download, _install_package):
        if trouble is not None and not fetch(given):
            continue
        try:
            print_text(_format_found(working_browser(given)))
        except MonitorError as error:
            trouble = error
            if "CHROMIUM_PATH" in given:  # another browser would not be used
                break
        else:
            return ExitCode.PASS
    print_text(f"lookout: {trouble}", err=True)
    return ExitCode.USAGE


def _nothing(_environment: Mapping[str, str]) -> bool:
    return True


def _download(environment: Mapping[str, str]) -> bool:
    """Fetch Playwright's own build; what goes wrong is said with its reason. True where it was fetched."""
    command = [sys.executable, "-P", "-m", "playwright", "install", "--only-shell", "--no-progress", "chromium"]
    print_text("No browser works here yet: downloading Chromium's headless shell, about 110 MB.")
    try:
        with waiting("Downloading"):
            done = subprocess.run(  # noqa: S603 - our own interpreter
                command,
                env=dict(environment),
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_TIMEOUT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        print_text(f"The download took over {DOWNLOAD_TIMEOUT_S} s and was given up. {OTHER_WAYS}", err=True)
        return False
    if done.returncode == 0 or _is_downloaded():  # it also fetches what records videos, which no probe needs
        return True
    print_text(f"The download failed: {_reason(done.stderr + done.stdout)}. {OTHER_WAYS}", err=True)
    return False


def _is_downloaded() -> bool:
    try:
        return find_browser().source == DOWNLOADED
    except MonitorError:
        return False


def _reason(said: str) -> str:
    """Why a download failed, and from which host, out of the many lines that Playwright says."""
    reason, address = _REASON.search(said), _ADDRESS.search(said)
    why = reason[1] if reason else "Playwright gives no reason"
    host = urlsplit(address[1]).hostname if address else None
    return f"{why} (from {host})" if host else why


def _install_package(environment: Mapping[str, str]) -> bool:
    """Install the distribution's Chromium; only as root, only where apt is. True when something was installed."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0 or environment.get("LOOKOUT_NO_APT"):
        return False
    print_text("Installing the distribution's Chromium.")
    quiet = {**environment, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, "update", "-qq"], env=quiet, capture_output=True, check=False)  # noqa: S603 - apt, by its full path

    def install(*packages: str) -> bool:
        command = [apt, "install", "-y", "-qq", "--no-install-recommends", *packages]
        return subprocess.run(command, env=quiet, capture_output=True, check=False).returncode == 0  # noqa: S603 - as above

    found = any(install(package) for package in PACKAGES)
    if found:
        install(*FONTS)
    return found
