"""Test values that a thread reads: they arrive in order, followed by the error if the thread fails.

If the reader of the values leaves early, the thread stops.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sources.traffic.files import BATCH_SIZE, iterate_in_thread


def counting(count: int, fails: bool) -> Generator[int]:
    yield from range(count)
    if fails:
        raise OSError("the disk is gone")


@given(st.integers(0, 3 * BATCH_SIZE), st.booleans())
def test_all_values_come_in_order_and_an_error_last(count: int, fails: bool) -> None:
    async def read() -> list[int]:
        values: list[int] = []
        try:
            async for value in iterate_in_thread(counting(count, fails)):
                values.append(value)  # noqa: PERF401 - values before an error are needed
        except OSError:
            assert fails
            return values
        assert not fails
        return values

    assert asyncio.run(read()) == list(range(count))


async def test_leaving_closes_the_values() -> None:
    closed = threading.Event()

    def values() -> Generator[int]:
        try:
            yield from range(10 * BATCH_SIZE)
        finally:
            closed.set()

    reading = iterate_in_thread(values())
    assert await anext(reading) == 0
    await reading.aclose()
    assert closed.is_set()


async def test_a_cancelled_reader_waits_for_the_step_under_way_and_closes() -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def values() -> Generator[int]:
        try:
            begun.set()
            go_on.wait()
            yield 1
        finally:
            closed.set()

    async def read() -> None:
        async for _ in iterate_in_thread(values()):
            pass

    reading = asyncio.ensure_future(read())
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert closed.is_set()
