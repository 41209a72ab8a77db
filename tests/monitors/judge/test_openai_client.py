"""Test judges of other model families with the OpenAI SDK against a local endpoint that fails as planned."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from monitors.errors import JudgeMisconfigured, JudgeUnavailable
from monitors.judge.model import BatchModel, Stop
from monitors.judge.openai_client import OpenAIJudge
from monitors.retry import RetryPolicy
from tests.monitors.asking import QUICK, RIGHT, WRONG, ask
from tests.servers.openai_chat import KEY, OpenAIServer

MODEL = "qwen3-32b"


@asynccontextmanager
async def judge_at(
    server: OpenAIServer, retry_policy: RetryPolicy = QUICK, key: str = KEY
) -> AsyncGenerator[OpenAIJudge]:
    async with OpenAIJudge(MODEL, api_key=key, base_url=f"{server.url}/v1", retry_policy=retry_policy) as judge:
        yield judge


async def test_a_verdict_comes_with_its_model_and_its_cost():
    with OpenAIServer() as server:
        async with judge_at(server) as judge:
            right = await judge.request_reply(ask(RIGHT).prompt)
            wrong = await judge.request_reply(ask(WRONG).prompt)
    assert json.loads(right.text)["factual_match"] is True
    assert json.loads(wrong.text)["factual_match"] is False
    assert (right.stop, right.answered_by) == (Stop.DONE, MODEL)
    assert right.usage.cache_read_tokens > 0
    assert right.usage.input_tokens > 0
    assert server.asked[0]["response_format"]["json_schema"]["strict"] is True
    assert server.asked[0]["max_tokens"] == 1024
    assert not isinstance(judge, BatchModel)


@pytest.mark.parametrize("fault", ["429:0", "500", "529", "408", "html", "reset", "no_choice"])
async def test_temporary_errors_are_retried(fault):
    with OpenAIServer() as server:
        server.misbehave(fault)
        async with judge_at(server) as judge:
            assert (await judge.request_reply(ask().prompt)).stop is Stop.DONE
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("fault", "stop"),
    [("refusal", Stop.REFUSED), ("content_filter", Stop.REFUSED), ("length", Stop.CUT), ("no_usage", Stop.DONE)],
)
async def test_the_stop_reason_is_stored(fault, stop):
    with OpenAIServer() as server:
        server.misbehave(fault)
        async with judge_at(server) as judge:
            reply = await judge.request_reply(ask().prompt)
    assert reply.stop is stop
    assert reply.usage.input_tokens > 500, "a server that counts nothing still costs something"


@pytest.mark.parametrize("fault", ["no_usage", "usage_text", "usage_negative", "usage_huge", "usage_cached_text"])
async def test_a_count_that_cannot_be_true_is_estimated_and_the_verdict_stands(fault):
    with OpenAIServer() as server:
        server.misbehave(fault)
        async with judge_at(server) as judge:
            reply = await judge.request_reply(ask().prompt)
        assert len(server.asked) == 1
    assert (reply.stop, reply.usage.estimated) == (Stop.DONE, True)
    assert 500 < reply.usage.input_tokens < 5_000
    assert 10 < reply.usage.output_tokens < 1_000


async def test_a_wrong_key_is_reported_without_the_key():
    with OpenAIServer() as server:
        async with judge_at(server, key="sk-another") as judge:
            with pytest.raises(JudgeMisconfigured, match="the key is not valid") as caught:
                await judge.request_reply(ask().prompt)
        address = server.url
    assert "sk-another" not in str(caught.value)
    assert address not in str(caught.value)


async def test_an_endpoint_that_does_not_answer_has_a_deadline():
    with OpenAIServer() as server:
        server.always = "hang"
        async with judge_at(server, RetryPolicy(deadline_s=30, try_s=0.3, tries=2, most_pause_s=1)) as judge:
            with pytest.raises(JudgeUnavailable, match="did not answer in time"):
                await judge.request_reply(ask().prompt)


async def test_another_model_in_the_reply_is_reported():
    with OpenAIServer() as server:
        server.misbehave("wrong_model:llama-4")
        async with judge_at(server) as judge:
            assert (await judge.request_reply(ask().prompt)).answered_by == "llama-4"


def test_without_the_extra_the_error_says_how_to_get_it():
    """In a process without the OpenAI package, the error says how to install the extra."""
    program = (
        "import sys, asyncio; sys.modules['openai'] = None\n"
        "from monitors.judge.openai_client import OpenAIJudge\n"
        "from monitors.retry import RetryPolicy as Patience\n"
        "from monitors.errors import ConfigError\n"
        "try:\n    asyncio.run(OpenAIJudge('m', api_key='k', retry_policy=Patience()).__aenter__())\n"
        "except ConfigError as error:\n    print(error)\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert "pip install 'lookout-monitor[openai]'" in done.stdout
