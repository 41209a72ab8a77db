"""A night's answers judged by the provider's batches: the same groups, canaries and rules, at half the price."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from monitors.judge.batches import BatchPatience, Brought, replies_by_batch
from monitors.judge.canaries import Canary
from monitors.judge.judge import Judge, JudgedGroup, canary_case
from monitors.judge.model import BatchModel, RequestId
from monitors.judge.prompt import Asked
from monitors.judge.ruling import JudgeCase
from monitors.records.cases import GoldCase

NO_BATCHES: Final = "the judge's provider has no batches that are spoken here; everything was asked for one by one"


class Night(NamedTuple):
    """What came of it. ``missing`` says in words what the batches did not bring and was asked for one by one."""

    groups: tuple[JudgedGroup, ...]
    missing: tuple[str, ...]


async def judge_by_batch(
    judge: Judge,
    cases: Sequence[JudgeCase],
    known: Sequence[GoldCase],
    *,
    seed: str,
    group_size: int,
    patience: BatchPatience,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Night:
    """Judge ``cases`` in groups of ``group_size``, each with canaries made from ``known``.

    First opinions come from a batch; second and third ones, and what the batch did not bring, are asked for one by
    one. Canaries go first, so that where money is short it is the last answers that are left out.
    """
    groups = [cases[at : at + group_size] for at in range(0, len(cases), group_size)]
    riders = [judge.riders(group, known, seed=f"{seed}:{number}") for number, group in enumerate(groups)]
    asked = _prompts(judge, groups, riders)
    brought = await _brought(judge, asked, patience, monotonic, pause)
    judged = [
        await judge.group(group, riding, prompts=asked, replies=brought.replies)
        for group, riding in zip(groups, riders, strict=True)
    ]
    return Night(tuple(judged), brought.missing)


def _prompts(
    judge: Judge, groups: Sequence[Sequence[JudgeCase]], riders: Sequence[Sequence[Canary]]
) -> dict[RequestId, Asked]:
    known = [canary_case(canary) for riding in riders for canary in riding]
    return {case.id: judge.prompt(case) for case in (*known, *(case for group in groups for case in group))}


async def _brought(
    judge: Judge,
    asked: dict[RequestId, Asked],
    patience: BatchPatience,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> Brought:
    first = judge.seats[0]
    if not isinstance(first.model, BatchModel):
        return Brought(replies={}, missing=(NO_BATCHES,))
    prompts = first.affordable([one.prompt for one in asked.values()])
    return await replies_by_batch(first.model, prompts, patience, monotonic=monotonic, pause=pause)
