"""A plain iterator that waits for disks and networks, read without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import TypeVar

Value = TypeVar("Value")

BATCH = 256
"""Values that are fetched at one go: a change of threads costs as much as reading some ten lines."""


async def in_thread(values: Generator[Value]) -> AsyncGenerator[Value]:
    """The values in order, fetched in a thread. What was read before an error comes before it.

    When it is closed or cancelled it waits for the step under way, and closes ``values``.
    """
    batches = _batches(values)
    fetching: asyncio.Future[list[Value] | None] | None = None
    try:
        while True:
            fetching = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
            batch = await asyncio.shield(fetching)
            if batch is None:
                return
            for value in batch:
                yield value
    finally:
        if fetching is not None and not fetching.done():
            await asyncio.wait({fetching})
            fetching.exception()  # told already to whoever waited, or of no interest any more
        values.close()


def _batches(values: Iterator[Value]) -> Iterator[list[Value]]:
    batch: list[Value] = []
    failure: Exception | None = None
    try:
        for value in values:
            batch.append(value)
            if len(batch) == BATCH:
                yield batch
                batch = []
    except Exception as error:  # noqa: BLE001 - it is raised again, behind what was read before it
        failure = error
    if batch:
        yield batch
    if failure is not None:
        raise failure
