"""Plan rechecks of failed cases after a verdict, count their outcomes, and verify which build answered."""

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

COMMIT_PLACEHOLDER: Final = "{commit}"
"""The placeholder in an address that is replaced with the commit of a build."""
_SAFE_COMMIT: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""Matches a commit that can be put into an address without changing the host."""
_SERVER_HEADERS: Final = frozenset({"server", "x-powered-by"})
"""Headers that name the software of the web server, and not the build of the application."""
_COMMIT_NAME: Final = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{7,40}")
"""Matches a hexadecimal commit, but no number without letters, because such a number may be a build number."""


class SevereCase(NamedTuple):
    """A severe case that failed in a run, with the kinds of its failures."""

    case: GoldCase
    severity: Severity
    kinds: frozenset[FailureKind]


class RecheckPlan(NamedTuple):
    """The cases to recheck, worst first. Each case is asked ``times`` times on each build.

    ``left_out`` is the number of cases that are not asked, because they exceed the budget.
    """

    cases: tuple[SevereCase, ...]
    times: int
    left_out: int


def select_severe_failures(results: Iterable[CaseResult]) -> tuple[SevereCase, ...]:
    """Select failed cases of severity 3 or 2: worst first, then by id.

    The order is fixed, because a resumed run must select the same cases.
    """
    failures: dict[str, SevereCase] = {}
    for result in results:
        severity = result.assessment.severity
        if result.assessment.outcome is not CaseOutcome.FAILED or severity is Severity.MINOR:
            continue
        earlier = failures.get(result.case.id)
        kinds = frozenset(result.assessment.failure_kinds)
        failures[result.case.id] = SevereCase(
            result.case,
            max(severity, earlier.severity) if earlier else severity,
            kinds | earlier.kinds if earlier else kinds,
        )
    return tuple(sorted(failures.values(), key=lambda result: (-result.severity, result.case.id)))


def plan_recheck(failed: Sequence[SevereCase], *, times: int, max_questions: int, places: int) -> RecheckPlan:
    """Plan to ask as many cases as ``max_questions`` allows.

    Each case is asked ``times`` times on each of the ``places`` builds: the target, and its previous build if
    known. If a single case needs more than ``max_questions`` questions, the case is asked fewer times.
    """
    times = min(times, max_questions // places)
    case_count = max_questions // (times * places) if times else 0
    return RecheckPlan(cases=tuple(failed[:case_count]), times=times, left_out=max(0, len(failed) - case_count))


def count_recheck_outcomes_by_case(
    failed: Sequence[SevereCase], answers: Sequence[RecheckAnswer], *, with_previous: bool
) -> tuple[CaseRecheck, ...]:
    """Count the outcomes of each rechecked case. Cases that were not asked are omitted."""

    def count_answers_at(failed_case: SevereCase, place: RecheckPlace) -> RecheckCount:
        return _count_outcomes(
            [answer for answer in answers if (answer.case_id, answer.place) == (failed_case.case.id, place)],
            failed_case.kinds,
        )

    rechecks = (
        CaseRecheck(
            case_id=failed_case.case.id,
            severity=failed_case.severity,
            here=count_answers_at(failed_case, RecheckPlace.TARGET),
            previous=count_answers_at(failed_case, RecheckPlace.PREVIOUS) if with_previous else None,
        )
        for failed_case in failed
    )
    return tuple(
        failed_case
        for failed_case in rechecks
        if failed_case.here.asked or (failed_case.previous and failed_case.previous.asked)
    )


def _count_outcomes(answers: Sequence[RecheckAnswer], kinds: frozenset[FailureKind]) -> RecheckCount:
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
    """Return the address of the previous build, which is built from ``commit``.

    Raises ``ValueError`` with the reason if the address is unknown.

    ``verified_commit`` is the commit that this run verified. Commits come from deploy notices and are not trusted.
    A commit may contain only letters, digits, ``_`` and ``-``.
    """
    if commit is not None and verified_commit is not None and is_same_build(commit, verified_commit):
        raise ValueError(
            f"the last accepted run tested the same commit {commit}, so Lookout does not know the previous build"
        )
    if COMMIT_PLACEHOLDER not in template:
        return template
    if commit is None:
        raise ValueError("no accepted run has a commit, so Lookout cannot replace {commit} in previous_url")
    if not _SAFE_COMMIT.fullmatch(commit):
        raise ValueError("the commit of the last accepted run has characters that are not allowed in an address")
    return template.replace(COMMIT_PLACEHOLDER, commit)


def list_build_names_in_answer(exchange: Exchange) -> tuple[str, ...]:
    """List the build names in an answer's payload and headers, without duplicates."""
    build = exchange.wire.build if exchange.wire else None
    pages: Mapping[str, str] = exchange.evidence.page.versions if exchange.evidence.page else {}
    versions = {**(build.versions if build else {}), **pages}
    names = [exchange.app_version, *(value for name, value in versions.items() if name not in _SERVER_HEADERS)]
    return tuple(dict.fromkeys(value for value in names if value))


def find_proof_of_previous_build(
    names: Iterable[str], commit: str | None, verified_commit: str | None
) -> PreviousBuild:
    """Return the record of the previous build. Its ``proof`` states whether this build gave the answers.

    ``names`` are the build names in the answers. ``verified_commit`` is the commit that this run verified. A commit
    can prove or disprove that the build ``commit`` answered. A version proves nothing.
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
    """Return whether two names denote the same build: equal strings, or a full commit and its abbreviation."""
    return first == second or is_same_commit(first, second)
