"""Drive the whole zoo, 20 questions an application, without any configuration: `make zoo`.

Words as arguments run only the applications whose name holds one of them; `--questions` and `--seed` change what is
asked. Prints a Markdown table, and beneath it every question that was not read right.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from monitors.errors import ProbeError
from monitors.probes.browser import BrowserDriver
from monitors.probes.settings import ProbeSettings, pages_at_once
from tests.zoo import bot
from tests.zoo.animals import APPLICATIONS, PAGES
from tests.zoo.questions import Reading, conversations, read
from tests.zoo.server import Zoo

HEAD = "| application | questions | right | cut | mixed up | other | no answer | median s |\n|---|--:|--:|--:|--:|--:|--:|--:|"


@dataclass
class Tally:
    """How one application's questions were read."""

    name: str
    readings: list[Reading] = field(default_factory=list)
    unanswered: int = 0
    seconds: list[float] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Questions in all."""
        return len(self.readings) + self.unanswered

    @property
    def right(self) -> bool:
        """Whether every question was read right."""
        return self.readings.count(Reading.RIGHT) == self.asked

    def row(self) -> str:
        """The line of the table."""
        counts = [str(self.readings.count(reading)) for reading in Reading]
        median = f"{statistics.median(self.seconds):.1f}" if self.seconds else "–"
        return f"| {self.name} | {self.asked} | {' | '.join(counts)} | {self.unanswered} | {median} |"


async def drive(name: str, address: str, reply: Callable[[str], str], asked: list[tuple[str, ...]]) -> Tally:
    """Asks all conversations, a few pages at once as a run would."""
    settings = ProbeSettings(browser_path=os.environ.get("CHROMIUM_PATH"))
    tally = Tally(name)
    free = asyncio.Semaphore(pages_at_once(settings, os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as folder:
        async with BrowserDriver(address, settings, run_folder=Path(folder)) as driver:
            await asyncio.gather(*(_one(driver, turns, free, reply, tally) for turns in asked))
    return tally


async def _one(
    driver: BrowserDriver,
    turns: tuple[str, ...],
    free: asyncio.Semaphore,
    reply: Callable[[str], str],
    tally: Tally,
) -> None:
    async with free:
        started = monotonic()
        try:
            answer = await driver.ask(turns)
        except ProbeError as error:
            tally.unanswered += len(turns)
            tally.remarks.append(f"{turns}: {type(error).__name__}: {error} | {error.partial_text[:200]!r}")
            return
        tally.seconds += [(monotonic() - started) / len(turns)] * len(turns)
        for question, seen in zip(turns, (*answer.earlier, answer.visible_text), strict=True):
            reading = read(question, seen, reply)
            tally.readings.append(reading)
            if reading is not Reading.RIGHT:
                tally.remarks.append(f"{question}: {reading}: {seen!r}")


def _told(tally: Tally) -> Tally:
    print(tally.row(), flush=True)
    for remark in tally.remarks:
        print(f"    {remark[:700]}", file=sys.stderr, flush=True)
    return tally


def run(wanted: list[str], seed: int, count: int) -> list[Tally]:
    """Drives every application whose name holds one of the wanted words; none wanted: all."""

    def is_wanted(name: str) -> bool:
        return not wanted or any(word in name for word in wanted)

    print(HEAD, flush=True)
    tallies: list[Tally] = []
    for application in filter(lambda one: is_wanted(one.name), APPLICATIONS):
        if not application.installed:
            print(f"| {application.name} | not installed: `make zoo` |", flush=True)
            tallies.append(Tally(application.name, unanswered=count))
            continue
        with application.serving() as address:
            asked = conversations(seed, count)
            tallies.append(_told(asyncio.run(drive(application.name, address, bot.reply, asked))))
    server = Zoo()
    for page in filter(lambda one: is_wanted(one.name), PAGES):
        asked = conversations(seed, count)
        address = f"{server.address}/{page.name}"
        tallies.append(_told(asyncio.run(drive(page.name, address, page.reply, asked))))
    return tallies


def main() -> int:
    """Run; the exit code is 1 when anything was not read right."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--seed", type=int, default=20)
    options.add_argument("--questions", type=int, default=20)
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the applications are stopped too
    tallies = run(given.names, given.seed, given.questions)
    return 0 if all(tally.right for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
