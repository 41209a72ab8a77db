"""Test the worker processes that check conversations.

They return the same results as this process, in the same order, even if a worker fails. They end with their parent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.nightly import census as pools
from flows.nightly.census_worker import KINDS, MODULE, CensusScanner, CensusSettings
from monitors.errors import SourceUnavailable
from monitors.graders.base import GraderSettings
from monitors.records.nightly import CensusKind
from monitors.records.traffic import Conversation, Turn
from monitors.sources.sampling.settings import SamplingMode, SamplingSettings
from tests.process_tree import all_processes, descendants

SETTINGS = CensusSettings(
    graders=GraderSettings(account_patterns=(r"\bNV-\d{6}\b",)),
    sampling=SamplingSettings(mode=SamplingMode.STRATIFIED),
)
REPLIES = (
    "You have thirty days to renew the policy.",
    "Error code: 429 - rate limit reached",
    "Write to asha.verma.1987@gmail.com about her claim.\nHer number is NV-123456.",
    "इस योजना में प्रतीक्षा अवधि चौबीस महीने की है।",
    "",
)


def written(number: int) -> bytes:
    turn = Turn(user_text="How long is the waiting period?", reply_text=REPLIES[number % len(REPLIES)])
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Conversation(id=f"c-{number}", origin_id="c", completed_at=at, turns=(turn,)).model_dump_json().encode()


CHUNKS = [[written(10 * chunk + one) for one in range(10)] for chunk in range(pools.MIN_CHUNKS_FOR_WORKERS + 6)]


async def chunks():
    for chunk in CHUNKS:
        yield chunk


@pytest.fixture
def expected():
    look = CensusScanner(SETTINGS)
    return [(chunk, [look.scan(one) for one in chunk]) for chunk in CHUNKS]


def workers() -> list[int]:
    return [one.pid for one in descendants(os.getpid()) if MODULE in one.command]


@pytest.mark.whole_only
async def test_workers_see_what_this_process_sees_in_order(expected):
    pool = pools.CensusPool(SETTINGS, 3)
    try:
        seen = [each async for each in pool.classify(chunks())]
        assert len(workers()) == 3
    finally:
        await pool.aclose()
    assert seen == expected
    assert workers() == []
    kinds = {
        kind
        for _, verdicts in seen
        for verdict in verdicts
        for place, _ in verdict.findings
        for kind in [pools.KINDS[place]]
    }
    assert kinds == set(KINDS) - {CensusKind.REFUSAL}


async def test_conversations_of_a_killed_worker_are_checked_in_process(expected):
    pool = pools.CensusPool(SETTINGS, 2)
    seen = []
    try:
        async for each in pool.classify(chunks()):
            for pid in workers():
                with suppress(ProcessLookupError):  # it ended by itself in between
                    os.kill(pid, signal.SIGKILL)
            seen.append(each)
    finally:
        await pool.aclose()
    assert seen == expected


@pytest.mark.whole_only
async def test_a_source_that_fails_half_way_leaves_no_answer_to_the_next_one(expected):
    """If reading a source fails, its pending results in the workers do not reach the next source."""

    async def cut_off():
        for chunk in reversed(CHUNKS):
            yield [*chunk, *chunk[::-1]] * 20
        raise SourceUnavailable("its store went away")

    pool = pools.CensusPool(SETTINGS, 2)
    try:
        with pytest.raises(SourceUnavailable):
            [each async for each in pool.classify(cut_off())]
        seen = [each async for each in pool.classify(chunks())]
    finally:
        await pool.aclose()
    assert seen == expected
    assert workers() == []


async def test_workers_end_where_their_reader_fails():
    """The workers end if the pool is closed while parts are still in progress."""
    pool = pools.CensusPool(SETTINGS, 2)
    try:
        async with aclosing(pool.classify(chunks())) as given:
            while not workers():
                await anext(given)
    finally:
        await pool.aclose()
    assert workers() == []


PARENT = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.flows.nightly.test_census_pool import SETTINGS, chunks
from flows.nightly.census import CensusPool

async def main():
    pool = CensusPool(SETTINGS, 2)
    async for _ in pool.classify(chunks()):
        pass
    print("there", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.whole_only
def test_workers_end_with_who_started_them_however_that_ends():
    """The workers end with their parent process, even if SIGKILL ends the parent before it can stop them."""
    root = str(Path(__file__).resolve().parents[3])
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(root=root)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent, parent.stdout:
        assert parent.stdout.readline() == b"there\n"
        started = [one.pid for one in descendants(parent.pid) if MODULE in one.command]
        assert len(started) == 2
        parent.kill()
    until = time.monotonic() + 60
    while any(pid in all_processes() for pid in started) and time.monotonic() < until:
        os.sched_yield()
    assert not [pid for pid in started if pid in all_processes()]


def test_a_worker_knows_neither_prefect_nor_the_warehouse():
    script = (
        f"import {MODULE}, sys; print([one for one in ('prefect', 'duckdb', 'slack_sdk') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
