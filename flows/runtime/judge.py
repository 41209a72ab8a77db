"""Decides from settings and keys whether there is a judge, and opens the judge."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import assert_never

from monitors.config.file import Config
from monitors.errors import ConfigError
from monitors.judge import anthropic_client, openai_client
from monitors.judge.judge import Account, FamilyPolicy, Judge, PanelMember
from monitors.judge.settings import JudgeModelSettings, JudgeProvider, JudgeSettings
from monitors.records.base import Record
from monitors.records.targets import Target

NOT_CONFIGURED = "no [judge] is configured"


class JudgePlan(Record):
    """The settings of a run's judge, without keys. If the judge is off, ``why_off`` is the reason."""

    settings: JudgeSettings | None = None
    family_policy: FamilyPolicy
    why_off: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the judge's models, in the order in which they are asked."""
        return tuple(model.model for model in self.settings.models) if self.settings else ()


def build_judge_plan(settings: JudgeSettings | None, target: Target, environment: Mapping[str, str]) -> JudgePlan:
    """Build the judge plan for ``target``. If a key is missing, the judge is off.

    Raises `ConfigError` if a model of the judge has the same family as the target's model, even without a key.
    """
    if settings is None:
        return JudgePlan(family_policy=FamilyPolicy(target=target.name), why_off=NOT_CONFIGURED)
    family_policy = FamilyPolicy(
        target=f"target {target.name!r}", family=target.model_family, additions=dict(settings.families)
    )
    for model in settings.models:
        family_policy.require_judge_of_other_family(model.model)
    missing = sorted(
        {
            model.key_variable_or_default
            for model in settings.models
            if not environment.get(model.key_variable_or_default)
        }
    )
    why_off = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set" if missing else ""
    return JudgePlan(settings=settings, family_policy=family_policy, why_off=why_off)


@asynccontextmanager
async def open_judge(
    plan: JudgePlan, environment: Mapping[str, str], account: Account, nonce: Callable[[], str]
) -> AsyncGenerator[Judge]:
    """Open the connections to the judge's models, and yield the judge."""
    settings = plan.settings
    if settings is None or plan.why_off:
        raise AssertionError("internal error: only a plan with a judge can be opened")
    async with AsyncExitStack() as stack:
        members: list[PanelMember] = []
        for model in settings.models:
            client = build_judge_client(model, settings, environment)
            members.append(
                PanelMember(
                    await stack.enter_async_context(client), account=account, family_policy=plan.family_policy
                )
            )
        yield Judge(members, settings, nonce=nonce)


def build_judge_client(
    model: JudgeModelSettings,
    settings: JudgeSettings,
    environment: Mapping[str, str],
) -> anthropic_client.AnthropicJudge | openai_client.OpenAIJudge:
    """Build the client of one configured model. Raises `ConfigError` if the model's key is not set."""
    key = environment.get(model.key_variable_or_default)
    if not key:
        raise ConfigError(
            f"{model.key_variable_or_default} is not set; set it to the key of the model {model.model}"
        )
    match model.provider:
        case JudgeProvider.ANTHROPIC:
            return anthropic_client.AnthropicJudge(
                model.model,
                api_key=key,
                base_url=model.base_url or anthropic_client.API_ADDRESS,
                retry_policy=settings.retry_policy,
                effort=settings.effort,
                cache_ttl=settings.cache_ttl,
            )
        case JudgeProvider.OPENAI:
            return openai_client.OpenAIJudge(
                model.model,
                api_key=key,
                base_url=model.base_url or openai_client.API_ADDRESS,
                retry_policy=settings.retry_policy,
            )
        case _:
            assert_never(model.provider)


def refuse_rating_without_judge(config: Config, judge: JudgePlan) -> None:
    """Raise `ConfigError` if the gate requires a rating, but the judge that gives the rating has no key."""
    if config.gate.rating_needed and judge.settings is not None and judge.why_off:
        raise ConfigError(
            f"the gate requires an average rating of {config.gate.min_rubric:g} (--min-score or "
            f"gate.rating_needed), but only a judge gives ratings, and the judge is off: {judge.why_off}. Set the "
            "key, or remove the requirement"
        )
