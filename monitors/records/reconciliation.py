"""Compare two detectors of the same fault over a span of time: what each found, and what both missed."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.estimates import GradedStratum, RateEstimate, RateUnknown
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
NO_LOG = "no hallucination_log is configured"
"""Why there are no figures for a guard without a configured log."""


class Interval(Record):
    """A share or a number that cannot be negative, with the limits of its interval."""

    value: Annotated[float, Field(ge=0)]
    low: Annotated[float, Field(ge=0)]
    high: Annotated[float, Field(ge=0)]

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"an interval must contain its value, got {self.value} in [{self.low}, {self.high}]")
        return self


class Unknown(Record):
    """There is no figure. ``why`` says what is missing, as the end of a sentence."""

    why: str


Figure = Interval | Unknown


class GuardCounts(Record):
    """The guard's ``entries``: replies that it blocked, and people's labels on them.

    ``right`` were rightly blocked, ``wrong`` were false alarms. An entry with both labels or none does not count.
    """

    entries: Count
    right: Count = 0
    wrong: Count = 0

    @model_validator(mode="after")
    def _check_label_count(self) -> Self:
        if self.right + self.wrong > self.entries:
            raise ValueError("more entries are labelled than exist")
        return self

    @property
    def labelled(self) -> int:
        """How many of the entries people labelled."""
        return self.right + self.wrong


class TrafficCounts(Record):
    """What the nightly runs of the span found in served replies; ``strata`` has an entry per run and stratum.

    A failure is a conversation with a wrong or unsupported reply. A conversation is graded if all of its replies
    were graded, or if it failed. ``bad_replies`` counts all wrong or unsupported replies in the sample.
    """

    nightly_runs: Count = 0
    strata: tuple[GradedStratum, ...] = ()
    bad_replies: Count = 0
    lineages: tuple[JudgeLineage, ...] = ()
    why_none: str = ""
    """Why there are no counts; empty if there are."""

    @property
    def conversations(self) -> int:
        """The number of conversations, sampled or not."""
        return sum(stratum.conversations for stratum in self.strata)

    @property
    def graded(self) -> int:
        """The number of sampled conversations that were graded."""
        return sum(stratum.graded for stratum in self.strata)

    @property
    def found(self) -> int:
        """The number of sampled conversations that failed."""
        return sum(stratum.failures for stratum in self.strata)


class FoundReply(Record):
    """A bad reply of a nightly run: whether the guard blocked the same one, and its inclusion probability."""

    held_back: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class OverlapCounts(Record):
    """What both detectors examined.

    ``matched`` entries have their question in a sampled conversation of the same time. In ``same_reply`` of them
    the conversation has the same reply that was blocked; in the others it has the reply that was served instead.
    """

    matched: Count = 0
    same_reply: Count = 0
    found: tuple[FoundReply, ...] = ()

    @property
    def both(self) -> int:
        """Replies that both found bad."""
        return sum(reply.held_back for reply in self.found)


class ReconciliationCounts(Record):
    """All counts for one target from ``since`` (inclusive) to ``until``: the time that the runs cover.

    ``runs_left_out`` had other graders than the newest nightly run, so their rates are not comparable.
    """

    target: Identifier
    since: UtcTime
    until: UtcTime
    guard: GuardCounts
    nightly: TrafficCounts = TrafficCounts()
    overlap: OverlapCounts = OverlapCounts()
    runs_left_out: Count = 0


class Reconciliation(Record):
    """What the guard blocked, what it let through, and what neither detector saw.

    ``precision``: the share of the guard's entries that were rightly blocked; ``held_back_rightly``: their number.
    ``flagged``: the share of all conversations that the judge would call bad. ``served_bad``: the number that
    people would call bad; only the judge's opinion if ``corrected`` is false. ``recall``: the share of all bad
    replies that the guard blocked. ``missed``: served bad conversations that neither detector found.
    ``judge_blind``: bad conversations that the judge would pass even if it saw all. ``total_bad``: all bad replies,
    blocked or not, estimated from two detectors.
    """

    counts: ReconciliationCounts
    confidence: Annotated[float, Field(gt=0, lt=1)]
    reviewed_wrong: Annotated[float, Field(ge=0)]
    reviewed_right: Annotated[float, Field(ge=0)]
    precision: Figure
    held_back_rightly: Figure
    flagged: RateEstimate | RateUnknown
    served_bad: Figure
    corrected: bool
    recall: Figure
    missed: Figure
    judge_blind: Figure
    total_bad: Figure
