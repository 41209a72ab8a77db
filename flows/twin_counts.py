"""How many twins the graders caught, by operator, by grader, by severity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from flows.twin_catch import GradedTwin, grade_right, grade_twins
from monitors.goldset.twins import Operator
from monitors.graders.base import Grader
from monitors.records.base import Severity
from monitors.records.bites import CatchCount, SuiteBite
from monitors.records.cases import GoldCase
from monitors.stats import wilson

MOST_CASES: Final = 60
"""Severity-3 cases whose twins a run tries: about 500 twins, a second or less."""


def severe_bite(cases: Iterable[GoldCase], panel: Sequence[Grader], *, citation_required: bool) -> SuiteBite | None:
    """The twins of the first severity-3 cases of a suite, for its run's report; ``None`` where it has none."""
    severe = [case for case in cases if case.severity is Severity.PAGE][:MOST_CASES]
    usable = [case for case in severe if not grade_right(case, panel).wrong]
    return count_twins(list(grade_twins(usable, panel, citation_required=citation_required))) if usable else None


def count_twins(graded: Sequence[GradedTwin]) -> SuiteBite:
    """Count them all."""
    severe = [one for one in graded if one.severity is Severity.PAGE]
    plain = [one for one in severe if one.operator is not Operator.PERSONAL_DATA]
    operators = [(one.value, [twin for twin in graded if twin.operator is one]) for one in Operator]
    severities = [(f"severity {one.value}", [twin for twin in graded if twin.severity is one]) for one in Severity]
    return SuiteBite(
        cases=len({twin.case_id for twin in graded}),
        whole=_count("all", graded),
        severe=_count("severity 3", severe),
        severe_without_personal_data=_count("severity 3 without personal data", plain),
        by_operator=tuple(_count(name, twins) for name, twins in operators if twins),
        by_severity=tuple(_count(name, twins) for name, twins in severities if twins),
    )


def _count(name: str, twins: Sequence[GradedTwin]) -> CatchCount:
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
