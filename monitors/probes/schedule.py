"""In which order to ask: worst first (V8), so that the time to the first page does not grow with the suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase


class Question(Record):
    """One asking of one case. ``repeat`` counts from 0."""

    case: GoldCase
    repeat: Annotated[int, Field(ge=0)] = 0


def worst_first(cases: Iterable[GoldCase], *, repeats_severity_3: int = 1) -> Iterator[Question]:
    """Every case once, the severest first and otherwise in the given order; then the repeats, round by round.

    Repeats follow at the end of their severity: a first answer to each is worth more than a second to one.
    """
    ranked = sorted(cases, key=lambda case: -case.severity)  # stable
    severe = [case for case in ranked if case.severity is Severity.PAGE]
    for repeat in range(repeats_severity_3):
        yield from (Question(case=case, repeat=repeat) for case in severe)
    yield from (Question(case=case) for case in ranked if case.severity is not Severity.PAGE)


def still_open(questions: Iterable[Question], answered: frozenset[tuple[str, int]]) -> Iterator[Question]:
    """Those not in `answered`, a set of (case id, repeat): how a killed run resumes (V11)."""
    return (question for question in questions if (question.case.id, question.repeat) not in answered)
