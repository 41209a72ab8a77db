"""What a graded night comes to: counts by stratum, rates with intervals, drift, the quality of questions. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from flows.traffic_grading import is_safe_told
from monitors.drift import begin, observe, read
from monitors.estimators import estimate_rate, sequential_counts
from monitors.gate.policy import worst_first
from monitors.judge.grading import JUDGE
from monitors.records.base import Severity
from monitors.records.drift import DriftReading, DriftState, NightCount
from monitors.records.estimates import StratumTold
from monitors.records.grades import Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.nights import KindRate, QuestionsAsked
from monitors.records.traffic import Conversation, Sampled, StratumCount
from monitors.sources.question_quality import QuestionQuality, question_quality

RULES: Final = "rules"
"""Who told, where there was no judge."""
SETTLED: Final = timedelta(days=7)
"""After a drift was told, people have a week; then the new rate is what the next nights are held against."""

Assessments = Mapping[str, Sequence[Assessment]]
"""What the replies of each drawn conversation came to, by the conversation's id."""


class Weighing:
    """The counts of one night.

    ``by_judge`` says that a conversation is told only where a judge spoke, or a rule failed it. Without a judge it
    is told when the checks that every reply goes through could tell.
    """

    def __init__(
        self, strata: Sequence[StratumCount], drawn: Sequence[Sampled], said: Assessments, *, by_judge: bool
    ) -> None:
        self._strata, self._drawn, self._said, self._by_judge = strata, drawn, said, by_judge

    def said(self, conversation_id: str) -> Sequence[Assessment]:
        """What the replies of a drawn conversation came to."""
        return self._said.get(conversation_id, ())

    def is_told(self, conversation_id: str) -> bool:
        """Whether something is known of every reply of a conversation."""
        said = self.said(conversation_id)
        return bool(said) and all(self._is_told(each) for each in said)

    def severe(self) -> tuple[StratumTold, ...]:
        """How many failed with severity 3."""
        return self._counted(lambda one: one.outcome is CaseOutcome.FAILED and one.severity is Severity.PAGE)

    def failed(self) -> tuple[StratumTold, ...]:
        """How many failed in any way that counts."""
        return self._counted(lambda one: one.outcome is CaseOutcome.FAILED)

    def kinds(self, confidence: float = 0.95) -> tuple[KindRate, ...]:
        """Each kind of failure that was found, the worst first, with the share of all that have it."""
        found = Counter(
            kind for said in self._said.values() for kind in {k for one in said for k in one.failure_kinds}
        )
        return tuple(
            KindRate(
                kind=kind,
                failures=found[kind],
                rate=estimate_rate(self._counted(_has(kind)), confidence=confidence),
            )
            for kind in worst_first(found)
        )

    def _counted(self, failed: Callable[[Assessment], bool]) -> tuple[StratumTold, ...]:
        told: dict[str, int] = defaultdict(int)
        failures: dict[str, int] = defaultdict(int)
        for one in self._drawn:
            fails = any(failed(each) for each in self.said(one.conversation.id))
            failures[one.stratum] += fails
            told[one.stratum] += fails or self.is_told(one.conversation.id)
        return tuple(
            StratumTold(**each.model_dump(), told=told[each.stratum], failures=failures[each.stratum])
            for each in self._strata
        )

    def _is_told(self, assessment: Assessment) -> bool:
        if not is_safe_told(assessment):
            return False
        if not self._by_judge or assessment.outcome is CaseOutcome.FAILED:
            return True
        return any(isinstance(grade, Judged) and grade.grader == JUDGE for grade in assessment.grades)


def _has(kind: FailureKind) -> Callable[[Assessment], bool]:
    return lambda one: kind in one.failure_kinds


def strata_of(drawn_counts: Mapping[str, tuple[int, int]]) -> tuple[StratumCount, ...]:
    """Strata from how many conversations each had and how many of them were drawn, as they were stored."""
    return tuple(
        StratumCount(stratum=name, conversations=conversations, drawn=drawn)
        for name, (conversations, drawn) in drawn_counts.items()
    )


def drift_after(
    before: DriftState | None, night: datetime, failed: Sequence[StratumTold], graded_by: str
) -> tuple[DriftState, DriftReading]:
    """The test's state with one more night, and what it says. A change told a week ago is the new reference."""
    if before is not None and before.alarm is not None and night - before.alarm.raised >= SETTLED:
        before = begin(before.graded_by, "the changed rate has stood for a week and is the reference now")
    failures, told = sequential_counts(failed)
    state = observe(before, NightCount(night=night, failures=failures, told=told), graded_by)
    return state, read(state)


def questions_of(conversations: Sequence[Conversation]) -> QuestionsAsked:
    """How the application's clarifying questions were liked."""
    found = question_quality(conversations)
    if isinstance(found, QuestionQuality):
        return QuestionsAsked(
            questions=found.questions,
            up=found.up,
            down=found.down,
            share=found.share,
            low=found.low,
            high=found.high,
        )
    return QuestionsAsked(questions=found.questions, up=0, down=0)
