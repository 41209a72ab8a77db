"""Many prompts at once, later and at half the price: for work that can wait until the morning.

What a batch does not bring (an error, an expired item, a provider that does not take it, a deadline that passed) is
asked one by one afterwards, so a batch can only save money and never lose a grade.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from monitors.errors import GradingError
from monitors.judge.model import BatchModel, JudgePrompt, Reply, RequestId
from monitors.records.base import Record

MOST_PROMPTS: Final = 10_000
"""Of one batch; the provider's own limit is 100,000 requests or 256 MB."""

MOST_BYTES: Final = 200 * 2**20


class BatchPatience(Record):
    """How long a batch is waited for, and how often it is looked at."""

    deadline_s: float
    poll_s: float


class Brought(Record):
    """What the batches brought. ``missing`` says why in words, each reason once."""

    replies: dict[RequestId, Reply]
    missing: tuple[str, ...] = ()


async def replies_by_batch(
    model: BatchModel,
    prompts: Sequence[JudgePrompt],
    patience: BatchPatience,
    *,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Brought:
    """Hand ``prompts`` in, wait until the deadline, and collect what there is. Never raises for a provider.

    Stopped in the middle, it cancels what it handed in: nobody would collect it.
    """
    replies: dict[RequestId, Reply] = {}
    missing: list[str] = []
    for some in _portions(prompts):
        try:
            found = await _one_batch(model, some, patience, monotonic, pause)
        except GradingError as error:
            missing.append(str(error))
            continue
        replies |= {key: reply for key, reply in found.items() if isinstance(reply, Reply)}
        missing += [str(reason) for reason in found.values() if isinstance(reason, GradingError)]
    return Brought(replies=replies, missing=tuple(dict.fromkeys(missing)))


async def _one_batch(
    model: BatchModel,
    prompts: tuple[JudgePrompt, ...],
    patience: BatchPatience,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> dict[RequestId, Reply | GradingError]:
    batch = await model.submit(prompts)
    over_at = monotonic() + patience.deadline_s
    ended = False
    try:
        while not (ended := await _has_ended(model, batch)) and monotonic() < over_at:
            await pause(patience.poll_s)
    finally:
        if not ended:
            await model.cancel(batch)
    while not ended and monotonic() < over_at + patience.poll_s * _LAST_LOOKS:
        await pause(patience.poll_s)
        ended = await _has_ended(model, batch)
    return await model.collect(batch) if ended else {}


_LAST_LOOKS: Final = 3
"""After cancelling: what was judged until then is worth collecting."""


async def _has_ended(model: BatchModel, batch: str) -> bool:
    """A look that fails says nothing: the batch goes on without us."""
    try:
        return await model.has_ended(batch)
    except GradingError:
        return False


def _portions(prompts: Sequence[JudgePrompt]) -> list[tuple[JudgePrompt, ...]]:
    portions: list[tuple[JudgePrompt, ...]] = []
    current: list[JudgePrompt] = []
    size = 0
    for prompt in prompts:
        weight = 2 * len((prompt.instructions + prompt.material).encode())
        if current and (len(current) >= MOST_PROMPTS or size + weight > MOST_BYTES):
            portions.append(tuple(current))
            current, size = [], 0
        current.append(prompt)
        size += weight
    return [*portions, tuple(current)] if current else portions
