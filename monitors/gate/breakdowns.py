"""How each group of cases did: by type, language, path and severity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import Breakdown

UNKNOWN_PATH = "not said"
"""The path of an answer whose application does not say which one it took."""


def breakdowns(assessments: Sequence[Assessment]) -> tuple[Breakdown, ...]:
    """How each type, language, path and severity did; the largest group of each first."""
    groups: dict[str, Callable[[Assessment], str]] = {
        "type": lambda a: a.type,
        "language": lambda a: a.language,
        "path": lambda a: a.app_path or UNKNOWN_PATH,
        "severity": lambda a: str(a.case_severity.value),
    }
    return tuple(row for group, key in groups.items() for row in _grouped(group, key, assessments))


def _grouped(group: str, key: Callable[[Assessment], str], assessments: Sequence[Assessment]) -> list[Breakdown]:
    members: dict[str, list[CaseOutcome]] = {}
    for assessment in assessments:
        members.setdefault(key(assessment), []).append(assessment.outcome)
    rows = [
        Breakdown(
            group=group,
            key=name,
            cases=len(outcomes),
            correct=outcomes.count(CaseOutcome.CORRECT),
            failed=outcomes.count(CaseOutcome.FAILED),
            no_answer=outcomes.count(CaseOutcome.NO_ANSWER),
            untold=outcomes.count(CaseOutcome.UNTOLD),
        )
        for name, outcomes in members.items()
    ]
    return sorted(rows, key=lambda row: (-row.cases, row.key))
