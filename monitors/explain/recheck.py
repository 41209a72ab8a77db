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
from monitors.records.targets import is_same_commit

COMMIT: Final = "{commit}"
"""What an address of builds has in place of the build's commit."""
_SAFE_COMMIT: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""A commit that can lead to no other host when it becomes part of an address."""
_SERVER_HEADERS: Final = frozenset({"server", "x-powered-by"})
"""Headers that name a server's software, never the application's build."""
_COMMIT_NAME: Final = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{7,40}")
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


def select_severe_failures(results: Iterable[CaseResult]) -> tuple[FailedCaseAgain, ...]:
    """The cases that failed and count as severity 3 or 2, worst first, then by id: a resumed run asks the same."""
    failures: dict[str, FailedCaseAgain] = {}
    for result in results:
        severity = result.assessment.severity
        if result.assessment.outcome is not CaseOutcome.FAILED or severity is Severity.ANNOYING:
            continue
        earlier = failures.get(result.case.id)
        kinds = frozenset(result.assessment.failure_kinds)
        failures[result.case.id] = FailedCaseAgain(
            result.case,
            max(severity, earlier.severity) if earlier else severity,
            kinds | earlier.kinds if earlier else kinds,
        )
    return tuple(sorted(failures.values(), key=lambda result: (-result.severity, result.case.id)))


def plan_recheck(failed: Sequence[FailedCaseAgain], *, times: int, max_questions: int, places: int) -> RecheckPlan:
    """Whole cases, as many as ``max_questions`` questions at ``places`` allow; of the worst at least a part of its times."""
    times = min(times, max_questions // places)
    case_count = max_questions // (times * places) if times else 0
    return RecheckPlan(cases=tuple(failed[:case_count]), times=times, left_out=max(0, len(failed) - case_count))


def count_rechecks(
    failed: Sequence[FailedCaseAgain], answers: Sequence[RecheckAnswer], *, with_previous: bool
) -> tuple[CaseRecheck, ...]:
    """What each case came to; those that were asked nowhere are left out."""

    def count(failed_case: FailedCaseAgain, place: RecheckPlace) -> RecheckCount:
        return _count_answers(
            [answer for answer in answers if (answer.case_id, answer.place) == (failed_case.case.id, place)],
            failed_case.kinds,
        )

    rechecks = (
        CaseRecheck(
            case_id=failed_case.case.id,
            severity=failed_case.severity,
            here=count(failed_case, RecheckPlace.TARGET),
            previous=count(failed_case, RecheckPlace.PREVIOUS) if with_previous else None,
        )
        for failed_case in failed
    )
    return tuple(
        failed_case
        for failed_case in rechecks
        if failed_case.here.asked or (failed_case.previous and failed_case.previous.asked)
    )


def _count_answers(answers: Sequence[RecheckAnswer], kinds: frozenset[FailureKind]) -> RecheckCount:
    outcomes = [answer.outcome for answer in answers]
    failed = [answer for answer in answers if answer.outcome is CaseOutcome.FAILED]
    return RecheckCount(
        asked=len(answers),
        failed=len(failed),
        in_another_way=sum(not kinds & {*answer.failure_kinds} for answer in failed),
        right=outcomes.count(CaseOutcome.CORRECT),
        no_answer=outcomes.count(CaseOutcome.NO_ANSWER),
        ungraded=outcomes.count(CaseOutcome.UNGRADED),
    )


def build_previous_address(template: str, commit: str | None, verified_commit: str | None) -> str:
    """The address of the previous build, whose commit is ``commit``. ``ValueError`` says why there is none.

    ``verified_commit`` is the commit that was verified. A commit comes from whoever reported a deploy: only letters, digits,
    ``_`` and ``-`` become part of an address.
    """
    if commit is not None and verified_commit is not None and is_same_build(commit, verified_commit):
        raise ValueError(f"the last accepted run was of {commit} too, so no build before it is known")
    if COMMIT not in template:
        return template
    if commit is None:
        raise ValueError("no accepted run names a commit, so previous_url cannot be filled in")
    if not _SAFE_COMMIT.fullmatch(commit):
        raise ValueError("the commit of the last accepted run has characters that an address cannot take")
    return template.replace(COMMIT, commit)


def list_named_builds(exchange: Exchange) -> tuple[str, ...]:
    """What an answer says of the application's build, in its payload and its headers, each once."""
    build = exchange.wire.build if exchange.wire else None
    pages: Mapping[str, str] = exchange.evidence.page.versions if exchange.evidence.page else {}
    versions = {**(build.versions if build else {}), **pages}
    names = [exchange.app_version, *(value for name, value in versions.items() if name not in _SERVER_HEADERS)]
    return tuple(dict.fromkeys(value for value in names if value))


def check_build_proof(names: Iterable[str], commit: str | None, verified_commit: str | None) -> PreviousBuild:
    """Whether what answered is the build ``commit``, by all that it says; ``verified_commit`` is the commit that was verified.

    A version number proves nothing and disproves nothing; a commit does both.
    """
    unique_names = tuple(dict.fromkeys(names))
    verified_name = next(
        (name for name in unique_names if verified_commit is not None and is_same_build(name, verified_commit)),
        None,
    )
    if verified_name is not None:
        return PreviousBuild(commit=commit, proof=BuildProof.ANOTHER, names=verified_name)
    if commit is None:
        return PreviousBuild()
    if any(is_same_build(name, commit) for name in unique_names):
        return PreviousBuild(commit=commit, proof=BuildProof.PROVED)
    other_commit = next((name for name in unique_names if _COMMIT_NAME.fullmatch(name.lower())), None)
    proof = BuildProof.UNPROVED if other_commit is None else BuildProof.ANOTHER
    return PreviousBuild(commit=commit, proof=proof, names=other_commit)


def is_same_build(first: str, second: str) -> bool:
    """Whether two names of builds mean the same: the same text, or two lengths of one commit."""
    return first == second or is_same_commit(first, second)
