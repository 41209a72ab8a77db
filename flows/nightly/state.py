"""The state of a nightly run: what the run has read, sampled, graded and judged so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flows.nightly.grading import GradedTurn, NightlyJudging
from monitors.records.nightly import CensusExample, NightlyIntake, QuestionsAsked, SeenConversation
from monitors.records.runs import CaseResult
from monitors.records.traffic import SampledConversation, StratumCount


class IntakeCheckpoint(NightlyIntake):
    """The result of reading the sources.

    The result is stored in the run's folder, so that a resumed run does not read the sources again.
    """

    questions: QuestionsAsked = QuestionsAsked(questions=0, up=0, down=0)
    strata: tuple[StratumCount, ...] = ()
    examples: tuple[CensusExample, ...] = ()
    """Redacted examples of failures.

    The field is deleted when the run ends. Alerts with examples contain copies.
    """


@dataclass(frozen=True)
class NightlyState:
    """The results of a nightly run so far. Reading creates the state, and judging completes the state.

    ``sample`` are the sampled conversations in the form that may be stored. ``turns`` are their replies with the
    newest grades. ``judged`` is ``None`` until the judge has graded.
    """

    reading: IntakeCheckpoint
    sample: tuple[SeenConversation, ...]
    turns: tuple[GradedTurn, ...]
    judged: NightlyJudging | None = None

    def with_judging(self, judged: NightlyJudging, judged_results: Sequence[CaseResult] = ()) -> NightlyState:
        """Return the state after judging. ``judged_results`` are the replies with new grades."""
        by_case = {result.case.id: result for result in judged_results}
        turns = (turn.with_result(by_case.get(turn.result.case.id, turn.result)) for turn in self.turns)
        return replace(self, turns=tuple(turns), judged=judged)

    @property
    def judging(self) -> NightlyJudging:
        """The result of judging. Raises `AssertionError` if this is called before judging."""
        if self.judged is None:
            raise AssertionError("internal error: the nightly run has not judged its sample yet")
        return self.judged

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """Each sampled reply with its last assessment, in the order of the sample."""
        return tuple(turn.result for turn in self.turns)

    @property
    def conversations(self) -> tuple[SampledConversation, ...]:
        """The sampled conversations in the form that may be stored."""
        return tuple(row.sampled for row in self.sample if row.sampled is not None)

    @property
    def sources(self) -> Mapping[str, str]:
        """The source of each sampled conversation. The keys are the ids under which conversations are stored."""
        return {row.sampled.conversation.id: row.source for row in self.sample if row.sampled is not None}
