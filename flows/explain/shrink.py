"""Finds the shortest form of a failing question that still fails in the same way, and drafts a case from it.

"In the same way" means that the same grader finds the same failure kind. If every answer to the whole question has
the same wrong fact, the answer to a shorter question must also have this wrong fact. A question that is too short
to ask for anything also fails. To exclude such questions, each shorter question is also asked at another address of
the application, where the answer to the whole question is right. The answer to the shorter question must also be
right at that address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from flows.explain.asking import CaseAsker
from flows.explain.bisect import format_outcome_reason
from flows.waiting import update_waiting
from monitors.alerts.redact import redact
from monitors.explain.shrink import ShrunkQuestion, Turns, shrink_question
from monitors.facts.language import identify_language
from monitors.plural import plural
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, Origin
from monitors.records.grades import FAILURE_WORDS, CaseOutcome, FailureKind, Judged
from monitors.records.operator_actions import CaseDraft
from monitors.records.runs import CaseResult

DRAFT_AUTHOR: Final = "lookout shrink"
POINTLESS_QUESTION_FAILURES: Final = frozenset(
    {FailureKind.MISSING_FACT, FailureKind.MISSING_CITATION, FailureKind.WRONG_CITATION, FailureKind.OVER_REFUSAL}
)
"""Failure kinds that can also occur because a shortened question no longer asks for anything."""


class FailureSignature(NamedTuple):
    """Identifies a failure by its grader, its kind and its wrong facts.

    ``claims`` are the wrong facts. If ``claims`` is empty, only the grader and the kind must match.
    """

    grader: str
    kind: FailureKind
    claims: frozenset[str] = frozenset()

    def is_found_in(self, result: CaseResult) -> bool:
        """Return whether the result has this failure."""
        return any(
            grade.failure_kind is self.kind
            and grade.grader == self.grader
            and (not self.claims or bool(self.claims & _list_wrong_fact_claims(grade)))
            for grade in result.assessment.grades
            if isinstance(grade, Judged)
        )


def build_failure_signature(result: CaseResult) -> FailureSignature | None:
    """Build the signature of a result's worst failure. Return ``None`` if the result has no failure."""
    if result.assessment.outcome is not CaseOutcome.FAILED:
        return None
    worst = result.assessment.failure_kinds[0]
    failed = [
        grade for grade in result.assessment.grades if isinstance(grade, Judged) and grade.failure_kind is worst
    ]
    return next((FailureSignature(grade.grader, worst, _list_wrong_fact_claims(grade)) for grade in failed), None)


def _list_wrong_fact_claims(grade: Judged) -> frozenset[str]:
    if grade.failure_kind is not FailureKind.WRONG_FACT:
        return frozenset()
    return frozenset(span.label for span in grade.evidence if span.where != "gold")


@dataclass
class CaseShrinker:
    """Shortens the question of one case.

    ``asker`` asks at the address where the question fails. ``control`` asks at an address where the answer is
    right; it is ``None`` if there is no such address. After `run`, ``signature`` identifies the failure, and
    ``failing`` maps each question to its last result with this failure. ``problem`` says why the last ungraded
    answer was not graded.
    """

    case: GoldCase
    asker: CaseAsker
    control: CaseAsker | None = None
    signature: FailureSignature | None = None
    problem: str = ""
    asked: int = 0
    controls: int = 0

    def __post_init__(self) -> None:
        self.failing: dict[Turns, CaseResult] = {}

    async def run(self, budget: int) -> ShrunkQuestion:
        """Find the shortest failing question. ``asker`` gets at most ``budget`` questions."""
        return await shrink_question(self.case.turns, self._ask_and_check_failure, budget=budget)

    async def _ask_and_check_failure(self, turns: Turns) -> bool | None:
        self.asked += 1
        length = sum(len(turn.split()) for turn in turns)
        update_waiting(f"{self.case.id}: question {self.asked}, {plural(length, 'word')} left")
        result = await _ask_once(self.asker, self.case, turns, self.asked)
        if result.assessment.outcome not in (CaseOutcome.FAILED, CaseOutcome.CORRECT):
            self.problem = format_outcome_reason(result)
            return None
        if turns == self.case.turns:
            self._update_signature(result)
        if self.signature is None or not self.signature.is_found_in(result):
            return False
        self.failing[turns] = result
        return turns == self.case.turns or await self._ask_whether_control_is_right(turns)

    def _update_signature(self, result: CaseResult) -> None:
        """Update the signature with the result of asking the whole question.

        If two answers have no wrong fact in common, the signature no longer requires specific wrong facts.
        """
        signature = build_failure_signature(result)
        if self.signature is None:
            self.signature = signature
        elif (
            signature is not None
            and signature[:2] == self.signature[:2]
            and not signature.claims & self.signature.claims
        ):
            self.signature = self.signature._replace(claims=frozenset())

    async def _ask_whether_control_is_right(self, turns: Turns) -> bool:
        if self.control is None:
            return True
        self.controls += 1
        result = await _ask_once(self.control, self.case, turns, self.controls)
        return result.assessment.outcome is CaseOutcome.CORRECT


async def _ask_once(asker: CaseAsker, case: GoldCase, turns: Turns, number: int) -> CaseResult:
    (result,) = await asker.ask_case(case.with_turns(turns), 1, first_repeat=number)
    return result


def build_shrunk_draft(
    shrinker: CaseShrinker, shrunk: ShrunkQuestion, *, target: str, at: datetime, account_patterns: Sequence[str]
) -> CaseDraft:
    """Build the draft of a case with the shortest question, for `lookout gold grow`.

    The draft's id depends on the question. Therefore the same question always gives the same draft.
    """
    case, result = shrinker.case, shrinker.failing[shrunk.turns]
    key = "\0".join((target, case.id, *shrunk.turns))

    redact_text = partial(redact, account_patterns=account_patterns)
    kind = shrinker.signature.kind if shrinker.signature else None
    reply = result.result.graded_text if isinstance(result.result, Exchange) else ""
    return CaseDraft(
        id=f"shrunk-{hashlib.sha256(key.encode()).hexdigest()[:24]}",
        made_at=at,
        by=DRAFT_AUTHOR,
        target=target,
        run_id=shrinker.asker.run_id,
        source_id=case.id,
        origin=Origin.PROBE,
        turns=tuple(redact_text(turn) for turn in shrunk.turns),
        gold=None if case.expected_refusal else redact_text(case.gold),
        bad_reply=redact_text(reply) if reply.strip() else None,
        failure_kind=kind,
        language=identify_language(shrunk.turns[-1]),
        suggested_severity=case.severity,
        severity_reason=f"the severity of {case.id}, because this is the failing part of its question",
        finding=redact(
            f"{FAILURE_WORDS[kind] if kind else 'failed'}, like {case.id}, with only {shrunk.length} of the "
            f"{shrunk.length_before} words of its question: {redact_text(result.assessment.reason)}"
        ),
    )
