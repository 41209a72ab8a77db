"""Test that only a page that uses too much memory or CPU, or downloads too much, fails. Other pages continue."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monitors.address_guard import AddressGuard
from monitors.errors import BrowserLost
from monitors.probes.browser import processes
from monitors.probes.browser.chromium import (
    WARNING_NO_SANDBOX,
    WARNING_ROOT,
    Chromium,
    build_context_options,
    find_system_chromium,
)
from monitors.probes.browser.inpage import load_page_script
from monitors.probes.browser.network import read_body, read_pushed_messages
from monitors.probes.browser.processes import BrowserLimiter, Limits, Process
from monitors.probes.browser.proxy import GuardedProxy
from tests.conftest import ROOT
from tests.monitors.probes.conftest import MakeDriver
from tests.process_tree import descendants

SMALL = Limits(page_mb=400, spinning_s=3)
QUESTION = "is knee surgery covered?"
CHAT = """<!doctype html><meta charset=utf-8><div id=log></div><form><textarea aria-label="Message"></textarea>
<button>Send</button></form><script>
const log = document.querySelector("#log"), box = document.querySelector("textarea");
document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  const said = box.value; box.value = "";
  for (const [who, text] of [["You", said], ["Bot", "Knee surgery is covered after 24 months."]]) {
    const p = document.createElement("p"); p.className = who; p.textContent = text; log.append(p);
  }
  if (said.includes("HEAVY")) setTimeout(() => { const all = []; for (;;) all.push(new Uint8Array(3e7).fill(1)); }, 100);
  if (said.includes("SPIN")) setTimeout(() => { for (;;); }, 100);
  if (said.includes("LOAD")) { const a = document.createElement("a"); a.href = "/big"; a.download = "big"; a.click(); }
};</script>"""


class Site(ThreadingHTTPServer):
    """A site with a chat and an endless download. ``sent`` counts the bytes of the download."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.sent = 0
        self.began = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """The request handler of `Site`."""

    server: Site

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path.startswith("/bulk"):
            self.send_header("content-length", self.path.removeprefix("/bulk"))
            self.end_headers()
            self.wfile.write(b"x" * int(self.path.removeprefix("/bulk")))
            return
        if self.path == "/pushes":
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for _ in range(200):
                self.wfile.write(b"data: " + b"x" * 100_000 + b"\n\n")
            self.wfile.write(b"data: end\n\n")
            return
        if self.path != "/big":
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(CHAT.encode())))
            self.end_headers()
            self.wfile.write(CHAT.encode())
            return
        self.send_header("content-type", "application/octet-stream")
        self.send_header("content-disposition", "attachment; filename=big")
        self.end_headers()
        self.server.began.set()
        try:
            while self.server.sent < 400e6:
                self.wfile.write(b"x" * 1_000_000)
                self.server.sent += 1_000_000
        except OSError:
            return

    def log_message(self, *given: object) -> None:
        del given


@contextmanager
def site() -> Iterator[Site]:
    server = Site()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def address_of(server: Site) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/"


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="the limits go by Linux's /proc")
@pytest.mark.parametrize(
    ("word", "why"),
    [("HEAVY", "MB of memory; the limit is 400"), ("SPIN", "a full core|hung|lost|did not respond")],
)
@pytest.mark.a_slice(1)
@pytest.mark.whole_only
async def test_a_page_that_takes_too_much_is_ended_and_the_next_question_is_answered(
    driver_for: MakeDriver, word, why
):
    with site() as server:
        async with driver_for(address_of(server), patience_s=3, answer_deadline_s=20) as driver:
            driver.chromium._limits = SMALL
            assert "24 months" in (await driver.ask((QUESTION,))).visible_text
            with pytest.raises(BrowserLost, match=why):
                await driver.ask((f"{word}, {QUESTION}",))
            assert "24 months" in (await driver.ask((QUESTION,))).visible_text
            assert driver.chromium.starts == 1


