"""How much of a run a judge was needed for, what it did, and what it cost."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record
from monitors.records.grades import JudgeLineage

Count = Annotated[int, Field(ge=0)]


class JudgeState(StrEnum):
    """Whether there was a judge."""

    OFF = "off"
    ON = "on"


class Judging(Record):
    """A run's judging. ``why`` says why the judge was off.

    ``answers`` came back; ``left_open`` of them the graders without a model could not settle. Of these,
    ``by_rule`` were no answers at all and failed without a judge, ``judged`` have a grade of a judge, the rest is
    ungraded: ``void_grades`` because the judge missed known answers in ``void_groups`` of the ``groups``.
    ``ungraded_because`` are the reasons, most frequent first. ``lineages`` are all judges whose grades count.
    ``cached_tokens`` were read from the provider's cache. ``cost_usd`` is all that was spent, canaries and
    unreadable verdicts included. ``not_by_batch`` says what a night's batches did not bring and was asked for one
    by one, at the full price.
    """

    state: JudgeState
    why: str = ""
    models: tuple[str, ...] = ()
    answers: Count = 0
    left_open: Count = 0
    by_rule: Count = 0
    judged: Count = 0
    groups: Count = 0
    void_groups: Count = 0
    void_grades: Count = 0
    ungraded_because: tuple[str, ...] = ()
    lineages: tuple[JudgeLineage, ...] = ()
    calls: Count = 0
    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    budget_usd: Annotated[Decimal, Field(gt=0)] | None = None
    budget_reached: bool = False
    not_by_batch: tuple[str, ...] = ()

    @property
    def reached_judge(self) -> int:
        """Answers that a judge was needed for."""
        return self.left_open - self.by_rule

    @property
    def ungraded(self) -> int:
        """Answers that needed a judge and have no grade of one."""
        return max(0, self.reached_judge - self.judged)
