"""What a night will cost before it is spent, and how many conversations a wished interval needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from math import ceil
from typing import NamedTuple

from monitors.agreement import Confusion
from monitors.errors import ConfigError
from monitors.records.estimates import NightPlan, StratumPlan
from monitors.records.traffic import StratumCount
from monitors.sources.expected_interval import ExpectedStratum, expected_interval
from monitors.sources.expected_rates import DEFAULT_PRIOR, ExpectedRate
from monitors.sources.sampling import numbers
from monitors.sources.sampling_settings import SamplingSettings

_CENT = Decimal("0.01")


class Grading(NamedTuple):
    """What grading one conversation takes, and how well it tells.

    ``calls_per_conversation`` counts what of the conversations reaches a judge, with its seats, turns and canaries;
    0 without a judge. ``told_share`` is how many of those drawn will have a verdict. ``confusion`` is the judge's
    record against people, for the correction that the night's estimate will make.
    """

    calls_per_conversation: float
    usd_per_call: Decimal
    confusion: Confusion | None = None
    told_share: float = 1.0
    confidence: float = 0.95


def plan_night(
    counts: Sequence[StratumCount],
    expected: Mapping[str, ExpectedRate],
    grading: Grading,
    settings: SamplingSettings,
) -> NightPlan:
    """The plan of the draw that ``counts`` come from. Strata that ``expected`` lacks are taken at the prior.

    ``ConfigError`` when there is no conversation: a night of nothing needs no plan.
    """
    if not any(one.drawn for one in counts):
        raise ConfigError("there is no conversation to plan for; see whether the source has any of that night")
    rates = {one.stratum: expected.get(one.stratum, DEFAULT_PRIOR) for one in counts}
    found, corrects = expected_interval(
        [ExpectedStratum(one.conversations, _told(one.drawn, grading), rates[one.stratum]) for one in counts],
        confusion=grading.confusion,
        confidence=grading.confidence,
    )
    calls = ceil(sum(one.drawn for one in counts) * grading.calls_per_conversation)
    return NightPlan(
        strata=tuple(StratumPlan(**one.model_dump(), expected_rate=rates[one.stratum].rate) for one in counts),
        judge_calls=calls,
        cost_usd=(calls * grading.usd_per_call).quantize(_CENT, ROUND_HALF_UP),
        expected_rate=found.value,
        expected_low=found.low,
        expected_high=found.high,
        confidence=grading.confidence,
        corrected=corrects,
        notes=_notes(counts, settings),
    )


def plan_for_width(
    width: float,
    sizes: Mapping[str, int],
    expected: Mapping[str, ExpectedRate],
    grading: Grading,
    settings: SamplingSettings,
) -> NightPlan:
    """The plan of the smallest draw by number whose interval will be at most ``width`` wide on average.

    ``sizes`` are the strata's conversations. Where not even drawing all buys it (a judge's errors stay), the plan
    is of drawing all, and its ``expected_width`` says so.
    """
    fewest, most = 1, sum(sizes.values())
    while fewest < most:
        middle = (fewest + most) // 2
        narrow = _planned(middle, sizes, expected, grading, settings).expected_width <= width
        fewest, most = (fewest, middle) if narrow else (middle + 1, most)
    return _planned(most, sizes, expected, grading, settings)


def _planned(
    number: int,
    sizes: Mapping[str, int],
    expected: Mapping[str, ExpectedRate],
    grading: Grading,
    settings: SamplingSettings,
) -> NightPlan:
    by_number = settings.model_copy(update={"number": number, "rate": None})
    drawn = numbers(sizes, by_number, expected)
    counts = [StratumCount(stratum=name, conversations=sizes[name], drawn=count) for name, count in drawn.items()]
    return plan_night(counts, expected, grading, by_number)


def _told(drawn: int, grading: Grading) -> int:
    """At least one of those drawn: that none will be told is not what a plan is for."""
    return min(drawn, max(1, round(drawn * grading.told_share)))


def _notes(counts: Sequence[StratumCount], settings: SamplingSettings) -> tuple[str, ...]:
    drawn, budget = sum(one.drawn for one in counts), settings.budget
    whole = [one.stratum for one in counts if one.drawn == one.conversations]
    missed = [
        str(sign)
        for sign in settings.certainty
        if any(one.stratum.startswith(str(sign)) and one.drawn < one.conversations for one in counts)
    ]
    notes = [
        f"drawn whole, so without sampling error: {', '.join(whole)}" if whole else "",
        f"wanted whole but beyond the number: {', '.join(missed)}" if missed else "",
        f"{drawn} instead of {budget}: every stratum gives at least {settings.minimum_per_stratum}"
        if budget is not None and drawn > budget
        else "",
    ]
    return tuple(note for note in notes if note)
