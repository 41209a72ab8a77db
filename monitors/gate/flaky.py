"""Cases that are right only sometimes, and what they may decide.

A case asked several times counts as right only when it was right every time (pass^k). One that was right at some
times and lost at others is **flaky**: it counts as lost, it pages, and it is named, but it does not decide a
verdict alone. Every reason that would change the verdict must still stand when any one flaky case is taken to have
been right. Two flaky cases may decide together, and a case that was never right is not flaky.
"""

from __future__ import annotations

from collections.abc import Sequence

from monitors.gate.score import is_told
from monitors.records.comparisons import FlakyCase
from monitors.records.grades import Assessment, CaseOutcome


def flaky_cases(assessments: Sequence[Assessment], *, outage: bool) -> tuple[FlakyCase, ...]:
    """The cases that were right at least once and lost at least once, severest first.

    Asks that could not be told, for want of a grader or in an outage, say neither.
    """
    told: dict[str, list[Assessment]] = {}
    for assessment in assessments:
        if is_told(assessment, outage=outage):
            told.setdefault(assessment.case_id, []).append(assessment)
    found = (_flaky(asked) for asked in told.values() if len(asked) > 1)
    return tuple(sorted((one for one in found if one), key=lambda one: (-one.severity, one.case_id)))


def _flaky(asked: Sequence[Assessment]) -> FlakyCase | None:
    right = sum(one.outcome is CaseOutcome.CORRECT for one in asked)
    if not 0 < right < len(asked):
        return None
    severity = max(one.severity for one in asked)
    return FlakyCase(case_id=asked[0].case_id, severity=severity, asked=len(asked), right=right)
