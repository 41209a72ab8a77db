"""Kill Chromium, the app and Lookout many times during one run: each case is stored exactly once.

    python -m tests.soak.soak_probe --cases 100 --kills 50 --seed 1

A real `lookout verify` runs with a Prefect server, real Chromium and a page in its own process. Kills are SIGKILL
at random, seeded moments. The victim is one of Chromium's processes, the app (restarted after up to six seconds),
or Lookout (restarted immediately, when it resumes the run). The last kills happen while Lookout evaluates, records
and notifies. At the end, the journal, the warehouse and results.json are compared with the planned questions and
with what the app recorded before it answered.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from flows.server import prefect_server
from tests.soak.kill_story import Story, live_through, planned
from tests.soak.kill_verdict import judged


def main() -> int:
    """Run one story. Return 1 if an answer was lost, duplicated or mixed up, else 0."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=100)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--keep", type=Path, default=None, help="a folder that is not deleted, to see what happened"
    )
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        home = folder / "prefect"
        prefect_server.connect_or_start(None, home, environment=environment, start_timeout_s=180, write_line=print)
        try:
            return report_story(story_of(folder, given.cases, given.kills, given.seed, environment))
        finally:
            prefect_server.stop_server(home)


def story_of(folder: Path, cases: int, kills: int, seed: int, environment: dict[str, str]) -> Story:
    """Return the story of kills that belongs to a seed."""
    chance = random.Random(seed)
    return Story(folder, cases, environment, chance, planned(cases, kills, chance))


def report_story(story: Story) -> int:
    """Run the story, and print the figures and the faults."""
    live_through(story)
    verdict = judged(story)
    for line in verdict.figures:
        print(line)
    for fault in verdict.faults:
        print(f"FAULT: {fault}")
    print("every case is there exactly once" if not verdict.faults else f"{len(verdict.faults)} faults")
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
