"""P1: measure the cost of the network guard and of the unasked page for each question.

    python -m tests.bench.bench_guard [--pairs 5] [--bot-s 1] [--run 8]

Two browsers send questions to a Gradio page alternately, one question at a time. The order changes from pair to
pair, so that other work on the machine affects both browsers equally. One browser connects through a guarded proxy
for each page, as in every run. The other browser connects directly, which no setting allows. The unasked page (in
figures: the silent page), on which no question is asked, is opened once in each run. Runs with and without this
page are measured alternately.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitors.probes.browser.chromium import SAFE_FLAGS, run_within_deadline
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.browser.greetings import Greetings
from monitors.probes.browser.inpage import load_page_script
from monitors.probes.browser.pages import VIEWPORT_HEIGHT, VIEWPORT_WIDTH, Pages, Tab
from monitors.probes.browser.proxy import GuardedProxy
from monitors.probes.browser.visit import Visit
from monitors.probes.settings import CapturePolicy, ProbeSettings
from tests.bench.bench_probe import run_cases, serve_gradio
from tests.bench.measurements import Figure, report

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from monitors.probes.browser.login import Login

MAX_RATIO = 1.03
RESAMPLES = 4000
WARM_UP = 2
RUNS = 5


class DirectPages(Pages):
    """Browser pages that connect to the application directly, without the guarding proxy."""

    async def _opened(self, browser: Browser, deadline_s: float, login: Login | None) -> Tab:
        assert login is None
        opening = browser.new_context(
            viewport={"width": VIEWPORT_WIDTH, "height": VIEWPORT_HEIGHT},
            accept_downloads=False,
            service_workers="block",
        )
        context = await run_within_deadline(deadline_s, opening, "opening a browser context")
        await context.add_init_script(load_page_script())
        unused = GuardedProxy(self._guard)
        return Tab(context, await context.new_page(), unused, Visit(self._guard, unused))


def build_driver(address: str, folder: str, *, guarded: bool = True, silent: bool = True) -> BrowserDriver:
    """Build a run's driver, optionally without the network guard or without the unasked page."""
    settings = ProbeSettings(screenshots=CapturePolicy.NEVER, browser_path=os.environ.get("CHROMIUM_PATH"))
    driver = BrowserDriver(address, settings, run_folder=Path(folder))
    if not guarded:
        driver.chromium._flags = [flag for flag in driver.chromium._flags if flag not in SAFE_FLAGS]
        driver._pages = DirectPages(driver.chromium, address, settings)
    if not silent:
        driver._greetings = Greetings()
        driver._unasked.stop_early()
        driver._unasked._task = asyncio.ensure_future(asyncio.sleep(0))  # begun already, as far as it knows
    return driver


async def measure_pairs(address: str, pairs: int, bot_s: float) -> list[tuple[float, float]]:
    """Return the seconds that a question takes with the guard and without it, for each pair."""
    with tempfile.TemporaryDirectory() as folder:
        guarded = build_driver(address, folder, silent=False)
        direct = build_driver(address, folder, guarded=False, silent=False)
        async with guarded, direct:
            pairs_s: list[tuple[float, float]] = []
            for number in range(pairs + WARM_UP):
                question = f"slow {bot_s:g} instant case {number}"
                order = [guarded, direct] if number % 2 else [direct, guarded]
                took = {id(driver): await _measure_s(driver, question) for driver in order}
                pairs_s.append((took[id(guarded)], took[id(direct)]))
    return pairs_s[WARM_UP:]


async def _measure_s(driver: BrowserDriver, question: str) -> float:
    started = time.perf_counter()
    answer = await driver.ask((question,))
    assert question in answer.visible_text, answer.visible_text
    return time.perf_counter() - started


async def measure_whole_run(address: str, count: int, bot_s: float, *, silent: bool) -> float:
    """Return the seconds that a run of ``count`` questions takes, with four questions at the same time."""
    questions = [f"slow {bot_s:g} instant case {number}" for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        async with build_driver(address, folder, silent=silent) as driver:
            await run_cases(driver, questions, ProbeSettings(screenshots=CapturePolicy.NEVER), 4)
        return time.perf_counter() - started


def compute_ratio(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the ratio of the median with the guard to the median without it, and the ratio's 95 % interval.

    The interval is computed from resampled pairs.
    """
    chance = random.Random(1)

    def ratio(sample: Sequence[tuple[float, float]]) -> float:
        return statistics.median(guarded for guarded, _ in sample) / statistics.median(other for _, other in sample)

    resampled = sorted(ratio(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return ratio(pairs), resampled[RESAMPLES // 40], resampled[-RESAMPLES // 40]


async def compare(address: str, pairs: int, bot_s: float, count: int) -> None:
    """Compare questions with and without the guard, then runs with and without the unasked page."""
    pairs_s = await measure_pairs(address, pairs, bot_s)
    ratio, low, high = compute_ratio(pairs_s)
    report(
        Figure(
            id="P1 guard",
            what="one question, guarded way out",
            unit="s",
            values=tuple(guarded for guarded, _ in pairs_s),
            baseline="direct",
            baselines=tuple(direct for _, direct in pairs_s),
            of="ratio",
            goal=MAX_RATIO,
            note=f"ratio of the medians {ratio:.3f}, 95 % CI {low:.3f} to {high:.3f}",
        )
    )
    runs: list[tuple[float, float]] = []
    for number in range(RUNS):
        sides = [True, False] if number % 2 else [False, True]
        took = {silent: await measure_whole_run(address, count, bot_s, silent=silent) for silent in sides}
        runs.append((took[True], took[False]))
    report(
        Figure(
            id="P1 guard",
            what=f"{count} questions, with the silent page",
            unit="s",
            values=tuple(with_it for with_it, _ in runs),
            baseline="without",
            baselines=tuple(without for _, without in runs),
            of="ratio",
            goal=MAX_RATIO,
        )
    )


def main() -> None:
    """Run both comparisons, and print one line for each of them."""
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--bot-s", type=float, default=1.0)
    options.add_argument("--run", type=int, default=8)
    arguments = options.parse_args()
    with serve_gradio() as address:
        asyncio.run(compare(address, arguments.pairs, arguments.bot_s, arguments.run))


if __name__ == "__main__":
    main()
