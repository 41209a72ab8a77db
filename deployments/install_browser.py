"""``lookout browser [install]``: show the browser that the probes use, check that it works, or install a browser.

The command looks for browsers in the same order as the probes: ``CHROMIUM_PATH``, Playwright's own download, a
Chromium of the system. If one of these browsers works, nothing is downloaded.
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
from flows.waiting import show_waiting
from monitors.child_environment import build_child_environment
from monitors.errors import BrowserMissing, MonitorError
from monitors.probes.browser.chromium import (
    PLAYWRIGHT_DOWNLOAD,
    Chromium,
    FoundBrowser,
    find_browser,
    run_within_deadline,
)
from monitors.records.base import Record

DOWNLOAD_TIMEOUT_S = 600
"""Maximum duration of the browser's download in seconds. The download is about 110 MB."""
PAGE_TIMEOUT_S = 30

PACKAGES = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Names of Linux packages with a Chromium browser, in the order in which they are tried.

The headless shell is first, because a probe asks a question with it in half the time.
"""

FONTS = ("fonts-noto-core", "fonts-noto-color-emoji")
"""Packages with fonts for Hindi and emoji. Without these fonts the browser works, but screenshots show boxes."""

INSTALL_HINT = (
    "Behind a proxy, set HTTPS_PROXY. To use a mirror, set PLAYWRIGHT_DOWNLOAD_HOST. To use another Chromium, "
    "install your system's chromium-headless-shell or chromium package, or set CHROMIUM_PATH to its executable."
)
_REASON = re.compile(r"^Error: (.+?)(?: body '|$)", re.MULTILINE)
_ADDRESS = re.compile(r" from (https?://[^\s\x1b]+)")


class WorkingBrowser(Record):
    """A browser that started and opened a page. If it runs without a sandbox, ``unsandboxed`` is the reason."""

    executable: str
    source: str
    version: str
    unsandboxed: str


def find_and_try_browser(environment: Mapping[str, str]) -> WorkingBrowser:
    """Find the browser that a run would use, and start it. This takes about 2 s.

    Raises:
        BrowserMissing: no browser was found, or it cannot open a page.
        BrowserLost: the browser does not start.
    """
    return asyncio.run(_try_browser(find_browser(environment.get("CHROMIUM_PATH"))))


async def _try_browser(candidate: FoundBrowser) -> WorkingBrowser:
    from playwright.async_api import Error  # slow: the import takes 0.4 s

    async with Chromium(browser_path=candidate.executable) as chromium:
        browser = await chromium.start_if_needed()
        try:
            page = await run_within_deadline(
                PAGE_TIMEOUT_S, browser.new_page(), f"opening a page in {candidate.executable}"
            )
            await run_within_deadline(
                PAGE_TIMEOUT_S, page.evaluate("1 + 1"), f"running a script in {candidate.executable}"
            )
        except Error as error:
            reason = error.message.splitlines()[0]
            raise BrowserMissing(
                f"Chromium ({candidate.executable}) starts but cannot open a page: {reason}"
            ) from error
        return WorkingBrowser(
            executable=candidate.executable,
            source=candidate.source,
            version=browser.version,
            unsandboxed=chromium.unsandboxed,
        )


def report_browser(*, as_json: bool) -> ExitCode:
    """Print which browser is used and that it works.

    If no browser works, print what to do and return exit code 2.
    """
    from flows.runtime.secrets import get_environment  # slow: imports duckdb and slack_sdk

    try:
        with show_waiting("Starting the browser"):
            browser = find_and_try_browser(get_environment())
    except MonitorError as error:
        print_text(f"lookout: {error}", err=True)
        return ExitCode.USAGE
    if as_json:
        write_json(f"{browser.model_dump_json()}\n")
    else:
        print_text(_format_browser(browser))
    return ExitCode.PASS


def _format_browser(browser: WorkingBrowser) -> str:
    """Return one line about the browser. A missing sandbox is reported in the log, not in this line."""
    return (
        f"Browser: {browser.executable} ({browser.source}), Chromium {browser.version}. It starts and opens a page."
    )


def install_command() -> ExitCode:
    """Install a browser for Lookout if none works: download it or, as root, install the system's package.

    If no browser can be installed, the exit code is 2, and the output lists other ways.
    """
    from flows.runtime.secrets import get_environment  # slow: imports duckdb and slack_sdk

    variables = get_environment()
    failure: MonitorError | None = None
    # The first attempt installs nothing: a browser may already work.
    for install in (None, _download_browser, _install_chromium_with_apt):
        if install is not None and not install(variables):
            continue
        try:
            print_text(_format_browser(find_and_try_browser(variables)))
        except MonitorError as error:
            failure = error
            if "CHROMIUM_PATH" in variables:  # another browser would not be used
                break
        else:
            return ExitCode.PASS
    print_text(f"lookout: {failure}", err=True)
    return ExitCode.USAGE


def _download_browser(environment: Mapping[str, str]) -> bool:
    """Download Playwright's own browser. If the download fails, print the reason. Return whether it succeeded."""
    command = [sys.executable, "-P", "-m", "playwright", "install", "--only-shell", "--no-progress", "chromium"]
    print_text("No browser works on this machine. Downloading Chromium's headless shell (about 110 MB).")
    try:
        with show_waiting("Downloading"):
            process = subprocess.run(  # noqa: S603 - our own interpreter
                command,
                env=build_child_environment(environment),
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_TIMEOUT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        print_text(f"The download did not finish within {DOWNLOAD_TIMEOUT_S} s. {INSTALL_HINT}", err=True)
        return False
    # Without the browser's video tool, the download counts as failed. No probe needs this tool.
    if process.returncode == 0 or _has_playwright_browser():
        return True
    print_text(
        f"The download failed: {_format_download_error(process.stderr + process.stdout)}. {INSTALL_HINT}", err=True
    )
    return False


def _has_playwright_browser() -> bool:
    """Return whether the browser that Playwright downloads is installed."""
    try:
        return find_browser().source == PLAYWRIGHT_DOWNLOAD
    except MonitorError:
        return False


def _format_download_error(output: str) -> str:
    """Return the reason for a failed download, with the host's name, from Playwright's output."""
    reason, address = _REASON.search(output), _ADDRESS.search(output)
    why = reason[1] if reason else "Playwright gave no reason"
    host = urlsplit(address[1]).hostname if address else None
    return f"{why} (from {host})" if host else why


def _install_chromium_with_apt(environment: Mapping[str, str]) -> bool:
    """Install the distribution's Chromium package (only as root, and with apt). Return whether it was installed."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0 or environment.get("LOOKOUT_NO_APT"):
        return False
    print_text("Installing the Chromium package of this system.")
    apt_environment = {**build_child_environment(environment), "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, "update", "-qq"], env=apt_environment, capture_output=True, check=False)  # noqa: S603 - apt, by its full path

    def install(*packages: str) -> bool:
        command = [apt, "install", "-y", "-qq", "--no-install-recommends", *packages]
        return subprocess.run(command, env=apt_environment, capture_output=True, check=False).returncode == 0  # noqa: S603 - as above

    installed = any(install(package) for package in PACKAGES)
    if installed:
        install(*FONTS)
    return installed
