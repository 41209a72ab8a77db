"""Estimates from live traffic: counts by stratum, rates with intervals, the plan of a nightly run, and drift.

Drift follows a rate from one nightly run to the next: the state that is stored of it, and what the test says.
"""

from __future__ import annotations

from decimal import Decimal
from math import fsum
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.plural import plural
from monitors.records.base import Identifier, Probability, Record, UtcTime
from monitors.records.traffic import StratumCount

Share = Annotated[float, Field(ge=0, le=1e12)]


class DriftCount(Record):
    """One nightly run: ``failures`` of ``graded`` conversations. Fractions are counts scaled to equal weight.

    ``due_at`` is when it was due; it identifies and orders the runs.
    """

    due_at: UtcTime
    failures: Share
    graded: Share

    @model_validator(mode="after")
    def _check_failures(self) -> Self:
        if self.failures > self.graded:
            raise ValueError("failures are some of those graded")
        return self


class DriftAlarm(Record):
    """When a change was reported, and since which nightly run it held: the first with the new rate."""

    raised: UtcTime
    since: UtcTime


class DriftState(Record):
    """All that the test remembers. Stored after each nightly run and given back to the next.

    ``graded_by`` is the judge whose verdicts were counted: what another says is another rate. ``nightly_runs`` are
    the last ones, the oldest first; those before them are summed in ``older_failures`` and ``older_graded`` and
    numbered in ``older_runs``. ``log_evidence`` is the largest logarithm of the e-value since the test started
    anew, for ``reason``.
    """

    graded_by: str
    reason: str
    nightly_runs: tuple[DriftCount, ...] = ()
    older_failures: Share = 0.0
    older_graded: Share = 0.0
    older_runs: Annotated[int, Field(ge=0)] = 0
    log_evidence: float = 0.0
    alarm: DriftAlarm | None = None

    def add_run(self, count: DriftCount, *, window_runs: int) -> Self:
        """Add a nightly run, and sum up what is older than the last ``window_runs``."""
        runs = (*self.nightly_runs, count)
        older = runs[: max(0, len(runs) - window_runs)]
        return self.model_copy(
            update={
                "nightly_runs": runs[len(older) :],
                "older_failures": self.older_failures + fsum(count.failures for count in older),
                "older_graded": self.older_graded + fsum(count.graded for count in older),
                "older_runs": self.older_runs + len(older),
            }
        )

    def add_evidence(self, log_evidence: float, alarm: DriftAlarm | None) -> Self:
        """Set what the runs so far say, and the alarm that this raised."""
        return self.model_copy(update={"log_evidence": log_evidence, "alarm": alarm})

    def restart(self, nightly_runs: tuple[DriftCount, ...], reason: str) -> Self:
        """Start anew with these runs, for this reason, without an alarm; what was summed up stays."""
        return self.model_copy(
            update={"nightly_runs": nightly_runs, "reason": reason, "log_evidence": 0.0, "alarm": None}
        )


class DriftReading(Record):
    """What the test says after a nightly run.

    ``drifted`` stays true from the alarm until the test starts anew. ``e_value`` is the evidence against one rate
    for all runs, the largest so far: under one rate it reaches 20 or more with probability at most 1/20, however
    long it is followed. ``since`` is the first run of the new rate as far as can be known, without an alarm the
    likeliest. ``before`` and ``after`` are the rates on both sides with exact 95 % limits; they hold for that run
    given, so that with ``since`` itself estimated they say a little too much. ``graded_before`` and
    ``graded_after`` are how many conversations stand behind each.
    """

    drifted: bool
    e_value: Annotated[float, Field(ge=0)]
    since: UtcTime | None
    before: Probability
    before_low: Probability
    before_high: Probability
    after: Probability
    after_low: Probability
    after_high: Probability
    graded_before: Share
    graded_after: Share
    reason: str

    @property
    def worse(self) -> bool:
        """Whether the newer rate of failures is the higher one."""
        return self.after > self.before

    @property
    def text(self) -> str:
        """One line as people read it."""
        if not self.drifted or self.since is None:
            return f"no change found; {self.reason}"
        return (
            f"{'worse' if self.worse else 'better'} since {self.since:%Y-%m-%d}: {100 * self.before:.1f} % of "
            f"conversations failed before (95 % CI {100 * self.before_low:.1f} to {100 * self.before_high:.1f}), "
            f"{100 * self.after:.1f} % since ({100 * self.after_low:.1f} to {100 * self.after_high:.1f})"
        )


Count = Annotated[int, Field(ge=0)]


class GradedStratum(Record):
    """A stratum, graded: ``graded`` of the ``sampled`` conversations got a verdict, ``failures`` of them failed.

    What was sampled and is ungraded counts neither as right nor as wrong.
    """

    stratum: Identifier
    conversations: Count
    sampled: Count
    graded: Count
    failures: Count

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if not self.failures <= self.graded <= self.sampled <= self.conversations:
            raise ValueError(
                "failures are some of those graded, these of those sampled, these of all conversations"
            )
        return self


