"""Two detectors of the same fault over one span of time: what each of them found, and what both have missed."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.estimates import GradedStratum, RateEstimate, RateUnknown
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
NO_LOG = "no hallucination_log is configured"
"""Why no figures exist for a guard whose log nobody reads."""


class Interval(Record):
    """A share or a number that cannot be negative, with the limits of its interval."""

    value: Annotated[float, Field(ge=0)]
    low: Annotated[float, Field(ge=0)]
    high: Annotated[float, Field(ge=0)]

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"an interval holds its value, got {self.value} in [{self.low}, {self.high}]")
        return self


class Unknown(Record):
    """There is no figure. ``why`` says what is missing, as the end of a sentence."""

    why: str


Figure = Interval | Unknown


class GuardCounts(Record):
    """The guard's ``entries``: replies that it held back, and what people said of them.

    ``right`` were rightly held back, ``wrong`` were false alarms. An entry with both labels, or with none, is in
    neither.
    """

    entries: Count
    right: Count = 0
    wrong: Count = 0

    @model_validator(mode="after")
    def _check_labelled(self) -> Self:
        if self.right + self.wrong > self.entries:
            raise ValueError("no more entries can be labelled than there are")
        return self

    @property
    def labelled(self) -> int:
        """How many of the entries people labelled."""
        return self.right + self.wrong


class TrafficCounts(Record):
    """What the nightly runs of the span found in what was served, a stratum of a run an entry of ``strata``.

    A failure is a conversation with a reply whose facts were found wrong or unsupported; graded is one whose every
    reply was graded, or that failed. ``bad_replies`` are all such replies of the sampled conversations.
    """

    nightly_runs: Count = 0
    strata: tuple[GradedStratum, ...] = ()
    bad_replies: Count = 0
    lineages: tuple[JudgeLineage, ...] = ()
    why_none: str = ""
    """Why there is nothing to reckon with, where there is not."""

    @property
    def conversations(self) -> int:
        """How many there were, sampled or not."""
        return sum(stratum.conversations for stratum in self.strata)

    @property
    def graded(self) -> int:
        """How many were sampled and graded."""
        return sum(stratum.graded for stratum in self.strata)

    @property
    def found(self) -> int:
        """How many of those sampled were found bad."""
        return sum(stratum.failures for stratum in self.strata)


class FoundReply(Record):
    """A bad reply of a nightly run: whether the guard held back the same one, and how likely it was sampled."""

    held_back: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class OverlapCounts(Record):
    """What both detectors examined.

    ``matched`` entries have their question in a sampled conversation of the same time; of these ``same_reply`` have
    there the very reply that was held back. In the others the nightly run saw what was served in its place.
    """

    matched: Count = 0
    same_reply: Count = 0
    found: tuple[FoundReply, ...] = ()

    @property
    def both(self) -> int:
        """Replies that both found bad."""
        return sum(reply.held_back for reply in self.found)


class ReconciliationCounts(Record):
    """All that is counted for one target from ``since`` (included) to ``until``: the time that the runs cover.

    ``runs_left_out`` were graded by others than the newest nightly run: their rates are other rates.
    """

    target: Identifier
    since: UtcTime
    until: UtcTime
    guard: GuardCounts
    nightly: TrafficCounts = TrafficCounts()
    overlap: OverlapCounts = OverlapCounts()
    runs_left_out: Count = 0


class Reconciliation(Record):
    """What the guard held back, what it let through, and what neither detector saw.

    ``precision``: the share of the guard's entries that were rightly held back; ``held_back_rightly``: how many.
    ``flagged``: the share of all conversations that the judge would call bad. ``served_bad``: how many people
    would; with ``corrected`` false it is the judge's word. ``recall``: of all that was bad, the share that the
    guard held back. ``missed``: bad conversations served that nobody knows of. ``judge_blind``: bad ones that the
    judge would pass, even if it saw all. ``total_bad``: all bad replies, held back or not, by two detectors.
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
