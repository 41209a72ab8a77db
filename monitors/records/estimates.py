"""Estimates from live traffic: rates with intervals, the plan of a nightly run, and drift.

Drift is a lasting change of a rate from one night to the next.
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
    """The number of failed and of graded conversations in one nightly run.

    The numbers may be fractions, because conversations are weighted. ``due_at`` is the time for which the run
    was scheduled. This time identifies the run.
    """

    due_at: UtcTime
    failures: Share
    graded: Share

    @model_validator(mode="after")
    def _require_failures_within_graded(self) -> Self:
        if self.failures > self.graded:
            raise ValueError("failures must not be more than the graded conversations")
        return self


class DriftAlarm(Record):
    """A change of a rate that the drift test detected.

    ``raised`` is the time at which Lookout reported the change. ``since`` is the time of the nightly run with which
    the new rate began.
    """

    raised: UtcTime
    since: UtcTime


class DriftState(Record):
    """The state of the drift test. Each nightly run stores the state, and the next run continues with it.

    - ``graded_by`` names the graders and the judge. Rates by different judges are not comparable.
    - ``reason`` is the reason why the test started or started again.
    - ``nightly_runs`` contains the counts of the last runs, oldest first. The fields ``older_…`` contain the sums
      of the older runs.
    - ``log_evidence`` is the natural logarithm of the evidence for a change since the test started.
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
        """Add the counts of a nightly run.

        The counts of the last ``window_runs`` runs stay separate. Older counts are added to the sums.
        """
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

    def with_evidence(self, log_evidence: float, alarm: DriftAlarm | None) -> Self:
        """Return a copy of the state with the evidence from all runs so far.

        ``alarm`` is the alarm that this evidence raised, or ``None``.
        """
        return self.model_copy(update={"log_evidence": log_evidence, "alarm": alarm})

    def restart(self, nightly_runs: tuple[DriftCount, ...], reason: str) -> Self:
        """Start the test again with ``nightly_runs`` and without an alarm. ``reason`` is why the test starts again.

        The sums of older runs do not change.
        """
        return self.model_copy(
            update={"nightly_runs": nightly_runs, "reason": reason, "log_evidence": 0.0, "alarm": None}
        )


