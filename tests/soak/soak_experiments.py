"""Kill writers of an experiment at random moments: in the end each run and each score exists once.

A schedule is a series of writers. For LangSmith, each writer is a new process. Some writers are killed at a seeded
request, also between a run and its scores. Some lose replies or get a rate limit. The last one has no fault. Run
1,000 schedules with ``python -m tests.soak.soak_experiments``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from monitors.errors import SourceUnavailable
from monitors.platforms.langsmith.experiments import make_run_id
from monitors.platforms.langsmith.project import open_langsmith
from monitors.platforms.platform import Dataset, Experiment, ExperimentRow, Score
from monitors.platforms.settings import LangSmithSettings
from tests.servers.langsmith_experiments import LangSmithExperimentServer

KEY = "lsv2_pt_hush"
GOLD = Dataset(id="cccccccc-2222-4333-8444-555555555555", name="gold", url="")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEYS = ("lookout_correct", "lookout_factual", "lookout_severity")


async def no_pause(_seconds: float) -> None:
    """Return immediately, so that a retry does not wait."""


def rows_by(chance: random.Random, shape: Sequence[tuple[int, int]]) -> list[ExperimentRow]:
    """Return experiment rows for ``shape``, which lists pairs of a case and a repeat.

    The answers and scores are random.
    """
    return [
        ExperimentRow(
            example_id=f"eeeeeeee-2222-4333-8444-{case:012}",
            case_id=f"case-{case}",
            repeat=repeat,
            inputs={"question": "How long?"},
            outputs={"answer": str(chance.random())},
            started_at=NOON,
            ended_at=NOON + timedelta(seconds=chance.randrange(60)),
            scores=tuple(Score(key=key, value=chance.randrange(5) / 4) for key in KEYS),
        )
        for case, repeat in shape
    ]


async def written(server: LangSmithExperimentServer, rows: Sequence[ExperimentRow]) -> Experiment:
    """Write the whole experiment with a new client, as a new process does."""
    settings = LangSmithSettings(api_url=server.url)
    async with open_langsmith(settings, KEY, no_pause) as platform:
        experiment = await platform.experiments.start(GOLD, "run-1", {"commit": "a1b2c3d"})
        await platform.experiments.write(experiment, rows)
        await platform.experiments.finish(experiment)
    return experiment


async def live_through(server: LangSmithExperimentServer, seed: int) -> int:
    """Run one seeded schedule, and return how many of its writers were killed.

    Raises `AssertionError` if the result is wrong.
    """
    chance = random.Random(seed)
    server.restart()
    shape = [(case, repeat) for case in range(chance.randint(1, 3)) for repeat in range(chance.randint(1, 2))]
    killed = 0
    for _ in range(chance.randint(1, 3)):
        so_far = len(server.requests)
        last = so_far + chance.randrange(2 + 4 * len(shape))
        server.dead_from = last
        server.lost = {number for number in range(so_far, last) if chance.random() < 0.1}
        server.limited = {number for number in range(so_far, last) if chance.random() < 0.1} - server.lost
        with suppress(SourceUnavailable):
            await written(server, rows_by(chance, shape))
            killed -= 1
        killed += 1
        server.calm()
    rows = rows_by(chance, shape)
    check(server, await written(server, rows), rows)
    return killed


def check(server: LangSmithExperimentServer, experiment: Experiment, rows: Sequence[ExperimentRow]) -> None:
    """Check that everything that the last writer wrote exists once, and that nothing else exists."""
    assert list(server.projects) == [experiment.id]
    assert server.projects[experiment.id]["end_time"]
    by_id = {make_run_id(experiment.id, row.case_id, row.repeat): row for row in rows}
    assert server.runs.keys() == by_id.keys()
    assert len(server.feedback) == len(rows) * len(KEYS)
    for run_id, row in by_id.items():
        assert server.runs[run_id]["outputs"] == row.outputs
        assert server.scores(run_id) == {score.key: score.value for score in row.scores}
    assert server.extended == []


async def _all(seeds: range) -> int:
    with LangSmithExperimentServer(key=KEY) as server:
        return sum([await live_through(server, seed) for seed in seeds])


def main() -> int:
    """Run the schedules, and return 0 if all pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    killed = asyncio.run(_all(range(given.seed, given.seed + given.schedules)))
    print(
        f"{given.schedules} schedules from seed {given.seed}: {killed} writers were killed; nothing twice, nothing lost"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
