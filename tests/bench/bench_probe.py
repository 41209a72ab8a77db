"""P1: measure a run on a Gradio page whose bot takes 1 s, compared with plain loops in a browser and over HTTP.

    python -m tests.bench.bench_probe [--cases 12] [--rounds 5] [--pages 4] [--bot-s 1]

Each loop sends the same questions, each in a new browser context, with the same number of questions at once. CPU
seconds are those of this process, the Playwright driver and the browser together, by kind of process. The app is
counted separately.

Where the time goes (60 questions, 4 pages, 2 quiet cores, November 2026): both cores are always busy. The lean loop
and Lookout each take 1.6 CPU seconds for a question. In wall time, the lean loop takes 64 s and Lookout 61 s. Six
tenths of the CPU time is used by the page's own process, which loads and runs Gradio's scripts again in each
context. The browser, drawing and Python use a tenth each. The browser's network and the Playwright driver use the
remainder. The goal is half of the time of the default loop. On the same headless shell, Lookout cannot reach this
goal, because the default loop differs only in its polling and takes only 77 s. Compared with the default loop on a
full Chromium, Lookout took half of the time (73 s and 148 s for 100 questions). Only fewer page loads reduce the
time further: `isolation = "reload"` or `"new-chat"`. Over HTTP, the app itself takes 10 ms of its single thread for
each question, and 32 questions arrive at the same moment.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import aiohttp
from playwright.async_api import Browser, async_playwright

from monitors.probes.api.gradio import GradioDriver
from monitors.probes.browser.chromium import LEAN_FLAGS, NO_IMAGES, find_system_chromium
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.driver import ChatDriver
from monitors.probes.settings import CapturePolicy, ProbeSettings
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.request_headers import NO_HEADERS
from tests.bench.cpu_meter import CpuMeter
from tests.bench.measurements import Figure, report
from tests.monitors.probes.scripted import case
from tests.tools.probe_cases import probe_cases

ROOT = Path(__file__).parents[2]
HTTP_AT_ONCE = 32
LEAN_MOST = 0.8
DEFAULT_MOST = 0.5
HTTP_MOST = 1.1


def main() -> int:
    """Print the figures. Return the number of missed goals as the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=12, help="questions of each loop in a browser")
    options.add_argument("--rounds", type=int, default=5, help="so often all loops, one after the other")
    options.add_argument("--http-cases", type=int, default=128, help="questions of each loop over HTTP")
    options.add_argument("--pages", type=int, default=4)
    options.add_argument("--bot-s", type=float, default=1.0)
    arguments = options.parse_args()
    with serve_gradio() as address:
        met = asyncio.run(compare(address, arguments.cases, arguments.rounds, arguments.pages, arguments.bot_s))
        met += asyncio.run(compare_http(address, arguments.http_cases, arguments.rounds, arguments.bot_s))
    return met.count(False)


async def compare(address: str, count: int, rounds: int, pages: int, bot_s: float) -> list[bool]:
    """Measure the loops in a browser in turn, in a different order in each round."""
    questions = [f"slow {bot_s:g} instant case {number}" for number in range(count)]
    loops: dict[str, Callable[[], Awaitable[None]]] = {
        "lean loop": lambda: run_plain(address, questions, pages, lean=True),
        "Lookout": lambda: run_lookout(address, questions, pages),
        "default loop": lambda: run_plain(address, questions, pages, lean=False),
    }
    took: dict[str, list[Took]] = {name: [] for name in loops}
    for number in range(rounds):
        for name in list(loops) if number % 2 else reversed(loops):
            took[name].append(await measure_loop(name, loops[name], count))
    label = f"{count} questions, {pages} pages, bot {bot_s:g} s"
    return [
        report(
            Figure(
                id=id_,
                what=label,
                unit="s",
                values=tuple(sample.wall_s for sample in took["Lookout"]),
                baseline=baseline,
                baselines=tuple(sample.wall_s for sample in took[baseline]),
                of="ratio",
                goal=most,
                note=f"{rounds} rounds, as each takes a minute; CPU s a question: {format_cpu(took, baseline)}",
            )
        )
        for id_, baseline, most in (("P1", "lean loop", LEAN_MOST), ("P1 default", "default loop", DEFAULT_MOST))
    ]


