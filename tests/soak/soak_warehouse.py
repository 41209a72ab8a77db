"""Kill a process that uses the warehouse at random moments: no row is lost or stored twice.

    python -m tests.soak.soak_warehouse --kills 1000 [--write docs/warehouse.md]

Each round forks a process that appends, loads, decides, checkpoints, compacts, exports, deletes old data, checks,
rebuilds and migrates in random order. It is killed with SIGKILL at a random moment of the planned step; then
another process compares the acknowledged rows with the stored rows. The figures count the kills by the step in
which they occurred.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.figures import measured_where, write_section
from tests.soak.forked_process import Child, forked
from tests.warehouse.crash_worker import Plan, survivors, work

KILLS_PER_FOLDER = 25
KILLS_PER_CHECK = 3
"""The number of kills after which the tables are rebuilt and compared.

Acknowledged rows and decisions are counted after every kill.
"""

TURNS = ("append", "load", "checkpoint", "compact", "migrate", "export") * 2 + (
    "decide",
    "age",
    "check",
    "rebuild",
    "finish",
)
"""The steps during which a worker is killed.

Steps that move acknowledged rows are listed twice, so that more kills occur in them.
"""

FIRST_GUESS_S = 0.2
MAX_WAIT_S = 60.0
"""How many seconds to wait until a step starts on a busy machine."""

BETWEEN_STEPS = "between steps"


@dataclass
class Tally:
    """The counts so far, and the longest duration of each kind of step, which limits the random time of a kill."""

    kills: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    failures: int = 0
    slowest_s: dict[str, float] = field(default_factory=dict[str, float])

    def took(self, step: str, seconds: float) -> None:
        """Update the longest duration of ``step``.

        The stored value decreases after shorter steps. Otherwise, one slow step would move most later kills past
        the end of the step.
        """
        self.slowest_s[step] = max(seconds, 0.8 * self.slowest_s.get(step, 0.0) + 0.2 * seconds)

    def moment_s(self, step: str, rng: random.Random) -> float:
        """Return a random moment for the kill, in seconds from the start of the step."""
        return rng.uniform(0.0, 1.05) * self.slowest_s.get(step, FIRST_GUESS_S)


def kill_once(plan: Plan, step: str, tally: Tally, rng: random.Random) -> set[str]:
    """Kill a worker at a random moment in ``step``, and return what it acknowledged."""
    worker = forked(lambda say: work(plan, say, first=step))
    lines = list(_until_begun(worker, step))
    _outlive(worker, tally.moment_s(step, rng), lines)
    os.kill(worker.process, signal.SIGKILL)
    lines += worker.rest()
    for line in lines:
        if line.startswith("broken "):
            raise SystemExit(f"the worker failed by itself: {json.loads(line[7:])}")
        if line.startswith("done "):
            _, name, seconds = line.split()
            tally.took(name, float(seconds))
    tally.kills[_under_way(lines)] += 1
    return {line for line in lines if line.startswith(("case ", "decision "))}


def _until_begun(worker: Child, step: str) -> Iterator[str]:
    end = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < end:
        line = worker.line(end - time.monotonic())
        if line is None:
            return
        yield line
        if line == f"step {step}":
            return


def _outlive(worker: Child, seconds: float, lines: list[str]) -> None:
    end = time.monotonic() + seconds
    with suppress(TimeoutError):
        while (line := worker.line(max(0.0, end - time.monotonic()))) is not None:
            lines.append(line)


def _under_way(lines: list[str]) -> str:
    last = next((line for line in reversed(lines) if line.startswith(("step ", "done "))), "")
    return last.removeprefix("step ") if last.startswith("step ") else BETWEEN_STEPS


def verdict(plan: Plan, acknowledged: set[str], *, thorough: bool) -> list[str]:
    """Return the faults that another process finds in the warehouse after the kill."""
    examiner = forked(lambda say: say(json.dumps(survivors(plan, acknowledged, thorough=thorough))))
    heard = examiner.rest()
    return heard if heard[0].startswith("broken ") else json.loads(heard[0])


def soak(kills: int, seed: int, root: Path, *, say_s: float = 30.0) -> Tally:
    """Kill ``kills`` workers; return the kills by step, the acknowledged rows and the number of faults."""
    rng = random.Random(seed)
    tally = Tally()
    acknowledged: set[str] = set()
    migrations = 0
    turns: list[str] = []
    said = time.monotonic()
    for number in range(kills):
        folder = root / f"round-{number // KILLS_PER_FOLDER}"
        if number % KILLS_PER_FOLDER == 0:
            tally.acknowledged += len(acknowledged)
            acknowledged, migrations = set(), 0
            shutil.rmtree(root / f"round-{number // KILLS_PER_FOLDER - 1}", ignore_errors=True)
        turns = turns or rng.sample(TURNS, len(TURNS))
        step = turns.pop()
        migrations += step == "migrate"
        plan = Plan(folder, seed * 1_000_000 + number, migrations)
        acknowledged |= kill_once(plan, step, tally, rng)
        wrong = verdict(plan, acknowledged, thorough=number % KILLS_PER_CHECK == 0 or number == kills - 1)
        tally.failures += bool(wrong)
        for text in wrong:
            print(f"kill {number} (seed {seed}, {step}): {text}", flush=True)
        if time.monotonic() - said > say_s:
            said = time.monotonic()
            print(f"{number + 1} kills, {tally.failures} rounds wrong", flush=True)
    tally.acknowledged += len(acknowledged)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", type=Path, default=None, help="a document whose section figures:kills is renewed"
    )
    asked = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = soak(asked.kills, asked.seed, Path(folder))
    hit = ", ".join(f"{step} {count}" for step, count in tally.kills.most_common())
    summary = (
        f"{asked.kills} kills in {time.monotonic() - started:.0f} s. Lookout acknowledged {tally.acknowledged} writes and "
        f"decisions. Rounds that lost data, stored data twice or failed the check: {tally.failures}"
    )
    print(f"killed during: {hit}\n{summary}")
    if asked.write:
        write_section(
            asked.write,
            "kills",
            [measured_where(), "", f"{summary}.", "", f"The number of kills during each step: {hit}."],
        )
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
