"""P1: a live run on a Gradio page whose bot takes 1 s, beside plain loops in a browser and over HTTP.

    python -m tests.bench.bench_probe [--cases 200] [--pages 4] [--bot-s 1]

Each loop asks the same questions, in a new context each, as many at once. CPU seconds are those of this process, the
Playwright driver and the browser together, by what they are; the app is counted apart.

Where the time goes (60 questions, 4 pages, 2 quiet cores, November 2026): both cores are busy all the time, 1.6 CPU
seconds a question for the leanest loop and for Lookout alike, in wall 64 s and 61 s. Six tenths of it is the page's own
process, which loads and runs Gradio's scripts anew in each context; a tenth each the browser, drawing and Python, the
rest its network and the Playwright driver. So half of the default loop (77 s) is out of reach where that loop runs on
the same headless shell, as here: only its polling costs more. Against a full Chromium it was half (148 and 73 s for 100
questions). What helps beyond is fewer page loads: `isolation = "reload"` or `"new-chat"`.
Over HTTP the app itself takes 10 ms of its one thread for each question, and 32 come at the same moment.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
from playwright.async_api import Browser, async_playwright

from monitors.probes.api.gradio import GradioDriver
from monitors.probes.browser.chromium import LEAN_FLAGS, NO_IMAGES, system_chromium
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.driver import ChatDriver
from monitors.probes.settings import CapturePolicy, ProbeSettings
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.request_headers import NO_HEADERS
from tests.bench.cpu_meter import CpuMeter
from tests.bench.verified import told
from tests.monitors.probes.scripted import case
from tests.tools.probe_cases import probe_cases

ROOT = Path(__file__).parents[2]
HTTP_AT_ONCE = 32


def main() -> None:
    """Run all loops and print a line for each."""
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=200)
    options.add_argument("--pages", type=int, default=4)
    options.add_argument("--bot-s", type=float, default=1.0)
    given = options.parse_args()
    with gradio() as address:
        asyncio.run(compare(address, given.cases, given.pages, given.bot_s))


async def compare(address: str, count: int, pages: int, bot_s: float) -> None:
    """All loops, one after the other, in this one run."""
    questions = [f"slow {bot_s:g} instant case {number}" for number in range(count)]
    load = os.getloadavg()[0]
    print(
        f"{count} questions, {pages} pages, bot {bot_s:g} s, ideal {count * bot_s / pages:.1f} s, load {load:.1f}"
    )
    lean = await timed("plain Playwright, lean", lambda: plain(address, questions, pages, lean=True), count)
    ours = await timed("Lookout, browser", lambda: lookout(address, questions, pages), count)
    default = await timed("plain Playwright, default", lambda: plain(address, questions, pages, lean=False), count)
    await timed(f"plain aiohttp, {HTTP_AT_ONCE} at once", lambda: plain_http(address, questions), count)
    http = await timed(f"Lookout, HTTP, {HTTP_AT_ONCE} at once", lambda: by_http(address, questions), count)
    told("P1 Lookout / lean loop", ours / lean, 1.10, "x")
    told("P1 Lookout / default loop", ours / default, 0.50, "x")
    told("P1 HTTP / ideal", http / (-(-count // HTTP_AT_ONCE) * bot_s), 1.10, "x")


async def timed(label: str, loop: Callable[[], Awaitable[None]], count: int) -> float:
    """Wall seconds of a loop; prints them with the CPU seconds per question."""
    cpu, started = CpuMeter("gradio_echo"), time.perf_counter()
    watching = asyncio.ensure_future(cpu.watch())
    await loop()
    wall = time.perf_counter() - started
    watching.cancel()
    parts = ", ".join(f"{part} {seconds / count:.2f}" for part, seconds in cpu.parts().items())
    print(f"{label}: {wall:.1f} s wall, {cpu.seconds() / count:.2f} CPU s a question ({parts})", flush=True)
    return wall


async def lookout(address: str, questions: list[str], pages: int) -> None:
    """Our own line: driver and runner."""
    settings = ProbeSettings(screenshots=CapturePolicy.NEVER, browser_path=os.environ.get("CHROMIUM_PATH"))
    with tempfile.TemporaryDirectory() as folder:
        async with BrowserDriver(address, settings, run_folder=Path(folder)) as driver:
            await run(driver, questions, settings, pages)


async def by_http(address: str, questions: list[str]) -> None:
    """The same without a browser."""
    settings = ProbeSettings(driver="gradio")
    async with GradioDriver(address, settings, headers=NO_HEADERS) as driver:
        await run(driver, questions, settings, HTTP_AT_ONCE)


async def plain_http(address: str, questions: list[str]) -> None:
    """The leanest loop over Gradio's HTTP API."""
    gate = asyncio.Semaphore(HTTP_AT_ONCE)
    url = f"{address}/gradio_api/call/chat"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(question: str) -> None:
            async with gate:
                async with session.post(url, json={"data": [question]}) as asked:
                    event = (await asked.json())["event_id"]
                async with session.get(f"{url}/{event}") as stream:
                    assert question in await stream.text()

        await asyncio.gather(*(one(question) for question in questions))