class DriftReading(Record):
    """The result of the drift test after a nightly run.

    - ``drifted`` is true from the alarm until the test starts again.
    - ``e_value`` is the evidence against a constant rate. A larger value is stronger evidence: if the rate is
      constant, the value reaches 20 with a probability of at most 1/20.
    - ``since`` is the time of the run with which the new rate probably began.
    - ``before`` is the rate before that run, and ``after`` is the rate since then, both with 95 % limits.
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
    def is_worse(self) -> bool:
        """Return whether the new failure rate is higher than the old rate."""
        return self.after > self.before

    @property
    def text(self) -> str:
        """Return the result of the drift test as one line."""
        if not self.drifted or self.since is None:
            return f"no change found; {self.reason}"
        return (
            f"{'worse' if self.is_worse else 'better'} since {self.since:%Y-%m-%d}: {100 * self.before:.1f} % of "
            f"conversations failed before (95 % CI {100 * self.before_low:.1f} to {100 * self.before_high:.1f}), "
            f"{100 * self.after:.1f} % since ({100 * self.after_low:.1f} to {100 * self.after_high:.1f})"
        )


Count = Annotated[int, Field(ge=0)]


class GradedStratum(Record):
    """The counts of one stratum (a group of similar conversations): sampled, graded and failed conversations.

    Of the stratum's ``conversations``, ``sampled`` were sampled. Of these, ``graded`` got a verdict, and
    ``failures`` of the graded conversations failed.
    """

    stratum: Identifier
    conversations: Count
    sampled: Count
    graded: Count
    failures: Count

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if not self.failures <= self.graded <= self.sampled <= self.conversations:
            raise ValueError("the numbers must satisfy: failures ≤ graded ≤ sampled ≤ conversations")
        return self


class RateEstimate(Record):
    """The estimated share of a night's conversations that failed.

    - ``low`` and ``high`` are the limits of the confidence interval, and ``confidence`` is its level.
    - ``low_if_ungraded_right`` is the lower limit if all ungraded conversations were right.
      ``high_if_ungraded_failed`` is the upper limit if all ungraded conversations had failed.
    - ``coverage`` is the share of all conversations for which the graded conversations are representative.
    - ``judged`` is true if a judge decided some of the conversations.
    - ``corrected`` is true if the rate was corrected for the errors of the judge.
    - ``method`` names the method of the interval.
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

    def apply_floor(self, floor: float) -> Self:
        """Return the estimate with its rate and all its limits raised to at least ``floor``.

        ``floor`` is the share of conversations that certainly failed.
        """
        return self.model_copy(
            update={
                "rate": max(self.rate, floor),
                "low": max(self.low, floor),
                "high": max(self.high, floor),
                "low_if_ungraded_right": max(self.low_if_ungraded_right, floor),
                "high_if_ungraded_failed": max(self.high_if_ungraded_failed, floor),
            }
        )

    def with_graded_count(self, graded: int) -> Self:
        """Return the estimate with the number of graded conversations."""
        return self.model_copy(update={"graded": graded})

    @property
    def is_counted_not_estimated(self) -> bool:
        """Return whether the rate was counted over all conversations, and not estimated from a sample."""
        return self.graded > self.sampled or (self.low == self.high and self.graded == self.conversations)

    @property
    def is_judged_but_uncorrected(self) -> bool:
        """Return whether the rate depends on a judge's verdicts and is not corrected for the judge's errors."""
        return self.judged and not self.corrected

    @property
    def width(self) -> float:
        """Return the width of the interval, from 0 to 1."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """Return the rate with its interval as text: ``0.3 % (95 % CI 0.1 to 0.8)``."""
        interval = f"{100 * self.confidence:.0f} % CI {_format_percent(self.low)} to {_format_percent(self.high)}"
        return f"{self.text_without_interval} ({interval})"

    @property
    def text_without_interval(self) -> str:
        """Return the rate without its interval as text: ``0.3 %``."""
        return f"{_format_percent(self.rate)} %"


class RateUnknown(Record):
    """Used instead of an estimate of a rate if too few conversations were graded. ``why`` contains the reason."""

    conversations: Count
    sampled: Count
    why: str


class RateForecast(Record):
    """The interval that a nightly run will probably have for a rate.

    If ``learnt`` is true, ``expected_rate`` comes from earlier nights. Otherwise, ``expected_rate`` is an
    assumption.
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
        """Return the expected width of the interval, from 0 to 1."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """Return the forecast as one line."""
        why = "as in earlier nights" if self.learnt else "an assumption, because no earlier night has this rate"
        corrected = ", corrected for judge errors" if self.corrected else ""
        return (
            f"{self.name}: Lookout expects {_format_percent(self.expected_rate)} % ({why}) with a "
            f"{100 * self.confidence:.0f} % confidence interval of {_format_percent(self.low)} to "
            f"{_format_percent(self.high)} %{corrected}"
        )


class NoForecast(Record):
    """A rate for which no forecast is possible, and the reason."""

    name: str
    why: str

    @property
    def text(self) -> str:
        """Return the name of the rate, and the reason why no forecast is possible."""
        return f"{self.name}: {self.why}"


class StratumPlan(StratumCount):
    """The plan for one stratum, with its expected rate of severity-3 failures."""

    expected_rate: Probability


class NightlyPlan(Record):
    """The expected cost and precision of a nightly run, before it starts.

    ``notes`` explain special cases, such as a stratum that is sampled completely.
    """

    strata: tuple[StratumPlan, ...]
    judge_calls: Count
    cost_usd: Annotated[Decimal, Field(ge=0)]
    rates: tuple[RateForecast | NoForecast, ...]
    notes: tuple[str, ...] = ()

    @property
    def conversations(self) -> int:
        """Return the number of all conversations in the plan."""
        return sum(stratum.conversations for stratum in self.strata)

    @property
    def sampled(self) -> int:
        """Return the number of conversations that will be sampled."""
        return sum(stratum.sampled for stratum in self.strata)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of the plan that ``lookout nightly --plan`` prints."""
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
    """Format a share in percent with one decimal. A share from 0 to 0.1 % gets two decimals."""
    value = 100 * share
    return f"{value:.2f}" if 0 < value < _MIN_ONE_DECIMAL else f"{value:.1f}"


_MIN_ONE_DECIMAL = 0.1
