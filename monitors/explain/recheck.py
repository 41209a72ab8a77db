"""Which failed cases are asked again after a verdict, what that came to, and which build answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.explanations import (
    BuildProof,
    CaseRecheck,
    PreviousBuild,
    RecheckAnswer,
    RecheckCount,
    RecheckPlace,
)
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import CaseResult
from monitors.records.targets import same_commit

COMMIT: Final = "{commit}"
"""What an address of builds has in place of the build's commit."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""A commit that can lead to no other host when it becomes part of an address."""
_NO_COMMIT: Final = frozenset({"server", "x-powered-by"})
"""Headers that name a server's software, never the application's build."""
_NAMES_A_COMMIT: Final = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{7,40}")
"""A number alone is as likely that of a build."""


class FailedCaseAgain(NamedTuple):
    """A severe case that failed in a run, and how."""

    case: GoldCase
    severity: Severity
    kinds: frozenset[FailureKind]


class RecheckPlan(NamedTuple):
    """The cases to ask again, worst first, each ``times`` at each place; ``left_out`` are beyond the budget."""

    cases: tuple[FailedCaseAgain, ...]
    times: int
    left_out: int


def severe_failures(results: Iterable[CaseResult]) -> tuple[FailedCaseAgain, ...]:
    """The cases that failed and count as severity 3 or 2, worst first, then by id: a resumed run asks the same."""
    found: dict[str, FailedCaseAgain] = {}
    for one in results:
        severity = one.assessment.severity
        if one.assessment.outcome is not CaseOutcome.FAILED or severity is Severity.ANNOYING:
            continue
        before = found.get(one.case.id)
        kinds = frozenset(one.assessment.failure_kinds)
        found[one.case.id] = FailedCaseAgain(
            one.case,
            max(severity, before.severity) if before else severity,
            kinds | before.kinds if before else kinds,
        )
    return tuple(sorted(found.values(), key=lambda one: (-one.severity, one.case.id)))


def planned(failed: Sequence[FailedCaseAgain], *, times: int, most: int, places: int) -> RecheckPlan:
    """Whole cases, as many as ``most`` questions at ``places`` allow; of the worst at least a part of its times."""
    times = min(times, most // places)
    fit = most // (times * places) if times else 0
    return RecheckPlan(cases=tuple(failed[:fit]), times=times, left_out=max(0, len(failed) - fit))


def case_rechecks(
    failed: Sequence[FailedCaseAgain], answers: Sequence[RecheckAnswer], *, with_previous: bool
) -> tuple[CaseRecheck, ...]:
    """What each case came to; those that were asked nowhere are left out."""

    def count(one: FailedCaseAgain, place: RecheckPlace) -> RecheckCount:
        return _count([a for a in answers if (a.case_id, a.place) == (one.case.id, place)], one.kinds)

    found = (
        CaseRecheck(
            case_id=one.case.id,
            severity=one.severity,
            here=count(one, RecheckPlace.TARGET),
            previous=count(one, RecheckPlace.PREVIOUS) if with_previous else None,
        )
        for one in failed
    )
    return tuple(one for one in found if one.here.asked or (one.previous and one.previous.asked))


def _count(answers: Sequence[RecheckAnswer], kinds: frozenset[FailureKind]) -> RecheckCount:
    came = [answer.outcome for answer in answers]
    failed = [answer for answer in answers if answer.outcome is CaseOutcome.FAILED]
    return RecheckCount(
        asked=len(answers),
        failed=len(failed),
        in_another_way=sum(not kinds & {*answer.failure_kinds} for answer in failed),
        right=came.count(CaseOutcome.CORRECT),
        no_answer=came.count(CaseOutcome.NO_ANSWER),
        ungraded=came.count(CaseOutcome.UNGRADED),
    )


def previous_address(template: str, commit: str | None, own: str | None) -> str:
    """The address of the previous build, whose commit is ``commit``. ``ValueError`` says why there is none.

    ``own`` is the commit that was verified. A commit comes from whoever reported a deploy: only letters, digits,
    ``_`` and ``-`` become part of an address.
    """
    if commit is not None and own is not None and is_same_build(commit, own):
        raise ValueError(f"the last accepted run was of {commit} too, so no build before it is known")
    if COMMIT not in template:
        return template
    if commit is None:
        raise ValueError("no accepted run names a commit, so previous_url cannot be filled in")
    if not _PLAIN.fullmatch(commit):
        raise ValueError("the commit of the last accepted run has characters that an address cannot take")
    return template.replace(COMMIT, commit)


def builds_named(exchange: Exchange) -> tuple[str, ...]:
    """What an answer says of the application's build, in its payload and its headers, each once."""
    build = exchange.wire.build if exchange.wire else None
    pages: Mapping[str, str] = exchange.evidence.page.versions if exchange.evidence.page else {}
    versions = {**(build.versions if build else {}), **pages}
    named = [exchange.app_version, *(value for name, value in versions.items() if name not in _NO_COMMIT)]
    return tuple(dict.fromkeys(value for value in named if value))


def proof_of(names: Iterable[str], commit: str | None, own: str | None) -> PreviousBuild:
    """Whether what answered is the build ``commit``, by all that it says; ``own`` is the commit that was verified.

    A version number proves nothing and disproves nothing; a commit does both.
    """
    known = tuple(dict.fromkeys(names))
    itself = next((name for name in known if own is not None and is_same_build(name, own)), None)
    if itself is not None:
        return PreviousBuild(commit=commit, proof=BuildProof.ANOTHER, names=itself)
    if commit is None:
        return PreviousBuild()
    if any(is_same_build(name, commit) for name in known):
        return PreviousBuild(commit=commit, proof=BuildProof.PROVED)
    other = next((name for name in known if _NAMES_A_COMMIT.fullmatch(name.lower())), None)
    proof = BuildProof.UNPROVED if other is None else BuildProof.ANOTHER
    return PreviousBuild(commit=commit, proof=proof, names=other)


def is_same_build(one: str, other: str) -> bool:
    """Whether two names of builds mean the same: the same text, or two lengths of one commit."""
    return one == other or same_commit(one, other)
