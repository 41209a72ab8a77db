"""Records about the failures of a run after its verdict: common causes, and rechecks of failed cases."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field

from monitors.records.base import Identifier, Record, Severity, UtcTime
from monitors.records.grades import CaseOutcome, FailureKind

Value = str | int | float | bool | None
"""The value of a case's attribute. ``None`` means that the case does not have the attribute."""

Count = Annotated[int, Field(ge=0)]


class Cause(Record):
    """Conditions that failed cases have in common.

    ``cases`` is the number of cases that meet the conditions, and ``failed`` is the number of those cases that
    failed. ``elsewhere`` is the number of cases that do not meet the conditions, and ``elsewhere_failed`` is the
    number of those cases that failed.
    """

    conditions: dict[str, Value]
    cases: Count
    failed: Count
    elsewhere: Count
    elsewhere_failed: Count

    def with_conditions(self, conditions: dict[str, Value]) -> Self:
        """Return a copy of the cause with other ``conditions``, for example with masked texts."""
        return self.model_copy(update={"conditions": conditions})


class FirstLook(Record):
    """The causes that the failed cases of a run have in common. ``causes`` is empty if no cause was found.

    ``covered`` is the number of failed cases that have one of the causes, and ``failed`` is the number of all
    failed cases. ``groups`` is the number of groups of cases that were compared.
    """

    cases: Count
    failed: Count
    causes: tuple[Cause, ...] = ()
    covered: Count = 0
    groups: Count = 0

    def replace_causes(self, causes: tuple[Cause, ...]) -> Self:
        """Return a copy of this result with other ``causes``, for example with masked texts."""
        return self.model_copy(update={"causes": causes})


class RecheckPlace(StrEnum):
    """The build on which a failed case is asked again: the build of the target, or the previous build."""

    TARGET = "target"
    PREVIOUS = "previous"
    """The previous build, at its configured address."""


class RecheckAnswer(Record):
    """The result of one recheck of a failed case, without the text of the answer.

    A recheck asks a failed case again after the verdict. ``repeat`` counts from 0 for each ``place``.
    ``builds`` contains the builds that the application reported.
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
    """The number of times that a case was asked again on one build, and the outcomes.

    ``in_another_way`` counts the failures of a kind that the case did not have in the run.
    """

    asked: Count = 0
    failed: Count = 0
    in_another_way: Count = 0
    right: Count = 0
    no_answer: Count = 0
    ungraded: Count = 0


class CaseRecheck(Record):
    """Recheck results of a failed case: on the target (``here``) and, if there is one, on the previous build."""

    case_id: Identifier
    severity: Severity
    here: RecheckCount
    previous: RecheckCount | None = None


class BuildProof(StrEnum):
    """Whether Lookout can prove that the answers at the previous build's address came from the previous build."""

    PROVED = "proved"
    UNPROVED = "unproved"
    """The application at this address does not report its build."""
    ANOTHER = "another"
    """The application at this address reports another build."""


class PreviousBuild(Record):
    """The previous build, on which failed cases were rechecked.

    ``commit`` is the commit of the last accepted run. If another build answered, ``names`` is the name of that
    build. ``problem`` is the reason why no cases, or not all cases, were rechecked there.
    """

    commit: Identifier | None = None
    proof: BuildProof = BuildProof.UNPROVED
    names: str | None = None
    problem: str = ""

    def with_problem(self, problem: str) -> Self:
        """Return a copy of the build with ``problem``: why no cases, or not all cases, were rechecked there.

        ``problem`` is empty if all cases were rechecked.
        """
        return self.model_copy(update={"problem": problem})


class Recheck(Record):
    """The results of asking failed cases again after the verdict. These results do not change the verdict.

    ``cases`` begins with the worst case. ``left_out`` is the number of severe failed cases that were not asked
    again. ``problem`` is the reason why no cases, or not all cases, were asked again.
    """

    cases: tuple[CaseRecheck, ...] = ()
    left_out: Count = 0
    problem: str = ""
    previous: PreviousBuild | None = None
