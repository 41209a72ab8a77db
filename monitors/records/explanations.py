"""What a run finds out after its verdict: what its failures share, and whether they are still so."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field

from monitors.records.base import Identifier, Record, Severity, UtcTime
from monitors.records.grades import CaseOutcome, FailureKind

Value = str | int | float | bool | None
"""What a case has of an attribute. ``None`` stands where it has none: that is a value like others."""

Count = Annotated[int, Field(ge=0)]


class Cause(Record):
    """Failed cases share ``conditions``: of its ``cases`` ``failed`` did. The rest of them are the exceptions.

    ``elsewhere_failed`` of ``elsewhere`` cases failed outside of it.
    """

    conditions: dict[str, Value]
    cases: Count
    failed: Count
    elsewhere: Count
    elsewhere_failed: Count

    def reword(self, conditions: dict[str, Value]) -> Self:
        """The same cause with its conditions in other words, such as masked ones."""
        return self.model_copy(update={"conditions": conditions})


class FirstLook(Record):
    """What failed cases have in common. No ``causes``: nothing that chance would not show as well.

    ``covered`` of the ``failed`` cases lie in a cause. ``groups`` is how many were compared.
    """

    cases: Count
    failed: Count
    causes: tuple[Cause, ...] = ()
    covered: Count = 0
    groups: Count = 0

    def replace_causes(self, causes: tuple[Cause, ...]) -> Self:
        """The same with these causes, such as masked ones."""
        return self.model_copy(update={"causes": causes})


class RecheckPlace(StrEnum):
    """Where a case is asked again."""

    TARGET = "target"
    PREVIOUS = "previous"
    """The address of the build before, as the configuration names it."""


class RecheckAnswer(Record):
    """One asking of a failed case after the verdict: what it came to, never its text.

    ``repeat`` counts from 0 at each place. ``builds`` are what the application said of its build, in any form.
    ``cost_usd`` is what judging it took.
    """

    run_id: Identifier
    target: Identifier
    case_id: Identifier
    place: RecheckPlace
    repeat: Count
    asked_at: UtcTime
    outcome: CaseOutcome
    severity: Severity
    failure_kinds: tuple[FailureKind, ...] = ()
    reason: str
    builds: tuple[str, ...] = ()
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)


class RecheckCount(Record):
    """What a case came to at one place. Of those that ``failed``, ``in_another_way`` did not fail as in the run."""

    asked: Count = 0
    failed: Count = 0
    in_another_way: Count = 0
    right: Count = 0
    no_answer: Count = 0
    ungraded: Count = 0


class CaseRecheck(Record):
    """A failed case, asked again; ``previous`` is ``None`` where it was not asked on the previous build."""

    case_id: Identifier
    severity: Severity
    here: RecheckCount
    previous: RecheckCount | None = None


class BuildProof(StrEnum):
    """Whether what answered at the address of the previous build is that build."""

    PROVED = "proved"
    UNPROVED = "unproved"
    """It does not name its build."""
    ANOTHER = "another"
    """It names another build."""


class PreviousBuild(Record):
    """The build that the failed cases were asked on too.

    ``commit`` is that of the last accepted run, where it is known; ``names`` is the build that answered by its own
    word, where that is another. ``problem`` says why nothing was asked there, or not all.
    """

    commit: Identifier | None = None
    proof: BuildProof = BuildProof.UNPROVED
    names: str | None = None
    problem: str = ""

    def add_problem(self, problem: str) -> Self:
        """Say why nothing was asked there, or not all; empty where all was."""
        return self.model_copy(update={"problem": problem})


class Recheck(Record):
    """What asking again came to. It changes nothing in the verdict and its figures.

    ``cases`` come worst first. ``left_out`` severe failed cases were beyond the budget. ``problem`` says why
    nothing was asked, or not all. ``previous`` is ``None`` where the target names no previous build.
    """

    cases: tuple[CaseRecheck, ...] = ()
    left_out: Count = 0
    problem: str = ""
    previous: PreviousBuild | None = None
