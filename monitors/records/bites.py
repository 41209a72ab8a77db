"""How well graders bite: known-bad twins of a suite's golds, and how many of them were caught."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Probability, Record

Count = Annotated[int, Field(ge=0)]


class CatchCount(Record):
    """Twins of one sort, how many some grader failed, how many were passed as right; the rest is for a judge.

    ``low`` and ``high`` bound the catch rate (Wilson, 95 %). ``by_grader`` counts a twin once for each grader that
    failed it, so that its sum may be more than ``caught``.
    """

    name: str
    twins: Count
    caught: Count
    passed: Count
    low: Probability
    high: Probability
    by_grader: dict[str, int]

    @property
    def rate(self) -> float:
        """The share that was caught; 1 of none."""
        return self.caught / self.twins if self.twins else 1.0

    @property
    def left(self) -> int:
        """Neither failed nor passed: left to the judge."""
        return self.twins - self.caught - self.passed


class SuiteBite(Record):
    """All counts of the twins of ``cases`` cases. ``severe`` are the twins of severity 3.

    Personal data is severity 3 in any reply and easily seen, so the severe are also counted without it.
    """

    cases: Count
    whole: CatchCount
    severe: CatchCount
    severe_without_personal_data: CatchCount
    by_operator: tuple[CatchCount, ...]
    by_severity: tuple[CatchCount, ...]
