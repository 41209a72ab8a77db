"""The accepted run that another is held against."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Blame, Identifier, Record
from monitors.records.grades import CaseOutcome
from monitors.records.runs import RunReport


class Asked(Record):
    """What one asking of one case came to: enough to compare two runs."""

    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    outcome: CaseOutcome
    blame: Blame | None = None


class Baseline(Record):
    """A run with what each of its questions came to, from the warehouse or from its ``results.json``.

    The ratings of its reports are in ``report`` itself.
    """

    report: RunReport
    asked: tuple[Asked, ...]
