"""Finds a browser to drive, or fetches one: `python -m deployments.install_browser`.

In this order: ``CHROMIUM_PATH``; Playwright's own download; a Chromium of the system; the distribution's package,
as root. It says which one will be used, or what to do when there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from flows.terminal import print_text
from monitors.errors import BrowserMissing, ConfigError
from monitors.probes.browser.chromium import find_browser

DOWNLOAD_TIMEOUT_S = 600
"""A headless shell is about 110 MB; a slow line gets ten minutes."""

PACKAGES = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Names under which distributions package it; the shell is half the cost per question of the full browser."""

FONTS = ("fonts-noto-core", "fonts-noto-color-emoji")
"""With them a picture of a page shows Hindi and emoji and not boxes; a browser without them works all the same."""


def main() -> int:
    """Make sure that a browser can be found; exit code 0, or 2 with what to do."""
    chosen = os.environ.get("CHROMIUM_PATH")
    if chosen is None:
        _download()
    try:
        print_text(f"Browser: {_find(chosen)}")
    except (BrowserMissing, ConfigError) as missing:
        if chosen is None and _install_package():
            return main()
        print_text(str(missing), err=True)
        return 2
    return 0


def _find(chosen: str | None) -> str:
    return str(find_browser(chosen).executable)


def _download() -> None:
    """Fetch Playwright's own build; a machine that cannot reach it says so in one line and goes on."""
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "--no-progress", "chromium"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S, check=False)  # noqa: S603 - our own interpreter
    except subprocess.TimeoutExpired:
        print_text(f"Playwright's browser took over {DOWNLOAD_TIMEOUT_S} s; looking for a system Chromium.")
        return
    if done.returncode != 0:
        print_text("Playwright's browser cannot be downloaded here; looking for a system Chromium.")


def _install_package() -> bool:
    """Install the distribution's Chromium; only as root, only where apt is. True when something was installed."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0 or os.environ.get("LOOKOUT_NO_APT"):
        return False
    print_text("Installing the distribution's Chromium.")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, "update", "-qq"], env=quiet, capture_output=True, check=False)  # noqa: S603 - apt, by its full path

    def install(*packages: str) -> bool:
        command = [apt, "install", "-y", "-qq", "--no-install-recommends", *packages]
        return subprocess.run(command, env=quiet, capture_output=True, check=False).returncode == 0  # noqa: S603 - as above

    found = any(install(package) for package in PACKAGES)
    if found:
        install(*FONTS)
    return found


if __name__ == "__main__":
    sys.exit(main())
