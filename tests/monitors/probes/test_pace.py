"""Test that the number of concurrent questions is bounded, rises with idle cores and falls with busy cores."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, strategies

from monitors.probes import pace as pace_module
from monitors.probes.pace import MAX_AUTOMATIC_CONCURRENCY, CpuTimes, Pace, build_pace
from monitors.probes.settings import ProbeSettings


@pytest.fixture(autouse=True)
def _every_turn_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_module, "ADJUST_INTERVAL_S", 0.0)


async def finish(pace: Pace, turns: int) -> None:
    for _ in range(turns):
        async with pace:
            pass


def moving(idle: float | None) -> Pace:
    return Pace(initial=4, minimum=2, maximum=8, idle=lambda: idle)


@pytest.mark.parametrize(("idle", "ends_at"), [(0.9, 8), (0.2, 4), (0.0, 2), (None, 4)])
async def test_the_pace_follows_idle_cores(idle, ends_at):
    pace = moving(idle)
    await finish(pace, 20)
    assert pace.allowed == ends_at


async def test_a_fixed_number_stays():
    pace = Pace.with_fixed_size(3)
    await finish(pace, 20)
    assert pace.allowed == 3


@given(strategies.lists(strategies.sampled_from([0.0, 0.2, 0.9, None]), min_size=1, max_size=30))
def test_never_more_at_once_than_allowed_and_every_turn_comes_back(shares):
    async def story() -> None:
        idle_shares = iter(shares * 3)
        pace = Pace(initial=4, minimum=2, maximum=8, idle=lambda: next(idle_shares, None))
        under_way = most = 0

        async def one() -> None:
            nonlocal under_way, most
            async with pace:
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)
                under_way -= 1

        await asyncio.gather(*(one() for _ in range(60)))
        assert most <= 8
        assert 2 <= pace.allowed <= 8
        pace._excess_turns, excess = 0, pace._excess_turns
        free = 0
        while not pace._turns.locked():
            await pace._turns.acquire()
            free += 1
        assert free - excess == pace.allowed

    asyncio.run(story())


async def test_a_cancelled_wait_takes_no_turn():
    pace = Pace.with_fixed_size(1)
    async with pace:
        waiting = asyncio.ensure_future(finish(pace, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(5):
        await finish(pace, 3)


def test_an_owner_decides_and_nobody_is_flooded_by_itself():
    assert build_pace(ProbeSettings(concurrency=20), 2, lambda: None).allowed == 20
    big = build_pace(ProbeSettings(), 64, lambda: None)
    assert (big.allowed, big.maximum) == (MAX_AUTOMATIC_CONCURRENCY, MAX_AUTOMATIC_CONCURRENCY)
    assert build_pace(ProbeSettings(), 2, lambda: None).allowed == 4
    assert build_pace(ProbeSettings(), 1, lambda: None).allowed == 2


def test_wrong_bounds_are_named():
    with pytest.raises(ValueError, match="minimum"):
        Pace(initial=1, minimum=2, maximum=3, idle=lambda: None)


def test_the_idle_share_is_read_between_two_looks(tmp_path: Path):
    stat = tmp_path / "stat"
    times = CpuTimes(stat)
    assert times() is None
    stat.write_text("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n")
    assert times() is None
    stat.write_text("cpu  150 0 125 815 110 0 0 0 0 0\n")
    assert times() == pytest.approx(125 / 200)
    assert times() is None  # no time has passed
    stat.write_text("nonsense")
    assert times() is None


def test_this_machine_can_be_read():
    times = CpuTimes()
    times()
    share = times()
    assert share is None or 0 <= share <= 1
