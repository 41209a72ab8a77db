"""Builds of an application by their commits, what cases came to on them, and which is likely the first bad one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Identifier, Probability, Record, Sha256, UtcTime
from monitors.records.grades import CaseOutcome, FailureKind

Count = Annotated[int, Field(ge=0)]


class Build(Record):
    """A build that can be asked at an address of its own."""

    commit: str = Field(min_length=1, max_length=200)
    address: str


class BuildAnswer(Record):
    """What a case came to on a build, once. ``case_sha256`` names the case as it was asked."""

    commit: str
    address: str
    case_id: Identifier
    case_sha256: Sha256
    asked_at: UtcTime
    outcome: CaseOutcome
    failure_kinds: tuple[FailureKind, ...] = ()
    reason: str = ""


class BisectClaim(StrEnum):
    """What a hypothesis says."""

    FIRST_BAD = "first_bad"
    GOOD_FAILS = "good_fails"
    """The build that was said to be good fails already."""
    BAD_PASSES = "bad_passes"
    """No build fails by a change between them, the one that was said to be bad included."""


class BisectCandidate(Record):
    """A hypothesis with its probability. Several commits are builds that could not be told from each other."""

    claim: BisectClaim
    commits: tuple[str, ...] = ()
    probability: Probability


class BisectCase(Record):
    """How often a case failed when it was asked before the likeliest first bad build, and from it on.

    ``elsewhere`` is how likely it is that the case does not break there: at random, or by another build.
    """

    case_id: Identifier
    failed_before: Count
    asked_before: Count
    failed_after: Count
    asked_after: Count
    elsewhere: Probability


class BisectReport(Record):
    """What a search over builds came to. ``candidates`` are all hypotheses, likeliest first.

    ``asked`` questions were asked now, ``stored`` answers were there before. ``left_out`` are builds that could not
    be asked, with the reason. ``why_open`` says why no hypothesis is likely enough; it is empty where one is.
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