class RateEstimate(Record):
    """The share of a nightly run's conversations that failed, estimated from those that were sampled and graded.

    ``low`` and ``high`` are the interval at the ``confidence`` that was asked for. They take those graded as a
    random part of those sampled; ``low_if_ungraded_right`` and ``high_if_ungraded_failed`` assume nothing about the
    others and are the interval when nobody knows why some are ungraded. ``coverage`` is the share of the
    conversations that those graded speak for. ``judged`` says that a judge decided some of it, ``corrected`` that
    its errors were taken out: a judged rate that is not corrected is what the judge said, no more. ``method`` names
    in words how the interval was made.
    """

    rate: Probability
    low: Probability
    high: Probability
    low_if_ungraded_right: Probability
    high_if_ungraded_failed: Probability
    conversations: Count
    sampled: Count
    graded: Count
    coverage: Probability
    confidence: Annotated[float, Field(gt=0, lt=1)]
    corrected: bool
    judged: bool = False
    method: str

    def raise_to(self, floor: float) -> Self:
        """The same with nothing below ``floor``, the share that is known to have failed."""
        return self.model_copy(
            update={
                "rate": max(self.rate, floor),
                "low": max(self.low, floor),
                "high": max(self.high, floor),
                "low_if_ungraded_right": max(self.low_if_ungraded_right, floor),
                "high_if_ungraded_failed": max(self.high_if_ungraded_failed, floor),
            }
        )

    def count_graded(self, graded: int) -> Self:
        """Set how many of the conversations were graded."""
        return self.model_copy(update={"graded": graded})

    @property
    def is_counted(self) -> bool:
        """Whether more were graded than sampled: rules graded every conversation, and it is no estimate."""
        return self.graded > self.sampled or (self.low == self.high and self.graded == self.conversations)

    @property
    def is_uncorrected(self) -> bool:
        """Whether a judge decided, and its errors are still in the rate."""
        return self.judged and not self.corrected

    @property
    def width(self) -> float:
        """How wide the interval is, from 0 to 1."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """The rate as people read it: ``0.3 % (95 % CI 0.1 to 0.8)``."""
        interval = f"{100 * self.confidence:.0f} % CI {_format_percent(self.low)} to {_format_percent(self.high)}"
        return f"{self.without_interval} ({interval})"

    @property
    def without_interval(self) -> str:
        """The rate alone: ``0.3 %``."""
        return f"{_format_percent(self.rate)} %"


class RateUnknown(Record):
    """There is no rate, because too little of the nightly run was graded for it. ``why`` says how that came."""

    conversations: Count
    sampled: Count
    why: str


class RateForecast(Record):
    """Where the limits of a rate's interval will lie on average over all that may be sampled, *if* it is so.

    ``expected_rate`` is what earlier nightly runs found where it is ``learnt``, else no more than an assumption.
    """

    name: str
    expected_rate: Probability
    low: Probability
    high: Probability
    confidence: Annotated[float, Field(gt=0, lt=1)]
    corrected: bool = False
    learnt: bool = False

    @property
    def width(self) -> float:
        """How wide the interval will be on average, from 0 to 1."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """The same in words."""
        kind = f"{100 * self.confidence:.0f} % CI{', judge errors taken out' if self.corrected else ''}"
        why = "as earlier nights found" if self.learnt else "assumed: no earlier night was graded for it"
        return (
            f"{self.name}: if it is {_format_percent(self.expected_rate)} % ({why}), expect an interval of about "
            f"{_format_percent(self.low)} to {_format_percent(self.high)} % ({kind})"
        )


class NoForecast(Record):
    """A rate that will have no interval: it is counted in every conversation, or it will be unknown."""

    name: str
    why: str

    @property
    def text(self) -> str:
        """The same in words."""
        return f"{self.name}: {self.why}"


class StratumPlan(StratumCount):
    """What a nightly run will do with one stratum, and the rate of severity 3 that is expected in it."""

    expected_rate: Probability


class NightlyPlan(Record):
    """What a nightly run will cost and what it will buy, before any of it is spent.

    ``rates`` are those that the run will report, with the interval that the sample buys for each. ``judge_calls``
    and ``cost_usd`` are expected values. ``notes`` say what a reader would wonder about: a budget that minimums
    raised, strata sampled whole.
    """

    strata: tuple[StratumPlan, ...]
    judge_calls: Count
    cost_usd: Annotated[Decimal, Field(ge=0)]
    rates: tuple[RateForecast | NoForecast, ...]
    notes: tuple[str, ...] = ()

    @property
    def conversations(self) -> int:
        """How many there are."""
        return sum(stratum.conversations for stratum in self.strata)

    @property
    def sampled(self) -> int:
        """How many will be sampled."""
        return sum(stratum.sampled for stratum in self.strata)

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan in words, one a line, as ``lookout nightly --plan`` prints it."""
        strata = (
            f"  {part.stratum}: {part.sampled:,} of {part.conversations:,}, "
            f"severity 3 expected in {_format_percent(part.expected_rate)} %"
            for part in self.strata
        )
        return (
            f"{self.sampled:,} of {plural(self.conversations, 'conversation')} will be sampled",
            *strata,
            f"judge calls: {self.judge_calls:,}, about ${self.cost_usd:.2f}",
            *(part.text for part in self.rates),
            *self.notes,
        )


def _format_percent(share: float) -> str:
    """A share in percent: two decimals where one would read 0.0."""
    value = 100 * share
    return f"{value:.2f}" if 0 < value < _MIN_ONE_DECIMAL else f"{value:.1f}"


_MIN_ONE_DECIMAL = 0.1
