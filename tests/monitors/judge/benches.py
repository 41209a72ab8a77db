"""Builds a complete judge over local servers, and cases for it to judge."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from typing import Any

from monitors.judge.consensus import JudgeCase
from monitors.judge.judge import Account, FamilyPolicy, Judge, PanelMember
from monitors.judge.model import Usage
from monitors.judge.precheck import build_judge_case
from monitors.judge.settings import JudgeSettings
from monitors.records.cases import GoldCase
from tests.builders import exchange, gold_case
from tests.monitors.asking import GOLD, RIGHT, judge_at
from tests.servers.anthropic import AnthropicServer

RIVALS = FamilyPolicy(target="demo", family="gpt")
GOLDS = (
    GOLD,
    "Treatment at home is paid when the treating doctor advises it in writing.",
    "Dental treatment is excluded unless an accident makes it necessary.",
    "The grace period for the premium is thirty days.",
    "Ambulance charges are paid up to ₹2,000 for each stay in hospital.",
    "A newborn child is included from the ninetieth day.",
)


def known_cases() -> tuple[GoldCase, ...]:
    """Return gold cases from which canaries are made. A canary is a case whose correct verdict is known."""
    return tuple(gold_case(f"known-{n}", turns=(f"Question {n}?",), gold=gold) for n, gold in enumerate(GOLDS))


def fresh_nonces() -> Callable[[], str]:
    """Return a function that returns a new nonce at each call. The sequence is the same in each test."""
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"


def dollars(model: str, usage: Usage) -> Decimal:
    """Return a simple price in dollars for the tokens in ``usage``.

    An input token costs a millionth of a dollar, an output token five times as much, and a token from the cache
    a tenth. In a batch, everything costs half.
    """
    del model
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    whole = usage.input_tokens + written + 5 * usage.output_tokens
    return (Decimal(whole) + Decimal(usage.cache_read_tokens) / 10) / 1_000_000 / (2 if usage.batch else 1)


def to_judge(answer: str = RIGHT, case_id: str = "case-1", **changes: Any) -> JudgeCase:
    """Build the judge case of ``answer``, which is about cataract surgery."""
    case = gold_case(case_id, **({"turns": ("Is cataract covered?",), "gold": GOLD} | changes))
    return build_judge_case(case, exchange(case, answer))


@asynccontextmanager
async def judge_over(
    *servers: AnthropicServer, rivals: FamilyPolicy = RIVALS, account: Account | None = None, **settings: Any
) -> AsyncGenerator[Judge]:
    """Yield a judge with one model for each server. ``rivals`` excludes models of the target's model family."""
    chosen = JudgeSettings(**settings)
    paying = account or Account(dollars, limit_usd=chosen.budget_usd)
    async with AsyncExitStack() as stack:
        seats = [
            PanelMember(await stack.enter_async_context(judge_at(server)), account=paying, family_policy=rivals)
            for server in servers
        ]
        yield Judge(seats, chosen, nonce=fresh_nonces())
