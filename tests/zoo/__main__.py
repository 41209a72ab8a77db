"""Ask every application of the zoo 20 questions without any configuration: `make zoo`.

The zoo contains chat applications and pages for tests. Words as arguments select the applications whose name
contains one of the words. `--questions` and `--seed` change the questions. The program prints a Markdown table, and
below it every question that was not read correctly. `--write docs/zoo.md` writes the rows into the table of that
page.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from deployments.cli.doctor.command import ask_questions_and_add_answers, exit_code_from_inspection
from deployments.cli.exit_codes import ExitCode
from monitors.errors import ProbeError
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.inspect.page import inspect_page
from monitors.probes.settings import ProbeSettings, compute_concurrency
from monitors.records.exchanges import Timings
from tests.zoo import bot
from tests.zoo.animals import APPLICATIONS, FRONTENDS, PAGES, VARIANTS
from tests.zoo.questions import Reading, conversations, is_exact, read
from tests.zoo.server import Zoo

HEAD = (
    "| application | questions | right | wrong | ungraded | exact | median s | of which ours |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


TABLE = re.compile(r"^\| application \|.*\n(?:\|.*\n)+", re.MULTILINE)


@dataclass
class Tally:
    """The results of the questions that one application was asked."""

    name: str
    readings: list[Reading] = field(default_factory=list)
    unanswered: int = 0
    exact: int = 0
    seconds: list[float] = field(default_factory=list)
    own_seconds: list[float] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Return the number of questions."""
        return len(self.readings) + self.unanswered

    @property
    def right(self) -> bool:
        """Return whether every answer was read correctly."""
        return self.readings.count(Reading.RIGHT) == self.asked

    def row(self) -> str:
        """Return the row of the application in the Markdown table."""
        right = self.readings.count(Reading.RIGHT)
        counts = (self.asked, right, len(self.readings) - right, self.unanswered, self.exact)
        medians = (median_of(self.seconds), median_of(self.own_seconds))
        return f"| {' | '.join([self.name, *map(str, counts), *medians])} |"

    def note(self, question: str, seen: str, reply: Callable[[str], str]) -> None:
        """Record how the answer to one question was read."""
        reading = read(question, seen, reply)
        self.readings.append(reading)
        self.exact += is_exact(question, seen, reply)
        if reading is not Reading.RIGHT:
            self.remarks.append(f"{question}: {reading}: {seen!r}")

    def note_time(self, turns: int, seconds: float, timings: Timings) -> None:
        """Record how long a conversation took.

        Lookout's own time for a turn is the turn's share of the time to open the page, plus the wait for the
        answer's end.
        """
        own_s = ((timings.opening_ms or 0.0) / turns + (timings.settling_ms or 0.0)) / 1000
        self.seconds += [seconds / turns] * turns
        self.own_seconds += [own_s] * turns


def median_of(seconds: list[float]) -> str:
    """Return the median of ``seconds`` as the table shows it."""
    return f"{statistics.median(seconds):.1f}" if seconds else "–"


SETTINGS = ProbeSettings(browser_path=os.environ.get("CHROMIUM_PATH"))


def use_doctor(address: str) -> ProbeSettings:
    """Let `lookout doctor` ask a page its three questions, and return the settings that it proposes."""
    with tempfile.TemporaryDirectory() as folder:
        look = asyncio.run(inspect_page(address, SETTINGS, picture=Path(folder) / "look.png"))
    look = ask_questions_and_add_answers(look, address, SETTINGS, None, None)
    assert exit_code_from_inspection(look) is ExitCode.PASS, look
    proposed = {"open": look.open, "selectors": look.selectors.model_dump()}
    return ProbeSettings.model_validate(SETTINGS.model_dump() | proposed)


async def drive(
    name: str,
    address: str,
    reply: Callable[[str], str],
    asked: list[tuple[str, ...]],
    settings: ProbeSettings = SETTINGS,
) -> Tally:
    """Ask all conversations of one application, on a few pages at the same time, as a run does."""
    tally = Tally(name)
    free = asyncio.Semaphore(compute_concurrency(settings, os.cpu_count() or 1))
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
        tally.note_time(len(turns), monotonic() - started, answer.timings)
        for question, seen in zip(turns, (*answer.earlier, answer.visible_text), strict=True):
            tally.note(question, seen, reply)


def _print_tally(tally: Tally) -> Tally:
    print(tally.row(), flush=True)
    for remark in tally.remarks:
        print(f"    {remark[:700]}", file=sys.stderr, flush=True)
    return tally


def run(wanted: list[str], seed: int, count: int) -> list[Tally]:
    """Ask every application whose name contains one of the words in ``wanted``. If there are no words, ask all."""

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
            tallies.append(_print_tally(asyncio.run(drive(application.name, address, bot.reply, asked))))
    server = Zoo()
    for page in filter(lambda page: is_wanted(page.title), (*PAGES, *VARIANTS, *FRONTENDS)):
        if not page.is_installed:
            print(f"| {page.title} | not built: `make frontends` |", flush=True)
            tallies.append(Tally(page.title, unanswered=count))
            continue
        asked = page.build_conversations(seed, count)
        address = f"{server.address}/{page.name}"
        settings = use_doctor(address) if page.uses_doctor else SETTINGS
        tallies.append(_print_tally(asyncio.run(drive(page.title, address, page.reply, asked, settings))))
    return tallies


def write(page: Path, tallies: list[Tally]) -> None:
    """Write the rows into the table on the page, in the order of the zoo. Keep the rows of other applications."""
    text = page.read_text(encoding="utf-8")
    table = TABLE.search(text)
    assert table is not None, page
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.group().splitlines()[2:]}
    rows |= {tally.name: tally.row() for tally in tallies}
    names = [one.name for one in APPLICATIONS] + [page.title for page in (*PAGES, *VARIANTS, *FRONTENDS)]
    lines = [HEAD, *(rows[name] for name in names if name in rows)]
    page.write_text(text.replace(table.group(), "\n".join(lines) + "\n"), encoding="utf-8")


def main() -> int:
    """Ask the applications. Return 1 if an answer was not read correctly, else 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--seed", type=int, default=20)
    options.add_argument("--questions", type=int, default=20)
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the applications are stopped too
    tallies = run(given.names, given.seed, given.questions)
    if given.write is not None:
        write(given.write, tallies)
    return 0 if all(tally.right for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
