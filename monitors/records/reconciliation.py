"""Two detectors of the same fault over one span of time: what each of them found, and what both have missed."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.estimates import RateEstimate, RateUnknown, StratumTold
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]


class Interval(Record):
    """A share or a number that cannot be negative, with the limits of its interval."""

    value: Annotated[float, Field(ge=0)]
    low: Annotated[float, Field(ge=0)]
    high: Annotated[float, Field(ge=0)]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"an interval holds its value, got {self.value} in [{self.low}, {self.high}]")
        return self


class Unknown(Record):
    """There is no figure. ``why`` says what is missing, as the end of a sentence."""

    why: str


Told = Interval | Unknown


class GuardCounts(Record):
    """The guard's ``entries``: replies that it held back, and what people said of them.

    ``right`` were rightly held back, ``wrong`` were false alarms. What they say both of, or nothing, is in neither.
    """

    entries: Count
    right: Count = 0
    wrong: Count = 0

    @model_validator(mode="after")
    def _some_of_all(self) -> Self:
        if self.right + self.wrong > self.entries:
            raise ValueError("no more entries can be labelled than there are")
        return self

    @property
    def labelled(self) -> int:
        """How many of the entries people told."""
        return self.right + self.wrong


class NightCounts(Record):
    """What the nights of the span found in what was served, a stratum of a night an entry of ``strata``.

    A failure is a conversation with a reply whose facts were found wrong or unsupported; told is one whose every
    reply was told, or that failed. ``bad_replies`` are all such replies of the conversations drawn.
    """

    nights: Count = 0
    strata: tuple[StratumTold, ...] = ()
    bad_replies: Count = 0
    lineages: tuple[JudgeLineage, ...] = ()
    why_none: str = ""
    """Why there is nothing to reckon with, where there is not."""

    @property
    def conversations(self) -> int:
        """How many there were, drawn or not."""
        return sum(one.conversations for one in self.strata)

    @property
    def told(self) -> int:
        """How many were drawn and told."""
        return sum(one.told for one in self.strata)

    @property
    def found(self) -> int:
        """How many of those drawn were found bad."""
        return sum(one.failures for one in self.strata)


class FoundReply(Record):
    """A reply that the night found bad: whether the guard held back the same one, and how likely it was drawn."""

    held_back: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class OverlapCounts(Record):
    """Where both detectors looked at one thing.

    ``matched`` entries have their question in a drawn conversation of the same time; of these ``same_reply`` have
    there the very reply that was held back. In the others the night saw what was served in its place.
    """

    matched: Count = 0
    same_reply: Count = 0
    found: tuple[FoundReply, ...] = ()

    @property
    def both(self) -> int:
        """Replies that both found bad."""
        return sum(one.held_back for one in self.found)


class ReconciliationCounts(Record):
    """All that is counted for one target from ``since`` (included) to ``until``: the time that the nights cover.

    ``nights_left_out`` were graded by others than the newest night: their rates are other rates.
    """

    target: Identifier
    since: UtcTime
    until: UtcTime
    guard: GuardCounts
    night: NightCounts = NightCounts()
    overlap: OverlapCounts = OverlapCounts()
    nights_left_out: Count = 0


class Reconciliation(Record):
    """What the guard held back, what was served all the same, and what neither saw.

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
    precision: Told
    held_back_rightly: Told
    flagged: RateEstimate | RateUnknown
    served_bad: Told
    corrected: bool
    recall: Told
    missed: Told
    judge_blind: Told
    total_bad: Told