async def run(driver: ChatDriver, questions: list[str], settings: ProbeSettings, at_once: int) -> None:
    """Asks, and checks that each answer is the one to its question."""
    asked = {f"c{number}": question for number, question in enumerate(questions)}
    answered: set[str] = set()

    async def keep(one: GoldCase, result: ProbeResult) -> None:
        assert isinstance(result, Exchange), result
        assert asked[one.id] in result.visible_text, result.visible_text
        answered.add(one.id)

    await probe_cases(
        driver,
        [case(name, turns=(question,)) for name, question in asked.items()],
        run_id="bench",
        settings=settings,
        clock=lambda: datetime.now(UTC),
        concurrency=at_once,
        on_result=keep,
    )
    assert len(answered) == len(questions)


async def plain(address: str, questions: list[str], pages: int, *, lean: bool) -> None:
    """The leanest loop that a person would write by hand, and the loop of the documentation."""
    async with async_playwright() as playwright:
        path = os.environ.get("CHROMIUM_PATH") or system_chromium()
        args = [*LEAN_FLAGS, NO_IMAGES] if lean else []
        browser = await playwright.chromium.launch(executable_path=path, args=args)
        gate = asyncio.Semaphore(pages)

        async def one(question: str) -> None:
            async with gate:
                text = await (ask_lean if lean else ask_by_polling)(browser, address, question)
                assert question in text, text

        await asyncio.gather(*(one(question) for question in questions))
        await browser.close()


DONE = """() => {
  const bots = document.querySelectorAll('[data-testid=bot]');
  return bots.length > 0 && !document.querySelector('textarea').disabled;
}"""


async def ask_lean(browser: Browser, address: str, question: str) -> str:
    """One wait inside the page, tuned to this very page."""
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(address, wait_until="domcontentloaded")
        box = page.get_by_role("textbox")
        await box.fill(question)
        await box.press("Enter")
        await page.wait_for_function(DONE)
        return await page.locator("[data-testid=bot]").last.inner_text()
    finally:
        await context.close()


async def ask_by_polling(browser: Browser, address: str, question: str) -> str:
    """Waits for the network, then reads the text every 100 ms until it has not changed for a second."""
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(address)
        box = page.get_by_role("textbox")
        await box.wait_for()
        await box.fill(question)
        await box.press("Enter")
        answer = page.locator("[data-testid=bot]").last
        await answer.wait_for()
        text, same = "", 0
        while same < 10:
            await page.wait_for_timeout(100)
            now = await answer.inner_text()
            text, same = now, same + 1 if now == text else 0
        return text
    finally:
        await context.close()


@contextmanager
def gradio():
    """A real Gradio app in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.zoo.gradio_echo", "--port", str(port)]
    quiet = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    with subprocess.Popen(command, cwd=ROOT, env=quiet, stdout=subprocess.PIPE, text=True) as app:
        assert app.stdout is not None
        assert app.stdout.readline().strip() == "listening"
        yield f"http://127.0.0.1:{port}"
        app.kill()


if __name__ == "__main__":
    main()
