"""The doctor's look at the judge: of another family, with a key, and able to tell right from wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deployments.doctor_health import Check, Health, Surroundings
from monitors.config import Config, target_record
from monitors.errors import ConfigError

if TYPE_CHECKING:
    from flows.judge_check import JudgeOutcome
    from flows.judge_wiring import JudgePlan


def judge(around: Surroundings) -> list[Check]:
    """Its family against each target's, its key; two known answers graded for real, unless that is not wanted."""
    config = around.config
    if config is None:
        return []
    if config.judge is None:
        found = "none is configured: what the plain graders leave open stays open"
        return [Check(name="judge", health=Health.GOOD, found=found)]
    return list(_checks(around, config))


def _checks(around: Surroundings, config: Config) -> Iterator[Check]:
    from flows.judge_wiring import plan_judge  # anthropic, 4 s

    plans: list[JudgePlan] = []
    for name, target in config.targets.items():
        try:
            plans.append(plan_judge(config.judge, target_record(name, target), around.environment))
        except ConfigError as error:
            to_do = "mend what is named: a judge that may be of the application's family is refused by every run"
            yield Check(name=f"judge of {name}", health=Health.BROKEN, found=str(error), to_do=to_do)
    if plans:
        yield from _at_work(around, plans[0])


def _at_work(around: Surroundings, plan: JudgePlan) -> Iterator[Check]:
    models = ", ".join(plan.models)
    if plan.why_off:
        to_do = "set it where runs are started; until then what the plain graders leave open stays open"
        yield Check(name="judge", health=Health.DOUBTFUL, found=f"{models}: off, as {plan.why_off}", to_do=to_do)
    elif not around.ask_judges:
        yield Check(name="judge", health=Health.GOOD, found=f"{models}: has its key; not tried")
    else:
        from flows.judge_check import try_judges  # as above

        for outcome in asyncio.run(try_judges(plan, around.environment)):
            yield _tried(outcome)


def _tried(one: JudgeOutcome) -> Check:
    name = f"judge {one.model}"
    found = f"{one.detail}, in {one.took_s:.1f} s, for ${one.cost_usd:.4f}"
    if one.told_apart:
        return Check(name=name, health=Health.GOOD, found=found)
    if one.told_apart is None:
        to_do = "see whether its key, its name and judge.models.base_url are right, and what its provider says"
        return Check(name=name, health=Health.BROKEN, found=found, to_do=to_do)
    to_do = "name another model: a judge that misses known answers has all its grades void"
    return Check(name=name, health=Health.BROKEN, found=found, to_do=to_do)