async def compare_http(address: str, count: int, rounds: int, bot_s: float) -> list[bool]:
    """Measure a run over HTTP against a plain loop and against the ideal time.

    The ideal time counts only the time that the bot takes.
    """
    questions = [f"slow {bot_s:g} instant case {number}" for number in range(count)]
    ours: list[Took] = []
    theirs: list[Took] = []
    for number in range(rounds):
        sides = [(theirs, run_plain_http), (ours, run_lookout_http)]
        for samples, loop in sides if number % 2 else reversed(sides):
            samples.append(await measure_loop(loop.__name__, lambda: loop(address, questions), count))  # noqa: B023 - awaited here
    ideal_s = -(-count // HTTP_AT_ONCE) * bot_s
    note = f"ideal {ideal_s:.1f} s, of which the plain loop takes {statistics.median(sample.wall_s for sample in theirs) / ideal_s:.2f}"
    return [
        report(
            Figure(
                id="P1 HTTP",
                what=f"{count} questions, {HTTP_AT_ONCE} at once, bot {bot_s:g} s",
                unit="s",
                values=tuple(sample.wall_s for sample in ours),
                baseline="ideal",
                baselines=(ideal_s,) * rounds,
                of="ratio",
                goal=HTTP_MOST,
                note=note,
            )
        )
    ]


class Took(NamedTuple):
    """Wall seconds of one loop, and its CPU seconds for each question by kind of process."""

    wall_s: float
    cpu_s: Mapping[str, float]


def format_cpu(took: Mapping[str, Sequence[Took]], baseline: str) -> str:
    """Format the median CPU seconds of Lookout and of the baseline, by kind of process.

    Example: ``Lookout 1.60 (renderer 0.96, …), lean loop 1.58 (…)``.
    """
    texts: list[str] = []
    for name in ("Lookout", baseline):
        samples = took[name]
        by_part = {
            part: statistics.median(sample.cpu_s.get(part, 0.0) for sample in samples) for part in samples[0].cpu_s
        }
        parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in by_part.items())
        texts.append(f"{name} {sum(by_part.values()):.2f} ({parts})")
    return ", ".join(texts)


async def measure_loop(label: str, loop: Callable[[], Awaitable[None]], count: int) -> Took:
    """Measure ``loop``, print the result, and return it. ``count`` is its number of questions."""
    cpu, started = CpuMeter("gradio_echo"), time.perf_counter()
    watching = asyncio.ensure_future(cpu.watch())
    await loop()
    wall_s = time.perf_counter() - started
    watching.cancel()
    took = Took(wall_s, {part: seconds / count for part, seconds in cpu.parts().items()})
    print(f"{label}: {wall_s:.1f} s, {sum(took.cpu_s.values()):.2f} CPU s a question", flush=True)
    return took


async def run_lookout(address: str, questions: list[str], pages: int) -> None:
    """Run the questions with Lookout's driver and runner."""
    settings = ProbeSettings(screenshots=CapturePolicy.NEVER, browser_path=os.environ.get("CHROMIUM_PATH"))
    with tempfile.TemporaryDirectory() as folder:
        async with BrowserDriver(address, settings, run_folder=Path(folder)) as driver:
            await run_cases(driver, questions, settings, pages)


async def run_lookout_http(address: str, questions: list[str]) -> None:
    """Run the questions with Lookout over HTTP, without a browser."""
    settings = ProbeSettings(driver="gradio")
    async with GradioDriver(address, settings, headers=NO_HEADERS) as driver:
        await run_cases(driver, questions, settings, HTTP_AT_ONCE)


async def run_plain_http(address: str, questions: list[str]) -> None:
    """Run the questions over Gradio's HTTP API in a loop that does nothing else."""
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


async def run_cases(driver: ChatDriver, questions: list[str], settings: ProbeSettings, at_once: int) -> None:
    """Send the questions, and check that each answer belongs to its question."""
    asked = {f"c{number}": question for number, question in enumerate(questions)}
    answered: set[str] = set()

    async def keep(case: GoldCase, result: ProbeResult) -> None:
        assert isinstance(result, Exchange), result
        assert asked[case.id] in result.visible_text, result.visible_text
        answered.add(case.id)

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


async def run_plain(address: str, questions: list[str], pages: int, *, lean: bool) -> None:
    """Run the questions in a handwritten loop.

    With ``lean``, the loop does as little as possible (`ask_lean`). Otherwise, it polls the page
    (`ask_by_polling`).
    """
    async with async_playwright() as playwright:
        path = os.environ.get("CHROMIUM_PATH") or find_system_chromium()
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
    """Send a question, and wait once, inside the page, for a condition that is tuned to this page."""
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
    """Send a question, wait for an answer, then read its text every 100 ms until it is stable for a second."""
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
def serve_gradio():
    """Serve a real Gradio app in a separate process."""
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
    sys.exit(main())
