"""What a night of live traffic tells, and what it will cost: counts by stratum, rates with intervals, the plan."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Probability, Record
from monitors.records.traffic import StratumCount

Count = Annotated[int, Field(ge=0)]


class StratumTold(Record):
    """A stratum, graded: ``told`` of the ``drawn`` conversations got a verdict, ``failures`` of them failed.

    What was drawn and not told, nobody could tell: it counts neither as right nor as wrong.
    """

    stratum: Identifier
    conversations: Count
    drawn: Count
    told: Count
    failures: Count

    @model_validator(mode="after")
    def _each_within_the_one_before(self) -> Self:
        if not self.failures <= self.told <= self.drawn <= self.conversations:
            raise ValueError("failures are some of those told, these of those drawn, these of all conversations")
        return self


class RateEstimate(Record):
    """The share of a night's conversations that failed, estimated from those that were drawn and told.

    ``low`` and ``high`` are the interval at the ``confidence`` that was asked for. They take those told as a random
    part of those drawn; ``low_if_untold_right`` and ``high_if_untold_failed`` assume nothing about the others and
    are the interval when nobody knows why some could not be told. ``coverage`` is the share of the conversations
    that those told speak for. ``corrected`` says that the judge's errors were taken out. ``method`` names in words
    how the interval was made.
    """

    rate: Probability
    low: Probability
    high: Probability
    low_if_untold_right: Probability
    high_if_untold_failed: Probability
    conversations: Count
    drawn: Count
    told: Count
    coverage: Probability
    confidence: Annotated[float, Field(gt=0, lt=1)]
    corrected: bool
    method: str

    @property
    def width(self) -> float:
        """How wide the interval is, from 0 to 1."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """The rate as people read it: ``0.3 % [0.1, 0.8]``."""
        return f"{_percent(self.rate)} % [{_percent(self.low)}, {_percent(self.high)}]"


class RateUnknown(Record):
    """There is no rate, because no conversation of the night was told. ``why`` says how that came."""

    conversations: Count
    drawn: Count
    why: str


class StratumPlan(StratumCount):
    """What a night will do with one stratum, and the rate of failures that is expected in it."""

    expected_rate: Probability


class NightPlan(Record):
    """What a night will cost and what it will buy, before any of it is spent.

    ``expected_rate`` is the rate the plan reckons with; ``expected_low`` and ``expected_high`` are where the limits
    of the interval will lie on average, over all that may be drawn. ``judge_calls`` and ``cost_usd`` are expected
    values. ``notes`` say what a reader would wonder about: a budget that minimums raised, strata drawn whole.
    """

    strata: tuple[StratumPlan, ...]
    judge_calls: Count
    cost_usd: Annotated[Decimal, Field(ge=0)]
    expected_rate: Probability
    expected_low: Probability
    expected_high: Probability
    confidence: Annotated[float, Field(gt=0, lt=1)]
    corrected: bool
    notes: tuple[str, ...] = ()

    @property
    def conversations(self) -> int:
        """How many there are."""
        return sum(stratum.conversations for stratum in self.strata)

    @property
    def drawn(self) -> int:
        """How many will be drawn."""
        return sum(stratum.drawn for stratum in self.strata)

    @property
    def expected_width(self) -> float:
        """How wide the interval will be on average, from 0 to 1."""
        return self.expected_high - self.expected_low

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan in words, one a line, as ``lookout nightly --plan`` prints it."""
        strata = (
            f"  {one.stratum}: {one.drawn:,} of {one.conversations:,}, expected {_percent(one.expected_rate)} %"
            for one in self.strata
        )
        kind = f"{100 * self.confidence:.0f} %{', judge errors taken out' if self.corrected else ''}"
        interval = f"[{_percent(self.expected_low)}, {_percent(self.expected_high)}] ({kind})"
        return (
            f"{self.drawn:,} of {self.conversations:,} conversations will be drawn",
            *strata,
            f"judge calls: {self.judge_calls:,}, about ${self.cost_usd:.2f}",
            f"severity-3 rate: if it is {_percent(self.expected_rate)} %, an interval of about {interval}",
            *self.notes,
        )


def _percent(share: float) -> str:
    """A share in percent: two decimals where one would read 0.0."""
    value = 100 * share
    return f"{value:.2f}" if 0 < value < _SMALL else f"{value:.1f}"


_SMALL = 0.1
