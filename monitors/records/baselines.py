"""The accepted run that another is held against."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Blame, Identifier, Record
from monitors.records.grades import CaseOutcome
from monitors.records.runs import RunReport


class Asked(Record):
    """What one asking of one case came to: enough to compare two runs. ``rubric`` is the judge's, 1 to 5."""

    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    outcome: CaseOutcome
    blame: Blame | None = None
    rubric: Annotated[int, Field(ge=1, le=5)] | None = None


class Baseline(Record):
    """A run with what each of its questions came to, from the warehouse or from its ``results.json``."""

    report: RunReport
    asked: tuple[Asked, ...]
