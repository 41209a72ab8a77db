"""One question to a model that is no verdict: within the budget, paid for, and read only when it is whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from flows.judge_wiring import client_of
from monitors.errors import ConfigError, JudgeRefused, VerdictUnreadable
from monitors.judge.account import Account
from monitors.judge.model import JudgeModel, JudgePrompt, Reply, Stop
from monitors.judge.prices import price_list, price_of
from monitors.judge.ruling import Cost
from monitors.judge.settings import JudgeModelSettings, JudgeSettings


@dataclass(frozen=True)
class Asker:
    """A model with the account that pays for it."""

    model: JudgeModel
    account: Account

    async def ask(self, prompt: JudgePrompt) -> Reply:
        """A whole reply, paid for.

        `BudgetReached` before money is spent that is not there; `JudgeUnavailable` and `JudgeMisconfigured` as they
        come; `JudgeRefused` and `VerdictUnreadable` for half a reply.
        """
        with self.account.reserved(self.model.name, prompt):
            reply = await self.model.verdict(prompt)
            self.account.paid(self.model.name, reply.usage)
        if reply.stop is Stop.REFUSED:
            raise JudgeRefused(f"{reply.answered_by} declined to write this")
        if reply.stop is Stop.CUT:
            raise VerdictUnreadable(f"{reply.answered_by} was cut off before it was done; ask for fewer at once")
        return reply

    @property
    def cost(self) -> Cost:
        """What has been spent."""
        return self.account.total


def chosen_model(settings: JudgeSettings | None, name: str | None) -> tuple[JudgeModelSettings, JudgeSettings]:
    """The configured model of this name, else the first. `ConfigError` says what to add where there is none.

    A writer of drafts may be of any family: a person reads every line, and nothing is graded here.
    """
    if settings is None:
        raise ConfigError(
            "no model is configured; add to lookout.toml: [[judge.models]] with provider and model, "
            "and put its key into the environment"
        )
    known = {one.model: one for one in settings.models}
    if name is not None and name not in known:
        raise ConfigError(f"the model {name!r} is not configured; [[judge.models]] has {', '.join(known)}")
    chosen = known[name] if name is not None else settings.models[0]
    price_of(chosen.model, 0, settings.prices)
    return chosen, settings


@asynccontextmanager
async def open_asker(
    chosen: JudgeModelSettings, settings: JudgeSettings, environment: Mapping[str, str], schema: Mapping[str, Any]
) -> AsyncGenerator[Asker]:
    """The model with its connection open; replies look like ``schema``. `ConfigError` without its key."""
    account = Account(price_list(settings.prices), limit_usd=settings.budget_usd)
    async with client_of(chosen, settings, environment, schema) as model:
        yield Asker(model, account)
