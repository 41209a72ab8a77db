"""Judge the answers of a nightly run with the provider's batch API, at half the price of single requests.

Batches are for work that can wait until the morning. Many prompts are sent at once. Groups and canaries are the
same as for single requests. A prompt may get no reply, because of an error, an expired item, a refused batch or a
missed deadline. Such a prompt is then sent as a single request. Therefore, no grade is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from monitors.errors import GradingError
from monitors.judge.canaries import Canary
from monitors.judge.consensus import JudgeCase
from monitors.judge.judge import Judge, JudgedGroup, build_canary_case
from monitors.judge.model import BatchModel, JudgePrompt, ModelReply, RequestId, add_estimated_usage_if_missing
from monitors.judge.prompt import RenderedPrompt
from monitors.records.base import Record
from monitors.records.cases import GoldCase

MAX_PROMPTS: Final = 10_000
"""Maximum number of prompts that Lookout sends in one batch.

The provider accepts up to 100,000 requests or 256 MB.
"""

MAX_BYTES: Final = 200 * 2**20


class BatchPollPolicy(Record):
    """The maximum time to wait for a batch and the time between two polls of its state, in seconds."""

    deadline_s: float
    poll_s: float


class BatchReplies(Record):
    """The replies of the batches, keyed by the id of the prompt.

    ``missing`` has the reasons for missing replies.
    """

    replies: dict[RequestId, ModelReply]
    missing: tuple[str, ...] = ()


async def submit_and_collect_batches(
    model: BatchModel,
    prompts: Sequence[JudgePrompt],
    poll_policy: BatchPollPolicy,
    *,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> BatchReplies:
    """Submit ``prompts`` in batches, wait until the deadline, and return the replies.

    Provider errors are not raised, but returned as ``missing``. If the task is cancelled, the submitted batch is
    also cancelled.
    """
    replies: dict[RequestId, ModelReply] = {}
    missing: list[str] = []
    for portion in _split_prompts_into_batches(prompts):
        try:
            results = await _run_batch(model, portion, poll_policy, monotonic, pause)
        except GradingError as error:
            missing.append(str(error))
            continue
        for prompt in portion:
            reply = results.get(prompt.id)
            if isinstance(reply, ModelReply):
                replies[prompt.id] = add_estimated_usage_if_missing(reply, prompt)
        missing += [str(reason) for reason in results.values() if isinstance(reason, GradingError)]
    return BatchReplies(replies=replies, missing=tuple(dict.fromkeys(missing)))


async def _run_batch(
    model: BatchModel,
    prompts: tuple[JudgePrompt, ...],
    poll_policy: BatchPollPolicy,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> dict[RequestId, ModelReply | GradingError]:
    batch = await model.submit(prompts)
    deadline_at = monotonic() + poll_policy.deadline_s
    ended = False
    try:
        while not (ended := await _has_ended(model, batch)) and monotonic() < deadline_at:
            await pause(poll_policy.poll_s)
    finally:
        if not ended:
            await model.cancel(batch)
    while not ended and monotonic() < deadline_at + poll_policy.poll_s * _POLLS_AFTER_CANCEL:
        await pause(poll_policy.poll_s)
        ended = await _has_ended(model, batch)
    return await model.collect(batch) if ended else {}


_POLLS_AFTER_CANCEL: Final = 3
"""Maximum number of polls after a batch is cancelled. If the batch has ended by then, its replies are collected."""


async def _has_ended(model: BatchModel, batch: str) -> bool:
    """Return whether the batch has ended.

    If the poll fails, return False, because the batch may still be running.
    """
    try:
        return await model.has_ended(batch)
    except GradingError:
        return False


def _split_prompts_into_batches(prompts: Sequence[JudgePrompt]) -> list[tuple[JudgePrompt, ...]]:
    portions: list[tuple[JudgePrompt, ...]] = []
    current: list[JudgePrompt] = []
    size = 0
    for prompt in prompts:
        weight = 2 * len((prompt.instructions + prompt.material).encode())
        if current and (len(current) >= MAX_PROMPTS or size + weight > MAX_BYTES):
            portions.append(tuple(current))
            current, size = [], 0
        current.append(prompt)
        size += weight
    return [*portions, tuple(current)] if current else portions


NO_BATCHES: Final = "Lookout cannot use batches with the judge's provider, so it requested each verdict separately"


class BatchOutcome(NamedTuple):
    """The groups of cases that were judged with a batch.

    ``missing`` has the reasons why prompts got no reply from the batch.
    """

    groups: tuple[JudgedGroup, ...]
    missing: tuple[str, ...]


async def judge_by_batch(
    judge: Judge,
    cases: Sequence[JudgeCase],
    known_cases: Sequence[GoldCase],
    *,
    seed: str,
    group_size: int,
    poll_policy: BatchPollPolicy,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> BatchOutcome:
    """Judge ``cases`` in groups of ``group_size``, each with canaries made from ``known_cases``.

    The first opinion on each case comes from a batch. Second and third opinions, and replies that are missing from
    the batch, are requested one by one. Groups are submitted in order, each with its canaries first. If the budget
    is too small, the last prompts are omitted from the batch.
    """
    groups = [cases[at : at + group_size] for at in range(0, len(cases), group_size)]
    canaries = [
        judge.build_group_canaries(group, known_cases, seed=f"{seed}:{number}")
        for number, group in enumerate(groups)
    ]
    prompts = _build_prompts(judge, groups, canaries)
    batch = await _request_first_replies_by_batch(judge, prompts, poll_policy, monotonic, pause)
    judged = [
        await judge.judge_group(group, group_canaries, prompts=prompts, replies=batch.replies)
        for group, group_canaries in zip(groups, canaries, strict=True)
    ]
    return BatchOutcome(tuple(judged), batch.missing)


def _build_prompts(
    judge: Judge, groups: Sequence[Sequence[JudgeCase]], canaries: Sequence[Sequence[Canary]]
) -> dict[RequestId, RenderedPrompt]:
    return {
        case.id: judge.render_prompt(case)
        for group, group_canaries in zip(groups, canaries, strict=True)
        for case in (*map(build_canary_case, group_canaries), *group)
    }


async def _request_first_replies_by_batch(
    judge: Judge,
    rendered_prompts: dict[RequestId, RenderedPrompt],
    poll_policy: BatchPollPolicy,
    monotonic: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> BatchReplies:
    first = judge.members[0]
    if not isinstance(first.model, BatchModel):
        return BatchReplies(replies={}, missing=(NO_BATCHES,))
    prompts = first.select_affordable_prompts([rendered.prompt for rendered in rendered_prompts.values()])
    batch = await submit_and_collect_batches(first.model, prompts, poll_policy, monotonic=monotonic, pause=pause)
    first.add_cost_of_unread_replies(batch.replies.values())
    return batch
