"""Records that compare two detectors of bad replies: the application's guard and the nightly runs."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.estimates import GradedStratum, RateEstimate, RateUnknown
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]
NO_LOG = "no hallucination_log is configured"
"""The text that explains missing figures of a guard if ``hallucination_log`` is not configured."""


class Interval(Record):
    """A share, or a number of at least 0, with the limits of its confidence interval."""

    value: Annotated[float, Field(ge=0)]
    low: Annotated[float, Field(ge=0)]
    high: Annotated[float, Field(ge=0)]

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"an interval must contain its value, got {self.value} in [{self.low}, {self.high}]")
        return self


class Unknown(Record):
    """A figure that is not known. ``why`` is the reason."""

    why: str


Figure = Interval | Unknown


class GuardCounts(Record):
    """The number of replies that the application's guard blocked (``entries``), and how people labelled them.

    ``right`` counts blocked replies that were bad, and ``wrong`` counts false alarms. A reply with both labels is
    not included in either count.
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
        """Return the number of blocked replies that a person labelled."""
        return self.right + self.wrong


class TrafficCounts(Record):
    """What the nightly runs found in the replies that users received.

    A conversation fails if one of its replies is wrong or unsupported. A conversation is graded if it failed or if
    all its replies were graded. ``bad_replies`` is the number of wrong or unsupported replies in the sample.
    """

    nightly_runs: Count = 0
    strata: tuple[GradedStratum, ...] = ()
    bad_replies: Count = 0
    lineages: tuple[JudgeLineage, ...] = ()
    why_none: str = ""
    """The reason why there are no counts, or an empty string if there are counts."""

    @property
    def conversations(self) -> int:
        """Return the number of all conversations, including those that were not sampled."""
        return sum(stratum.conversations for stratum in self.strata)

    @property
    def graded(self) -> int:
        """Return the number of sampled conversations that were graded."""
        return sum(stratum.graded for stratum in self.strata)

    @property
    def found(self) -> int:
        """Return the number of sampled conversations that failed."""
        return sum(stratum.failures for stratum in self.strata)


class FoundReply(Record):
    """A bad reply that a nightly run found.

    ``held_back`` is true if the guard also blocked the reply. ``inclusion_probability`` is the probability with
    which the reply's conversation was sampled.
    """

    held_back: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class OverlapCounts(Record):
    """Replies that both detectors saw.

    - ``matched`` counts the blocked replies whose question is in a sampled conversation of about the same time.
    - ``same_reply`` counts the matched replies for which the conversation contains the blocked reply itself, and
      not the text that replaced it.
    - ``found`` has the bad replies that the nightly runs found.
    """

    matched: Count = 0
    same_reply: Count = 0
    found: tuple[FoundReply, ...] = ()

    @property
    def both(self) -> int:
        """Return the number of replies that both detectors found to be bad."""
        return sum(reply.held_back for reply in self.found)


class ReconciliationCounts(Record):
    """All counts for a target from ``since`` to ``until``.

    ``runs_left_out`` counts nightly runs that are not used. Older runs can have other graders or another judge than
    the newest run, and their rates are then not comparable.
    """

    target: Identifier
    since: UtcTime
    until: UtcTime
    guard: GuardCounts
    nightly: TrafficCounts = TrafficCounts()
    overlap: OverlapCounts = OverlapCounts()
    runs_left_out: Count = 0


class Reconciliation(Record):
    """What the guard blocked, what it let through, and what neither detector found.

    - ``precision`` is the share of blocked replies that were bad, and ``held_back_rightly`` is the number of
      blocked replies that were bad.
    - ``flagged`` is the share of all conversations that the judge calls bad.
    - ``served_bad`` is the number of bad conversations that users received.
    - ``recall`` is the share of all bad replies that the guard blocked.
    - ``missed`` is the number of bad conversations that users received and that neither detector found.
    - ``judge_blind`` is the number of bad conversations that the judge would pass.
    - ``total_bad`` is the number of all bad replies, including the blocked ones.
    - ``corrected`` is true if the figures are corrected for the errors of the judge, as measured by human reviews.
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