@pytest.mark.whole_only
@pytest.mark.browser
async def test_a_download_leaves_nothing_on_the_disk(driver_for: MakeDriver, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    with site() as server:
        async with driver_for(address_of(server), patience_s=3) as driver:
            assert "24 months" in (await driver.ask((f"LOAD, {QUESTION}",))).visible_text
            assert server.began.wait(30), "the page offered no download"
            folder = driver.chromium._folder
            assert folder is not None
            assert size_of(folder) + size_of(tmp_path / "elsewhere") < 30e6
    assert server.sent < 400e6, "the download was taken to its end"
    assert not folder.exists()
    assert size_of(tmp_path / "elsewhere") == 0


@pytest.mark.browser
async def test_temporary_files_lie_in_the_runs_folder_and_go_with_the_browser():
    with browser_root() as run:
        async with Chromium(browser_path=os.environ.get("CHROMIUM_PATH"), run_folder=run) as chromium:
            await chromium.start_if_needed()
            (folder,) = run.iterdir()
            assert any(one.name.startswith("playwright") for one in folder.iterdir())
        assert list(run.iterdir()) == []


@contextmanager
def browser_root() -> Iterator[Path]:
    """Yield a new run folder whose path is as short as that of a real run."""
    folder = Path("/tmp") / f"lookout-test-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def test_leftovers_of_a_killed_process_are_removed_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "MAX_FOLDER_CHARACTERS", 1000)
    dead = subprocess.Popen([sys.executable, "-c", ""], cwd=ROOT)
    dead.wait()
    (tmp_path / f".browser-{dead.pid}-x").mkdir()
    (tmp_path / f".browser-{os.getpid()}-x").mkdir()
    new = processes.make_folder_and_remove_stale(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {f".browser-{os.getpid()}-x", new.name}


def test_a_path_that_is_too_long_for_a_socket_is_not_used(tmp_path):
    new = processes.make_folder_and_remove_stale(tmp_path / ("x" * 100))
    assert tmp_path not in new.parents
    processes.remove_folder(new)


@pytest.mark.browser
async def test_uncaught_errors_and_workers_are_bounded():
    errors = []
    async with Chromium(browser_path=os.environ.get("CHROMIUM_PATH")) as chromium:
        page = await (await chromium.start_if_needed()).new_page()
        await page.add_init_script(load_page_script())
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto("data:text/html,<p>x")
        counted = await page.evaluate(
            """async () => {
              const pause = () => new Promise((go) => setTimeout(go, 0));
              for (let i = 0; i < 1000; i++) { setTimeout(() => { throw new Error(i); }, 0); Promise.reject(i); }
              for (let i = 0; i < 5; i++) await pause();
              let made = 0;
              const code = URL.createObjectURL(new Blob(["0"]));
              try { for (; made < 200; made++) new Worker(code).terminate(); } catch (error) { return [made, error.name]; }
              return [made, ""];
            }"""
        )
    assert counted == [40, "QuotaExceededError"]
    assert 0 < len(errors) <= 100


@pytest.mark.browser
async def test_root_without_a_sandbox_gets_a_message(caplog):
    async with Chromium(browser_path=os.environ.get("CHROMIUM_PATH")) as chromium:
        await chromium.start_if_needed()
        assert (chromium.unsandboxed == WARNING_ROOT) is (os.geteuid() == 0)


@pytest.mark.browser
async def test_network_messages_are_recorded_up_to_a_bound():
    with site() as server:
        guard = AddressGuard((address_of(server),), private_network=False)
        proxy = await GuardedProxy(guard).start()
        async with Chromium(browser_path=os.environ.get("CHROMIUM_PATH")) as chromium:
            context = await (await chromium.start_if_needed()).new_context(**build_context_options(proxy))
            await context.add_init_script(load_page_script())
            page = await context.new_page()
            await page.goto(address_of(server))
            await page.evaluate("() => __lookout.hear()")
            bodies = []
            for size in (5_000_000, 30_000_000):
                async with page.expect_response("**/bulk*") as coming:
                    await page.evaluate(
                        "(size) => fetch('/bulk' + size).then((got) => got.text()).then(() => 0)", size
                    )
                bodies.append(await read_body(await coming.value))
            await page.evaluate(
                """() => new Promise((done) => {
                  const events = new EventSource("/pushes");
                  events.onmessage = (event) => { if (event.data === "end") { events.close(); done(); } };
                })"""
            )
            pushed = sum(len(text) for texts in (await read_pushed_messages(page)).values() for text in texts)
        await proxy.close()
    assert [body and len(body) for body in bodies] == [5_000_000, None]
    assert 7_000_000 < pushed <= 8_000_000


@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="the limits go by Linux's /proc")
async def test_every_process_of_the_browser_is_counted_once_with_its_driver():
    async with Chromium(browser_path=os.environ.get("CHROMIUM_PATH")) as chromium:
        browser = await chromium.start_if_needed()
        for _ in range(2):
            await (await browser.new_page()).goto("data:text/html,<p>x")
        watch = chromium._limiter
        assert watch is not None
        tree = await asyncio.to_thread(watch._list_browser_processes)
        again = await asyncio.to_thread(watch._list_browser_processes)
    assert len({one.pid for one in tree}) == len(tree)
    assert sum(one.is_page for one in again) >= 2
    assert any(one.is_browser and one.rss_mb > 50 for one in tree)


# --- the page over its limit -------------------------------------------------------------------------------------

PAGE = Process(pid=7, started="1", is_page=True, is_browser=False, rss_mb=100, cpu_s=0)


def test_the_largest_page_goes_where_all_together_are_too_large():
    watch = BrowserLimiter("mark", Limits(page_mb=500, tree_mb=1000))
    tree = [replace(PAGE, pid=pid, rss_mb=mb) for pid, mb in ((1, 400), (2, 450), (3, 300))]
    ((offender, why),) = watch.find_processes_over_limit(tree, 0)
    assert offender.pid == 2
    assert "1,150 MB" in why


def test_a_pause_restarts_the_timeout_of_a_busy_page():
    watch = BrowserLimiter("mark", Limits(spinning_s=10))
    seconds = [*range(9), 8, 8, 8, *range(9, 19)]
    found = [watch.find_processes_over_limit([replace(PAGE, cpu_s=cpu)], now) for now, cpu in enumerate(seconds)]
    assert not any(found)
    assert watch.find_processes_over_limit([replace(PAGE, cpu_s=30)], len(seconds) + 11)


def test_a_browser_that_grows_itself_is_ended():
    browser = replace(PAGE, is_page=False, is_browser=True, rss_mb=3000)
    assert BrowserLimiter("mark").find_processes_over_limit([browser, PAGE], 0)[0][0] is browser
    assert asyncio.iscoroutinefunction(BrowserLimiter("mark").enforce_limits)


# --- the sandbox ------------------------------------------------------------------------------------------

AS_NOBODY = """#!/bin/sh
chown -R nobody "$TMPDIR"
chmod 755 "$(dirname "$TMPDIR")"
exec setpriv --reuid=nobody --clear-groups "{chromium}" "$@"
"""


def browser_of_a_user(folder: Path) -> str:
    """Return the path of a command that starts the browser as a system user without privileges."""
    chromium = os.environ.get("CHROMIUM_PATH") or find_system_chromium()
    if chromium is None or (os.geteuid() == 0 and shutil.which("setpriv") is None):
        pytest.skip("no browser that a user without rights could start")
    if os.geteuid() != 0:
        return chromium
    script = folder / "chromium"
    script.write_text(AS_NOBODY.format(chromium=chromium))
    script.chmod(0o755)
    return str(script)


def status_of(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is looked at in Linux's /proc")
async def test_a_user_without_rights_has_the_sandbox():
    with browser_root() as run:
        chromium = Chromium(browser_path=browser_of_a_user(run), run_folder=run)
        chromium.unsandboxed = ""
        others = {one.pid for one in descendants(os.getpid())}  # the browser that tests share runs as root
        async with chromium:
            page = await (await chromium.start_if_needed()).new_page()
            await page.goto("data:text/html,<p>x")
            family = [one for one in descendants(os.getpid()) if one.is_browser and one.pid not in others]
            pages = [one for one in family if "--type=renderer" in one.command]
            assert pages
            assert not any("--no-sandbox" in one.command for one in family)
            for one in pages:
                assert "Seccomp:\t2" in status_of(one.pid)
            assert chromium.unsandboxed == ""


@pytest.mark.browser
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused a sandbox by the browser itself")
async def test_without_a_system_sandbox_the_browser_starts_with_a_warning(caplog):
    chromium = Chromium(browser_path=os.environ.get("CHROMIUM_PATH"))
    chromium.unsandboxed = ""
    async with chromium:
        assert (await chromium.start_if_needed()).is_connected()
    assert chromium.unsandboxed == WARNING_NO_SANDBOX
