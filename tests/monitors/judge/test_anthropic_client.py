"""Test the judge's Anthropic client against a local server that implements the API and fails as planned."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from monitors.errors import GradingError, JudgeMisconfigured, JudgeUnavailable
from monitors.judge.consensus import build_cost
from monitors.judge.model import ModelReply, Stop
from monitors.judge.prompt import Task, load_instructions
from monitors.records.base import Blame
from monitors.retry import RetryPolicy
from tests.monitors.asking import MODEL, QUICK, RIGHT, WRONG, ask, judge_at
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.anthropic_replies import MISCOUNTED

HASTY = RetryPolicy(deadline_s=30, try_s=0.3, tries=2, most_pause_s=1)


async def test_a_verdict_comes_with_its_model_and_its_cost():
    with AnthropicServer() as server:
        async with judge_at(server) as judge:
            right = await judge.request_reply(ask(RIGHT).prompt)
            wrong = await judge.request_reply(ask(WRONG).prompt)
    assert json.loads(right.text)["factual_match"] is True
    assert json.loads(wrong.text)["failure_kinds"] == ["wrong_fact"]
    assert (right.stop, right.answered_by) == (Stop.DONE, MODEL)
    assert right.usage.output_tokens > 10
    assert not right.usage.batch


@pytest.mark.parametrize("fault", sorted(MISCOUNTED))
async def test_a_count_that_cannot_be_true_is_estimated_and_the_verdict_stands(fault):
    with AnthropicServer() as server:
        server.misbehave(fault)
        async with judge_at(server) as judge:
            reply = await judge.request_reply(ask(WRONG).prompt)
        assert len(server.messages) == 1
    assert json.loads(reply.text)["failure_kinds"] == ["wrong_fact"]
    assert reply.usage.estimated
    assert 500 < reply.usage.input_tokens < 5_000
    assert 10 < reply.usage.output_tokens < 1_000
    assert build_cost(reply.usage, Decimal(1)).estimated_calls == 1


async def test_instructions_are_read_from_the_cache_from_the_second_verdict_on():
    with AnthropicServer() as server:
        async with judge_at(server) as judge:
            first = await judge.request_reply(ask(RIGHT).prompt)
            second = await judge.request_reply(ask(WRONG).prompt)
    assert first.usage.cache_write_5m_tokens > 2048
    assert first.usage.cache_read_tokens == 0
    assert second.usage.cache_read_tokens == first.usage.cache_write_5m_tokens
    assert second.usage.input_tokens < 400


async def test_requests_match_the_api():
    with AnthropicServer() as server:
        async with judge_at(server) as judge:
            await judge.request_reply(ask(RIGHT).prompt)
        sent = server.messages[0].json
    assert sent["system"][0]["text"] == load_instructions(Task.FACTUAL).text
    assert sent["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert sent["output_config"]["effort"] == "low"
    assert "temperature" not in sent


@pytest.mark.parametrize("fault", ["429:0", "500", "529:0", "408", "409", "cut", "reset", "html", "overloaded_200"])
async def test_temporary_errors_are_retried(fault):
    with AnthropicServer() as server:
        server.misbehave(fault)
        async with judge_at(server) as judge:
            reply = await judge.request_reply(ask().prompt)
        assert reply.stop is Stop.DONE
        assert len(server.messages) == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("400", "structured output"),
        ("401", "the key"),
        ("402", "credit"),
        ("403", "key"),
        ("404", "name"),
        ("413", "large"),
    ],
)
async def test_permanent_errors_are_not_retried_and_blamed_on_the_monitor(status, error):
    with AnthropicServer() as server:
        server.always = status
        async with judge_at(server) as judge:
            with pytest.raises(JudgeMisconfigured, match=error) as caught:
                await judge.request_reply(ask().prompt)
        assert len(server.messages) == 1
    assert caught.value.blame is Blame.MONITOR
    assert status in str(caught.value)


@pytest.mark.parametrize("fault", ["429:0", "500", "cut", "html", "overloaded_200"])
async def test_tries_are_bounded_and_no_error_holds_key_or_address(fault):
    with AnthropicServer() as server:
        server.always = fault
        async with judge_at(server, QUICK.model_copy(update={"tries": 2})) as judge:
            with pytest.raises(JudgeUnavailable, match="2 times") as caught:
                await judge.request_reply(ask().prompt)
        assert len(server.messages) == 2
        address = server.url
    assert caught.value.blame is Blame.PROVIDER
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert not any(secret in str(error) for error in chain for secret in (KEY, address) if error)


async def test_a_provider_that_does_not_answer_has_a_deadline():
    with AnthropicServer() as server:
        server.always = "hang"
        async with judge_at(server, HASTY) as judge:
            with pytest.raises(JudgeUnavailable, match="did not answer in time"):
                await judge.request_reply(ask().prompt)


async def test_a_wrong_key_is_reported_without_the_key():
    with AnthropicServer() as server:
        async with judge_at(server, api_key="sk-ant-another-key") as judge:
            with pytest.raises(JudgeMisconfigured) as caught:
                await judge.request_reply(ask().prompt)
    assert "sk-ant" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "stop"),
    [("refusal", Stop.REFUSED), ("truncated", Stop.CUT), ("empty", Stop.DONE), ("thinking", Stop.DONE)],
)
async def test_the_stop_reason_and_cost_are_stored(fault, stop):
    with AnthropicServer() as server:
        server.misbehave(fault)
        async with judge_at(server) as judge:
            reply = await judge.request_reply(ask().prompt)
    assert reply.stop is stop
    assert reply.usage.input_tokens > 0


async def test_the_model_that_answered_is_recorded():
    with AnthropicServer() as server:
        server.misbehave("wrong_model:claude-haiku-5-5")
        async with judge_at(server) as judge:
            reply = await judge.request_reply(ask().prompt)
    assert reply.answered_by == "claude-haiku-5-5"


async def test_a_batch_is_handed_in_looked_at_and_collected_by_id():
    with AnthropicServer() as server:
        server.batch_looks = 1
        server.batch_faults = {"case-2": "errored", "case-3": "expired", "case-4": "refusal"}
        async with judge_at(server) as judge:
            batch = await judge.submit(tuple(ask(prompt_id=f"case-{n}").prompt for n in range(1, 5)))
            looks = [await judge.has_ended(batch), await judge.has_ended(batch)]
            found = await judge.collect(batch)
    assert looks == [False, True]
    first, refused = found["case-1"], found["case-4"]
    assert isinstance(first, ModelReply)
    assert first.usage.batch
    assert first.usage.cache_write_1h_tokens > 2048
    assert isinstance(refused, ModelReply)
    assert refused.stop is Stop.REFUSED
    assert {key: type(found[key]) for key in ("case-2", "case-3")} == dict.fromkeys(
        ("case-2", "case-3"), JudgeUnavailable
    )


async def test_a_batch_that_is_not_taken_is_an_error_like_any_other():
    with AnthropicServer() as server:
        server.always = "402"
        async with judge_at(server) as judge:
            with pytest.raises(GradingError, match="credit"):
                await judge.submit((ask().prompt,))


async def test_a_batch_can_be_cancelled_and_says_so():
    with AnthropicServer() as server:
        server.batch_looks = -1
        async with judge_at(server) as judge:
            batch = await judge.submit((ask().prompt,))
            assert not await judge.has_ended(batch)
            await judge.cancel(batch)
            assert await judge.has_ended(batch)
            found = await judge.collect(batch)
    assert "canceled" in str(found["case-1"])
