"""Records of a bisection: builds by their commits, the answers on them, and the first bad build."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Identifier, Probability, Record, Sha256, UtcTime
from monitors.records.grades import CaseOutcome, FailureKind

Count = Annotated[int, Field(ge=0)]


class Build(Record):
    """A build of the application that has its own address."""

    commit: str = Field(min_length=1, max_length=200)
    address: str


class BuildAnswer(Record):
    """The outcome of a case on a build.

    ``case_sha256`` is the hash that the case had when the question was asked.
    """

    commit: str
    address: str
    case_id: Identifier
    case_sha256: Sha256
    asked_at: UtcTime
    outcome: CaseOutcome
    failure_kinds: tuple[FailureKind, ...] = ()
    reason: str = ""


class BisectClaim(StrEnum):
    """What a hypothesis claims about the builds."""

    FIRST_BAD = "first_bad"
    GOOD_FAILS = "good_fails"
    """The build given as good already fails."""
    BAD_PASSES = "bad_passes"
    """No build is bad, including the build that was given as bad."""


class BisectCandidate(Record):
    """A hypothesis with its probability.

    If the hypothesis names several commits, the answers cannot distinguish the builds of these commits.
    """

    claim: BisectClaim
    commits: tuple[str, ...] = ()
    probability: Probability


class BisectCase(Record):
    """The failures and answers of a case before the most likely first bad build, and from that build on.

    ``elsewhere`` is the probability that the case breaks at another build or fails at random.
    """

    case_id: Identifier
    failed_before: Count
    asked_before: Count
    failed_after: Count
    asked_after: Count
    elsewhere: Probability


class BisectReport(Record):
    """The result of a bisection. ``candidates`` are all hypotheses, likeliest first.

    - ``asked`` is the number of questions that this bisection asked.
    - ``stored`` is the number of earlier answers that were used.
    - ``left_out`` contains the builds that could not be reached, with the reasons.
    - ``why_open`` states why no hypothesis is likely enough, or is empty if a hypothesis is likely enough.
    """

    target: Identifier
    good: str
    bad: str
    builds: Annotated[int, Field(ge=2)]
    candidates: tuple[BisectCandidate, ...]
    cases: tuple[BisectCase, ...]
    asked: Count
    stored: Count
    left_out: tuple[tuple[str, str], ...] = ()
    why_open: str = ""
