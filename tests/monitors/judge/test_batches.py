"""Test judging in batches: a batch costs less than single requests, and no grade is lost."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from monitors.judge.batches import NO_BATCHES, BatchPollPolicy, judge_by_batch, submit_and_collect_batches
from monitors.judge.consensus import NoRuling, PanelRuling
from monitors.judge.judge import Account
from monitors.judge.model import JudgePrompt, ModelReply
from tests.monitors.asking import MODEL, RIGHT, WRONG, Pauses, ask, judge_at
from tests.monitors.judge.benches import dollars, judge_over, known_cases, to_judge
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge

PATIENCE = BatchPollPolicy(deadline_s=100, poll_s=10)


class Clock:
    """A clock whose time advances only when a caller pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    async def pause(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)


def prompts(count: int) -> list[JudgePrompt]:
    return [ask(RIGHT if n % 2 else WRONG, f"case-{n}").prompt for n in range(count)]


async def fetched(server, count=4, poll_policy=PATIENCE):
    clock = Clock()
    async with judge_at(server) as model:
        brought = await submit_and_collect_batches(
            model, prompts(count), poll_policy, monotonic=clock, pause=clock.pause
        )
    return brought, clock


async def test_every_prompt_gets_its_own_reply_whatever_the_order():
    with AnthropicServer() as server:
        brought, clock = await fetched(server)
    assert sorted(brought.replies) == [f"case-{n}" for n in range(4)]
    assert '"factual_match": true' in brought.replies["case-1"].text
    assert '"factual_match": false' in brought.replies["case-2"].text
    assert brought.missing == ()
    assert clock.now_s == 10


async def test_failed_and_expired_requests_are_missing_and_reported(snapshot):
    with AnthropicServer() as server:
        server.batch_faults = {"first": "errored", "last": "expired"}
        brought, _ = await fetched(server)
    assert sorted(brought.replies) == ["case-1", "case-2"]
    assert sorted(brought.missing) == snapshot


async def test_a_batch_that_takes_too_long_is_cancelled_and_what_there_is_collected(snapshot):
    with AnthropicServer() as server:
        server.batch_looks = -1
        brought, clock = await fetched(server)
        assert next(iter(server.batches.values())).canceled
    assert brought.replies == {}
    assert brought.missing == snapshot
    assert clock.now_s <= 130


async def test_a_batch_that_is_not_taken_brings_nothing_and_says_why():
    with AnthropicServer() as server:
        server.always = "402"
        brought, _ = await fetched(server)
    assert brought.replies == {}
    assert "credit" in brought.missing[0]


async def test_a_look_that_fails_is_looked_again():
    with AnthropicServer() as server:
        server.batch_looks = 2
        server.misbehave("ok", "402", "402")
        brought, _ = await fetched(server)
    assert len(brought.replies) == 4


async def test_a_batch_is_cancelled_when_waiting_ends():
    with AnthropicServer() as server:
        server.batch_looks = -1
        async with judge_at(server) as model:

            async def stopped(_seconds: float) -> None:
                raise asyncio.CancelledError

            with pytest.raises(asyncio.CancelledError):
                await submit_and_collect_batches(model, prompts(2), PATIENCE, monotonic=Clock(), pause=stopped)
        assert next(iter(server.batches.values())).canceled


async def judged_night(server, cases, **settings):
    account = Account(dollars, limit_usd=settings.pop("limit", None))
    return await judged(server, cases, account, **settings), account


async def judged(server, cases, account, **settings):
    clock = Clock()
    async with judge_over(server, account=account, **settings) as judge:
        return await judge_by_batch(
            judge,
            cases,
            known_cases(),
            seed="night",
            group_size=5,
            poll_policy=PATIENCE,
            monotonic=clock,
            pause=clock.pause,
        )


def answers(count: int):
    return [to_judge(RIGHT if n % 2 else WRONG, f"case-{n}") for n in range(count)]


async def test_a_night_is_judged_in_groups_with_canaries_at_the_price_of_a_batch():
    with AnthropicServer() as server:
        night, account = await judged_night(server, answers(12), batch_size=5)
        assert server.messages == []
        assert len(server.batches) == 1
    assert [len(group.rulings) for group in night.groups] == [5, 5, 2]
    assert all(group.canaries is not None and not group.is_void for group in night.groups)
    passed = [ruling.decision.passed for group in night.groups for ruling in group.rulings]
    assert passed == [n % 2 == 1 for n in range(12)]
    assert account.total.calls == 12 + 4 + 4 + 2
    assert night.missing == ()


@pytest.mark.whole_only
async def test_verdicts_missing_from_the_batch_are_requested_one_by_one():
    with AnthropicServer() as server:
        cases = answers(6)
        server.batch_faults = {cases[0].id: "expired", cases[3].id: "errored", cases[4].id: "malformed"}
        night, _ = await judged_night(server, cases)
        asked = {body.json["messages"][0]["content"][0]["text"] for body in server.messages}
    assert len(asked) == 3
    assert all(isinstance(ruling, PanelRuling) for group in night.groups for ruling in group.rulings)


async def test_a_fooled_judge_is_void_in_a_night_too():
    with AnthropicServer(judge=RuleJudge(passes_all=True)) as server:
        night, _ = await judged_night(server, answers(6))
    assert all(group.is_void for group in night.groups)
    assert all(isinstance(ruling, NoRuling) for group in night.groups for ruling in group.rulings)


async def test_a_night_keeps_within_its_budget():
    limit = Decimal("0.05")
    with AnthropicServer() as server:
        night, account = await judged_night(server, answers(20), limit=limit)
        submitted = next(iter(server.batches.values())).requests
    assert 0 < len(submitted) < 32
    assert account.total.usd <= limit
    left = [r for group in night.groups for r in group.rulings if isinstance(r, NoRuling) and r.budget]
    assert account.is_limit_reached == bool(left)


async def test_the_cost_of_a_batch_counts_before_the_next_request():
    """A batch is cut to the budget: at one cent per prompt and a limit of 25 cents, it contains 25 prompts.

    A group has 9 prompts: 5 answers and 4 known answers (canaries). The limit is enough for two whole groups and
    for 3 answers of a third group.
    """
    account = Account(lambda _model, _usage: Decimal("0.01"), limit_usd=Decimal("0.25"))
    with AnthropicServer() as server:
        night = await judged(server, answers(60), account, batch_size=5)
        (batch,) = server.batches.values()
        assert len(batch.requests) == 25
        assert server.messages == []
    assert account.total.usd == Decimal("0.25")
    assert account.is_limit_reached
    counts = [sum(isinstance(one, PanelRuling) for one in group.rulings) for group in night.groups]
    assert counts == [5, 5, 3, *[0] * 9]


async def test_a_provider_without_batches_is_asked_one_by_one():
    class Plain:
        """A judge without support for batches."""

        name = MODEL

        def __init__(self, inner) -> None:
            self._inner = inner

        async def request_reply(self, prompt: JudgePrompt) -> ModelReply:
            return await self._inner.request_reply(prompt)

    with AnthropicServer() as server:
        async with judge_over(server) as judge:
            judge.members[0].model = Plain(judge.members[0].model)
            night = await judge_by_batch(
                judge,
                answers(2),
                known_cases(),
                seed="n",
                group_size=5,
                poll_policy=PATIENCE,
                monotonic=Clock(),
                pause=Pauses(),
            )
        assert not server.batches
    assert night.missing == (NO_BATCHES,)
    assert all(isinstance(ruling, PanelRuling) for ruling in night.groups[0].rulings)
