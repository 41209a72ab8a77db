"""Pushes of cases to a local server with LangSmith's dataset API.

Some are killed, lose replies or are rate-limited.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from flows.goldset.datasets import build_push_plan, compare_dataset, push_suite
from monitors.errors import SourceUnavailable
from monitors.goldset.examples import find_case_id, read_case_from_example
from monitors.goldset.lines import Unusable
from monitors.goldset.load import build_suite
from monitors.platforms.langsmith.client import LangSmithAccess, LangSmithClient
from monitors.platforms.langsmith.datasets import LangSmithDatasets
from monitors.platforms.platform import Example
from monitors.records.cases import GoldCase
from tests.builders import gold_case
from tests.servers.langsmith_datasets import LangSmithDatasetServer

KEY = "lsv2_pt_hush"
NAME = "waiting periods"


async def no_pause(_seconds: float) -> None:
    """Return at once, so that a retry does not wait."""


@asynccontextmanager
async def opened(server: LangSmithDatasetServer, attempts: int = 3) -> AsyncGenerator[LangSmithDatasets]:
    """Open the LangSmith datasets on a local server."""
    access = LangSmithAccess(
        project="bot", api_url=server.url, key_env="LANGSMITH_API_KEY", request_deadline_s=20, attempts=attempts
    )
    async with LangSmithClient.connect(access, KEY, no_pause) as client:
        yield LangSmithDatasets(client)


async def push(
    server: LangSmithDatasetServer, cases: Sequence[GoldCase], *, overwrite: bool = False, prune: bool = False
) -> int:
    """Push ``cases`` as the command does after the user confirms.

    Return the number of written and deleted entries.
    """
    suite = build_suite(list(cases), name="waiting", source="suite.jsonl")
    async with opened(server) as datasets:
        compared = await compare_dataset(datasets, NAME, suite.cases, lambda _count: None)
        plan = build_push_plan(compared.diff, suite.cases, overwrite=overwrite, prune=prune)
        await push_suite(datasets, compared, suite, plan, lambda _count: None)
    return plan.size


async def entries(server: LangSmithDatasetServer) -> list[Example]:
    """Return all entries of the dataset, as the SDK reads them."""
    async with opened(server) as datasets:
        found = await datasets.find(NAME)
        assert found is not None
        return [entry async for entry in datasets.pull(found)]


async def cases_there(server: LangSmithDatasetServer) -> dict[str, GoldCase | Unusable]:
    """Return the cases of the dataset by id.

    Raises `AssertionError` if a case is stored twice.
    """
    held = await entries(server)
    assert len({find_case_id(entry) for entry in held}) == len(held), "a case is there twice"
    return {str(find_case_id(entry)): read_case_from_example(entry) for entry in held}


def plans(count: int) -> list[GoldCase]:
    """Return ``count`` cases with different ids and gold answers."""
    return [gold_case(f"plan-{number}", gold=f"{number} months") for number in range(count)]


async def run_schedule(server: LangSmithDatasetServer, seed: int) -> int:
    """Push the suite again and again until one push completes, and return the number of pushes.

    ``seed`` determines the faults: pushes are killed, rate-limited, or lose their replies. At the start, the
    dataset may contain an older state of the suite. Raises `AssertionError` if the dataset does not contain each
    case of the suite once at the end.
    """
    chance = random.Random(seed)
    server.restart(late=chance.choice((0, 0, 1, 3)), multipart=chance.random() < 0.8)
    cases = plans(chance.choice((1, 3, 99, 100, 101, 230)))
    if chance.random() < 0.5:
        await push(server, [one.model_copy(update={"gold": "0 months"}) for one in cases[:: chance.randint(1, 3)]])
    pushes = 0
    while True:
        pushes += 1
        begun = len(server.requests)
        _plan_faults(server, chance, begun, calm=pushes > 6)
        try:
            await push(server, cases)
        except SourceUnavailable:
            continue
        break
    server.calm()
    assert await cases_there(server) == {case.id: case for case in cases}, f"seed {seed}"
    return pushes


def _plan_faults(server: LangSmithDatasetServer, chance: random.Random, begun: int, *, calm: bool) -> None:
    """Plan random faults for the requests from number ``begun`` on, or none if ``calm``.

    After a simulated kill, the server answers no request. The last request before the kill may have been executed.
    """
    server.calm()
    if calm:
        return
    server.lost = {begun + chance.randrange(14) for _ in range(chance.randrange(3))}
    server.refused = {begun + chance.randrange(14) for _ in range(chance.randrange(2))}
    server.limited = {begun + chance.randrange(14) for _ in range(chance.randrange(3))}
    if chance.random() < 0.7:
        server.dead_from = begun + chance.randrange(1, 14)
        if chance.random() < 0.5:
            server.lost.add(server.dead_from - 1)
