"""What judging a night will take: by what earlier nights took, else by what a prompt of this size costs."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from flows.judge_wiring import JudgePlan
from monitors.judge.canaries import canaries_for
from monitors.judge.model import BYTES_PER_TOKEN, Usage
from monitors.judge.prices import cost_usd
from monitors.judge.prompt import Task, instructions
from monitors.judge.settings import JudgeSettings
from monitors.records.nights import NightReport
from monitors.records.traffic import Conversation, Turn
from monitors.sources.night_plan import Grading

VERDICT_TOKENS: Final = 300
"""A verdict with two quotes and a reason, generously."""
FEWEST_CALLS: Final = 20
"""Of earlier nights, before their price says more than a reckoning."""


def expected_grading(plan: JudgePlan, drawn: Sequence[Conversation], earlier: Sequence[NightReport]) -> Grading:
    """Calls for one drawn conversation, and dollars for one call; none without a judge or passages to judge by."""
    settings = plan.settings
    askable = [turn for one in drawn for turn in one.turns if turn.context and turn.reply_text.strip()]
    if settings is None or plan.why_off or not askable:
        return Grading(calls_per_conversation=0.0, usd_per_call=Decimal(0))
    canaries = canaries_for(len(askable), batch_size=settings.batch_size, canaries=settings.canaries)
    ride = 1 + canaries / min(len(askable), settings.batch_size)
    return Grading(
        calls_per_conversation=len(askable) / len(drawn) * ride,
        usd_per_call=_paid(earlier) or _reckoned(settings, askable),
    )


def _paid(earlier: Sequence[NightReport]) -> Decimal | None:
    """What a call cost in earlier nights, on average."""
    calls = sum(one.judging.calls for one in earlier)
    spent = sum((one.judging.cost_usd for one in earlier), Decimal(0))
    return spent / calls if calls >= FEWEST_CALLS else None


def _reckoned(settings: JudgeSettings, turns: Sequence[Turn]) -> Decimal:
    told = len(instructions(Task.GROUNDED).text.encode())
    bytes_each = told + sum(map(_bytes, turns)) / len(turns)
    usage = Usage(
        input_tokens=round(bytes_each / BYTES_PER_TOKEN),
        output_tokens=VERDICT_TOKENS,
        batch=settings.nightly_batches,
    )
    return cost_usd(usage, settings.models[0].model, settings.prices)


def _bytes(turn: Turn) -> int:
    return sum(len(text.encode()) for text in (turn.user_text, turn.reply_text, *turn.context))
