"""Stream random answers on a page without configuration: count cut or mixed answers, and measure the delay.

    python -m tests.soak.soak_streams --count 2000 --pages 8 --seed 44

Pauses last up to 20 s. A page has a signal if the response to the question, polls or a stop button show whether the
answer has ended. With a signal, no answer may be cut or mixed up. Without a signal, Lookout waits until the text
has not changed for a fixed time (the patience), so this holds only for answers with shorter pauses. After a longer
pause, an answer that continues cannot be distinguished from one that has ended. It is cut, and the page shows its
rest under the next question. The lateness is the time from the last piece that the server sends until Lookout has
the answer. `--pages 2 --count 200` measures it on a machine that is not busy with its own browser.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from monitors.errors import AnswerIncomplete, ProbeError
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.driver import Answer, EvidenceFilter, select_no_evidence
from monitors.probes.settings import ProbeSettings
from tests.zoo.questions import Reading, read
from tests.zoo.server import Zoo
from tests.zoo.streams import ENDED_AT, MAX_PAUSE_S, Plan, build_plans, reply

MAX_LATENESS_S = 0.6
"""The maximum median lateness of an answer in seconds.

With a signal, lateness counts from the true end of the answer. Without a signal, lateness counts from the end of
the patience.
"""
INCOMPLETE, UNANSWERED = "incomplete", "no answer"


class StreamResult(NamedTuple):
    """The result of one plan: how its answer was read.

    ``outcome`` is a `Reading`, `INCOMPLETE` or `UNANSWERED`. ``detail`` is an explanation for people.
    """

    plan: Plan
    outcome: str
    lateness_s: float
    detail: str

    def is_fault(self, patience_s: float) -> bool:
        """Return whether the answer should have been read completely but was not."""
        return self.outcome != Reading.RIGHT and (self.plan.has_signal or self.plan.pause_s < patience_s)


async def ask_plan(driver: BrowserDriver, plan: Plan, key: str) -> StreamResult:
    """Ask the questions of one plan, and compare the answers with the expected answers."""
    turns = plan.build_questions(key)
    taken_at = 0.0

    async def note_time(answer: Answer) -> EvidenceFilter:
        nonlocal taken_at
        taken_at = monotonic()
        return await select_no_evidence(answer)

    try:
        answer = await driver.ask(turns, select_evidence=note_time)
    except AnswerIncomplete as error:
        return StreamResult(plan, INCOMPLETE, 0.0, str(error))
    except ProbeError as error:
        return StreamResult(plan, UNANSWERED, 0.0, f"{type(error).__name__}: {error}")
    texts = (*answer.earlier, answer.visible_text)
    readings = [read(turn, text, reply) for turn, text in zip(turns, texts, strict=True)]
    outcome = next((reading for reading in readings if reading is not Reading.RIGHT), Reading.RIGHT)
    return StreamResult(plan, outcome, taken_at - ENDED_AT.get(turns[-1], taken_at), repr(texts))


async def run_plans(plans: list[Plan], pages: int, settings: ProbeSettings) -> list[StreamResult]:
    """Ask the questions of all plans, on ``pages`` pages at the same time. Print each fault when it occurs."""
    server, gate = Zoo(), asyncio.Semaphore(pages)
    keys = [100 + number % 900 for number in range(len(plans))]
    drivers: dict[str, BrowserDriver] = {}

    async def ask(plan: Plan, key: int) -> StreamResult:
        async with gate:
            reading = await ask_plan(drivers[plan.address], plan, f"plan{key}")
        if reading.is_fault(settings.patience_s):
            print(f"FAULT: {reading}", flush=True)
        return reading

    with tempfile.TemporaryDirectory() as folder:
        async with BrowserDriver(server.address, settings, run_folder=Path(folder)) as first:
            for plan in plans:
                driver = drivers.setdefault(
                    plan.address,
                    BrowserDriver(f"{server.address}/{plan.address}", settings, run_folder=Path(folder)),
                )
                driver.chromium = driver._pages._chromium = first.chromium
            return await asyncio.gather(*(ask(plan, key) for plan, key in zip(plans, keys, strict=True)))


def print_figures(results: list[StreamResult], patience_s: float) -> int:
    """Print the readings and the lateness; return the number of faults."""
    for name, has_signal in (("with a signal", True), ("without a signal", False)):
        chosen = [reading for reading in results if reading.plan.has_signal is has_signal]
        late = [reading.lateness_s for reading in chosen if reading.outcome == Reading.RIGHT]
        goal_s = MAX_LATENESS_S if has_signal else patience_s + MAX_LATENESS_S
        median = f"{statistics.median(late):.2f} s (goal {goal_s:g} s), longest {max(late):.1f} s" if late else "–"
        counts = ", ".join(
            f"{count} {outcome}" for outcome, count in Counter(r.outcome for r in chosen).most_common()
        )
        print(f"{name}: {len(chosen)} streams: {counts}; median lateness {median}")
    return sum(reading.is_fault(patience_s) for reading in results)


def main() -> int:
    """Run the soak; return 1 if there was a fault."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=2000)
    options.add_argument("--pages", type=int, default=8)
    options.add_argument("--seed", type=int, default=44)
    options.add_argument("--max-pause-s", type=float, default=MAX_PAUSE_S)
    arguments = options.parse_args()
    settings = ProbeSettings(answer_deadline_s=90, browser_path=os.environ.get("CHROMIUM_PATH"))
    plans = build_plans(arguments.seed, arguments.count, max_pause_s=arguments.max_pause_s)
    results = asyncio.run(run_plans(plans, arguments.pages, settings))
    faults = print_figures(results, settings.patience_s)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{faults} faults in {len(results)} streams; {arguments.pages} pages at once, load average {load}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
