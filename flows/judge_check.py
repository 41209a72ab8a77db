"""Each judge grades a right and a wrong answer that are known, so that the first run is not the test."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from time import monotonic
from typing import Final

from flows.judge_wiring import JudgePlan, open_judge
from flows.keys import nonce
from monitors.judge.account import Account
from monitors.judge.canaries import Canary, make_canaries
from monitors.judge.judge import canary_case
from monitors.judge.prices import price_list
from monitors.judge.ruling import Cost, Ruled, Ruling
from monitors.judge.settings import JudgeModelSettings, JudgeSettings
from monitors.records.base import Language, Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance

KNOWN: Final = GoldCase(
    id="doctor-canary",
    turns=("Until when can an order be sent back, and who pays for it?",),
    gold="An order can be sent back within 14 days after it arrived, and the shop pays for sending it.",
    severity=Severity.ANNOYING,
    language=Language.ENGLISH,
    type="canary",
    provenance=Provenance(
        pipeline=Pipeline.TEMPLATE, document="made for the doctor", reviewed_at=datetime(2026, 11, 22, tzinfo=UTC)
    ),
)
"""No application's: every judge can compare these sentences without knowing anything."""


class JudgeOutcome(Record):
    """What one judging model made of the two.

    ``told_apart`` is ``None`` where it gave no verdict; ``detail`` says why. ``cost_usd`` is what its provider
    charges for both, ``took_s`` how long both took.
    """

    model: str
    told_apart: bool | None
    detail: str
    cost_usd: Decimal
    took_s: float


async def try_judges(plan: JudgePlan, environment: Mapping[str, str]) -> tuple[JudgeOutcome, ...]:
    """Every model of a plan that has its keys, one after the other. Never raises for a judge that does not work."""
    settings = plan.settings
    if settings is None or plan.why_off:
        return ()
    return tuple([await _try(plan, settings, one, environment) for one in settings.models])


async def _try(
    plan: JudgePlan, settings: JudgeSettings, one: JudgeModelSettings, environment: Mapping[str, str]
) -> JudgeOutcome:
    account = Account(price_list(settings.prices), limit_usd=settings.budget_usd)
    alone = plan.model_copy(update={"settings": settings.model_copy(update={"models": (one,)})})
    known = make_canaries([KNOWN], count=2, seed=nonce())
    async with open_judge(alone, environment, account, nonce) as judge:
        began = monotonic()
        group = await judge.group([canary_case(canary) for canary in known], ())
        took_s = monotonic() - began
    return _outcome(one.model, known, group.rulings, account.total, took_s)


def _outcome(
    model: str, known: tuple[Canary, ...], rulings: tuple[Ruling, ...], cost: Cost, took_s: float
) -> JudgeOutcome:
    said = dict(zip(known, rulings, strict=True))
    unruled = [ruling.reason for ruling in rulings if not isinstance(ruling, Ruled)]
    missed = [
        canary
        for canary, ruling in said.items()
        if isinstance(ruling, Ruled) and ruling.decision.passed is not canary.right
    ]
    words = "; ".join("it failed the right answer" if one.right else "it passed the wrong answer" for one in missed)
    return JudgeOutcome(
        model=model,
        told_apart=False if missed else None if unruled else True,
        detail=words or (unruled[0] if unruled else "it told a right answer from a wrong one"),
        cost_usd=cost.usd,
        took_s=took_s,
    )
