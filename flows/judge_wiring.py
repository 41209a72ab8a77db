"""The judge's part of the composition root: settings and keys become judges, or a reason why there is none.

Only here the providers' clients are named. The environment is handed in, and a key goes straight into its client.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, assert_never

from monitors.errors import ConfigError
from monitors.judge import anthropic_client, openai_client
from monitors.judge.account import Account
from monitors.judge.judge import Judge
from monitors.judge.prices import price_of
from monitors.judge.seat import Rivals, Seat
from monitors.judge.settings import JudgeModelSettings, JudgeSettings, Provider
from monitors.judge.verdict import SCHEMA
from monitors.records.base import Record
from monitors.records.targets import Target

NOT_CONFIGURED = "no [judge] is configured"


class JudgePlan(Record):
    """Whether a run has a judge. ``why_off`` is empty when it has one. Holds no key."""

    settings: JudgeSettings | None = None
    rivals: Rivals
    why_off: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are asked, in their order."""
        return tuple(one.model for one in self.settings.models) if self.settings else ()


def plan_judge(settings: JudgeSettings | None, target: Target, environment: Mapping[str, str]) -> JudgePlan:
    """Whether ``target`` can be judged. `ConfigError` for a judge of its family, or one without a price.

    Families are looked at even without a key: a wrong configuration is told before the day when the key comes.
    """
    if settings is None:
        return JudgePlan(rivals=Rivals(target=target.name), why_off=NOT_CONFIGURED)
    rivals = Rivals(target=f"target {target.name!r}", family=target.model_family, additions=dict(settings.families))
    for one in settings.models:
        rivals.refuse(one.model)
        price_of(one.model, 0, settings.prices)
    missing = sorted({one.key_from for one in settings.models if not environment.get(one.key_from)})
    why = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set" if missing else ""
    return JudgePlan(settings=settings, rivals=rivals, why_off=why)


@asynccontextmanager
async def open_judge(
    plan: JudgePlan, environment: Mapping[str, str], account: Account, nonce: Callable[[], str]
) -> AsyncGenerator[Judge]:
    """The judge of a plan that has one, with its connections open."""
    settings = plan.settings
    if settings is None or plan.why_off:
        raise AssertionError("only a plan with a judge is opened")
    async with AsyncExitStack() as stack:
        seats: list[Seat] = []
        for one in settings.models:
            client = client_of(one, settings, environment)
            seats.append(Seat(await stack.enter_async_context(client), account=account, rivals=plan.rivals))
        yield Judge(seats, settings, nonce=nonce)


def client_of(
    one: JudgeModelSettings,
    settings: JudgeSettings,
    environment: Mapping[str, str],
    schema: Mapping[str, Any] = SCHEMA,
) -> anthropic_client.AnthropicJudge | openai_client.OpenAIJudge:
    """The client of one configured model, not entered yet. `ConfigError` when its key is not set.

    ``schema`` is what its replies must look like.
    """
    key = environment.get(one.key_from)
    if not key:
        raise ConfigError(f"{one.key_from} is not set: the model {one.model} has no key")
    match one.provider:
        case Provider.ANTHROPIC:
            return anthropic_client.AnthropicJudge(
                one.model,
                api_key=key,
                base_url=one.base_url or anthropic_client.ADDRESS,
                patience=settings.patience,
                effort=settings.effort,
                cache_ttl=settings.cache_ttl,
                schema=schema,
            )
        case Provider.OPENAI:
            return openai_client.OpenAIJudge(
                one.model,
                api_key=key,
                base_url=one.base_url or openai_client.ADDRESS,
                patience=settings.patience,
                schema=schema,
            )
        case _:
            assert_never(one.provider)
