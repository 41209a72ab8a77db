"""Measures the shrinking of questions with a planted trigger, which is the part that makes an answer fail.

The figures state whether the trigger remains in the shortened question, and how much else remains. The
questions are for simulated applications and for a real page.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from itertools import combinations
from pathlib import Path
from statistics import median

from flows.clock import utc_now
from flows.explain.asking import open_case_asker
from flows.explain.shrink import CaseShrinker
from monitors.config.file import load_config
from monitors.explain.shrink import ShrunkQuestion
from monitors.goldset.load import load_suite
from tests.accuracy.figure import Measured, TellingError, build_share
from tests.flows.explain.demo_builds import CASE, DemoBuild, written_target
from tests.monitors.explain.shrunk_questions import ROWS, PlantedTrigger

NAME = "shrink"
BUDGET = 40
SEEDS = 10
WRONG = "₹80,000"

NOTE = """\
A trigger is the part of a question that makes the answer fail. A probe is one question that the search asks. A row is met if
three conditions are true:

- The trigger is still in the shortened question.
- The shortened question has at most 1.2 times as many words as the trigger.
- The search asked at most {budget} questions, including the questions that confirm the result.

The row "a wrong amount on a real page" asks the demo's bot with its planted faults, in Chromium. To find the trigger of this
row, all questions of up to four of the words were asked.

| trigger | words before | words of the trigger | words left | probes | fails | met |
| --- | ---: | ---: | ---: | ---: | --- | --- |
{rows}"""


def measure(data: Path) -> Measured:
    """Measure each row and a question of a real page once, and each flaky row several more times."""
    del data  # simulated, and the demo itself
    results = [(row.name, row.length, row.shrunk(BUDGET), row) for row in ROWS]
    lines = [_format_line(name, length, shrunk, met=row.is_met(shrunk)) for name, length, shrunk, row in results]
    met = sum(row.is_met(shrunk) for _, _, shrunk, row in results)
    length, page, is_preserved = _build_page_failure()
    page_met = is_preserved and page.length <= 1.2 * length and page.probes <= BUDGET
    lines.append(_format_line("a wrong amount on a real page", length, page, met=page_met))
    probes = [shrunk.probes for _, _, shrunk, _ in results] + [page.probes]
    again = [(row, row.shrunk(BUDGET, seed)) for row in ROWS if _is_flaky(row) for seed in range(1, SEEDS + 1)]
    figures = (
        build_share(
            NAME, f"trigger still there, short, at most {BUDGET} probes", met + page_met, len(lines), target=0.9
        ),
        build_share(NAME, "the flaky rows, ten times more", sum(r.is_met(f) for r, f in again), len(again)),
        build_share(
            NAME, "flaky: the trigger is still there", sum(r.trigger(f.turns) for r, f in again), len(again)
        ),
    )
    note = NOTE.format(budget=BUDGET, rows="\n".join(lines))
    errors = tuple(_build_error(row, shrunk) for _, _, shrunk, row in results if not row.is_met(shrunk))
    high = sorted(probes)[int(0.95 * len(probes))]
    return Measured(figures, errors, (note, f"Probes: median {median(probes):g}, 95th percentile {high}."))


def _is_flaky(row: PlantedTrigger) -> bool:
    return row.rate < 1 or row.by_chance > 0


def _format_line(name: str, length: int, results: ShrunkQuestion, *, met: bool) -> str:
    counts = f"{results.length_before} | {length} | {results.length} | {results.probes}"
    return f"| {name} | {counts} | {results.failed} of {results.asked} | {'yes' if met else '**no**'} |"


def _build_error(row: PlantedTrigger, results: ShrunkQuestion) -> TellingError:
    left = f"{results.length} words were left after {results.probes} probes"
    return TellingError(NAME, row.name, left, "what fails now and then needs more questions than there were")


def _build_page_failure() -> tuple[int, ShrunkQuestion, bool]:
    """Shrink a failing question of a real page.

    Return the word count of the shortest question with the wrong amount, the shrunk question, and whether the
    shrunk question also gives the wrong amount.
    """
    with tempfile.TemporaryDirectory() as name, DemoBuild("4f2a91c", faults=True) as build:
        folder = Path(name)
        config = load_config(written_target(folder, build.url))
        case = next(one for one in load_suite(config.require_target("demo").suite).cases if one.id == CASE)

        async def found() -> ShrunkQuestion:
            async with open_case_asker(
                config,
                "demo",
                build.url,
                folder=folder / "shrink",
                run_id="shrink",
                cases=(case,),
                environment=os.environ,
                clock=utc_now,
            ) as asker:
                return await CaseShrinker(case, asker).run(BUDGET)

        shrunk = asyncio.run(found())
        return _find_shortest(build, case.question), shrunk, WRONG in build.says(shrunk.turns[-1])


def _find_shortest(build: DemoBuild, question: str) -> int:
    failing = question.split()
    for count in range(1, 5):
        if any(WRONG in build.says(" ".join(some)) for some in combinations(failing, count)):
            return count
    return len(failing)
