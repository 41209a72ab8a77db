"""How many twins the graders caught, by operator, by grader, by severity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from flows.twin_catch import GradedTwin
from monitors.goldset.twins import Operator
from monitors.records.base import Probability, Record, Severity
from monitors.stats import wilson

Count = Annotated[int, Field(ge=0)]


class CatchCount(Record):
    """Twins, how many some grader failed, how many were passed as right; the rest is left to the judge.

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


class TwinCounts(Record):
    """All counts of a suite's twins. ``severe`` are those of severity 3."""

    cases: Count
    whole: CatchCount
    severe: CatchCount
    severe_without_personal_data: CatchCount
    by_operator: tuple[CatchCount, ...]
    by_severity: tuple[CatchCount, ...]


def count_twins(graded: Sequence[GradedTwin]) -> TwinCounts:
    """Count them. Personal data is severity 3 in any reply and easily seen, so the severe are also told without."""
    severe = [one for one in graded if one.severity is Severity.PAGE]
    plain = [one for one in severe if one.operator is not Operator.PERSONAL_DATA]
    operators = [(one.value, [twin for twin in graded if twin.operator is one]) for one in Operator]
    severities = [(f"severity {one.value}", [twin for twin in graded if twin.severity is one]) for one in Severity]
    return TwinCounts(
        cases=len({twin.case_id for twin in graded}),
        whole=_count("all", graded),
        severe=_count("severity 3", severe),
        severe_without_personal_data=_count("severity 3 without personal data", plain),
        by_operator=tuple(_count(name, twins) for name, twins in operators if twins),
        by_severity=tuple(_count(name, twins) for name, twins in severities if twins),
    )


def _count(name: str, graded: Iterable[GradedTwin]) -> CatchCount:
    twins = list(graded)
    caught = sum(bool(one.caught_by) for one in twins)
    low, high = wilson(caught, len(twins)) if twins else (0.0, 1.0)
    found = Counter(grader for one in twins for grader in one.caught_by)
    return CatchCount(
        name=name,
        twins=len(twins),
        caught=caught,
        passed=sum(one.passed for one in twins),
        low=low,
        high=high,
        by_grader=dict(sorted(found.items())),
    )
