"""`lookout browser` reports the browser in use and whether it works; `install` downloads one only if none works."""

from __future__ import annotations

import io
import json
import platform
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from monitors.probes.browser.chromium import find_browser
from tests import fork_server
from tests.servers.threaded_server import ThreadedServer

SHELL = "chrome-headless-shell"


class Mirror(ThreadedServer):
    """A mirror of Playwright's downloads.

    The mirror serves a headless shell that starts the browser at ``executable``. If ``executable`` is empty, the
    mirror has no files.
    """

    def __init__(self) -> None:
        super().__init__()
        self.executable = ""
        self.asked: list[str] = []

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/{path:.*}", self._answer)
        return made

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(Path(request.path).name)
        if SHELL not in request.path or not self.executable:
            return web.Response(status=404, text="not here")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            entry = zipfile.ZipInfo(f"{SHELL}-linux64/{SHELL}")
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, f'#!/bin/sh\nexec "{self.executable}" "$@"\n')
        return web.Response(body=packed.getvalue(), content_type="application/zip")


@pytest.fixture(scope="module")
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        yield server


@pytest.fixture
def machine(tmp_path: Path, mirror: Mirror) -> dict[str, str]:
    """Return the environment of a machine without any browser and without the right to install packages."""
    mirror.asked.clear()
    mirror.executable = ""
    (tmp_path / "bin").mkdir()
    alone = {name: value for name, value in fork_server.bare().items() if name != "CHROMIUM_PATH"}
    downloads = {"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "browsers"), "PLAYWRIGHT_DOWNLOAD_HOST": mirror.url}
    return alone | downloads | {"PATH": str(tmp_path / "bin"), "LOOKOUT_NO_APT": "1"}


@pytest.fixture(scope="module")
def chromium(browser_path: str | None) -> str:
    """Return the path of a browser that works."""
    return find_browser(browser_path).executable


def test_without_a_browser_it_says_how_to_get_one(tmp_path, machine, mirror):
    for options in ((), ("--json",)):
        done = fork_server.run("browser", *options, cwd=tmp_path, env=machine)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "`lookout browser install`" in done.stderr
    assert mirror.asked == []


@pytest.mark.parametrize(
    ("made", "said"),
    [(None, "does not exist"), ("#!/bin/sh\nexit 1\n", "did not start")],
    ids=["not there", "not a browser"],
)
def test_a_browser_that_was_named_is_never_replaced(tmp_path, machine, mirror, made, said):
    """If CHROMIUM_PATH points to a browser that does not work, nothing is downloaded.

    Lookout would not use a downloaded browser instead of the configured one.
    """
    named = tmp_path / "named"
    if made:
        named.write_text(made)
        named.chmod(0o755)
    for command in (("browser",), ("browser", "install")):
        done = fork_server.run(*command, cwd=tmp_path, env=machine | {"CHROMIUM_PATH": str(named)})
        assert done.returncode == 2
        assert str(named) in done.stderr
        assert said in done.stderr
    assert mirror.asked == []


@pytest.mark.browser
def test_nothing_is_fetched_where_a_browser_works(tmp_path, machine, mirror, chromium):
    """Nothing is downloaded if a working browser is configured or is among the commands of the machine."""
    (tmp_path / "bin" / "chromium").symlink_to(chromium)
    found = tmp_path / "bin" / "chromium"
    for variables, used, source in (
        ({}, str(found), "this system"),
        ({"CHROMIUM_PATH": chromium}, chromium, "CHROMIUM_PATH"),
    ):
        done = fork_server.run("browser", "install", cwd=tmp_path, env=machine | variables)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"Browser: {used} ({source}), Chromium ")
        assert "opens a page" in done.stdout
    assert mirror.asked == []


@pytest.mark.whole_only
@pytest.mark.browser
@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="packed as for this platform")
def test_a_browser_is_downloaded_where_none_works(tmp_path, machine, mirror, chromium):
    """A browser is downloaded if none works, is then used, and is not downloaded again.

    A Chromium that does not start does not count as working. A mirror without the video recorder is sufficient.
    """
    mirror.executable = chromium
    stub = tmp_path / "bin" / "chromium-browser"
    stub.write_text("#!/bin/sh\necho 'this is a stub: install the snap' >&2\nexit 1\n")
    stub.chmod(0o755)
    done = fork_server.run("browser", "install", cwd=tmp_path, env=machine)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Downloading Chromium's headless shell" in done.stdout
    asked = len(mirror.asked)
    assert f"{SHELL}-linux64.zip" in mirror.asked
    again = fork_server.run("browser", "install", cwd=tmp_path, env=machine)
    assert "downloading" not in again.stdout
    used = json.loads(fork_server.run("browser", "--json", cwd=tmp_path, env=machine).stdout)
    assert used["source"] == "Playwright's download"
    assert used["executable"].startswith(str(tmp_path / "browsers"))
    assert len(mirror.asked) == asked


def test_a_download_that_fails_says_why_and_what_else_can_be_done(tmp_path, machine, mirror):
    done = fork_server.run("browser", "install", cwd=tmp_path, env=machine)
    assert done.returncode == 2
    assert mirror.asked
    assert "code 404 (from 127.0.0.1)" in done.stderr
    for way in ("HTTPS_PROXY", "PLAYWRIGHT_DOWNLOAD_HOST", "CHROMIUM_PATH", "chromium-headless-shell"):
        assert way in done.stderr
    assert "    at " not in done.stderr
    assert len(done.stderr.splitlines()) == 2
