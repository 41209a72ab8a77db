"""Builds prompts, retry policies and judges for the tests in this folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from monitors.judge.anthropic_client import AnthropicJudge
from monitors.judge.prompt import RenderedPrompt, Subject, build_judge_prompt
from monitors.retry import RetryPolicy
from tests.servers.anthropic import KEY, AnthropicServer

NONCE = "0123456789abcdef"
MODEL = "claude-sonnet-5-5"
QUICK = RetryPolicy(deadline_s=60, try_s=30, tries=3, most_pause_s=5)
GOLD = "Cataract surgery is covered after two years of waiting, up to ₹40,000 per eye."
RIGHT = "Cataract surgery is covered once two years of waiting are over, up to ₹40,000 per eye."
WRONG = "Cataract surgery is covered after one year of waiting, up to ₹25,000 per eye."


def ask(answer: str = RIGHT, prompt_id: str = "case-1", **changes: Any) -> RenderedPrompt:
    """Build a prompt about an answer on cataract surgery."""
    subject = Subject(**({"turns": ("Is cataract covered?",), "expected": (GOLD,), "answer": answer} | changes))
    return build_judge_prompt(subject, prompt_id=prompt_id, nonce=NONCE)


@asynccontextmanager
async def judge_at(
    server: AnthropicServer, retry_policy: RetryPolicy = QUICK, **changes: Any
) -> AsyncGenerator[AnthropicJudge]:
    """Yield a judge whose provider is the local server."""
    options: dict[str, Any] = {"api_key": KEY, "base_url": server.url, "retry_policy": retry_policy}
    async with AnthropicJudge(MODEL, **(options | changes)) as judge:
        yield judge


class Pauses:
    """A replacement for sleeping. It records the duration of each requested pause, and lets other tasks run."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        """Record the pause."""
        self.asked.append(seconds)
        await asyncio.sleep(0)
