"""From what a driver gave or raised to the record that leaves the station."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monitors.errors import ProbeError
from monitors.probes.breaker import CircuitBreaker
from monitors.probes.driver import Answer
from monitors.probes.schedule import Question
from monitors.records.base import Blame
from monitors.records.exchanges import Attempt, Exchange, NoAnswer, NoAnswerReason


@dataclass(frozen=True)
class Asking:
    """One try of one question: `failed` are the tries before it, `concurrency` how many were under way with it."""

    run_id: str
    question: Question
    asked_at: datetime
    failed: tuple[Attempt, ...]
    concurrency: int

    @property
    def evidence_name(self) -> str:
        """The beginning of the names of evidence files: case, repeat, try. A later try never overwrites."""
        return f"{self.question.case.id}.r{self.question.repeat}.t{len(self.failed)}"

    def exchange(self, answer: Answer) -> Exchange:
        """A whole answer."""
        return Exchange(
            run_id=self.run_id,
            case_id=self.question.case.id,
            repeat=self.question.repeat,
            turns=self.question.case.turns,
            earlier_answers=answer.earlier,
            visible_text=answer.visible_text,
            wire=answer.wire,
            graded_channel=answer.graded_channel,
            asked_at=self.asked_at,
            timings=answer.timings,
            app_path=answer.app_path,
            app_version=answer.app_version,
            evidence=answer.evidence,
            failed_attempts=self.failed,
            concurrency=self.concurrency,
        )

    def attempt(self, error: ProbeError) -> Attempt:
        """A try that gave nothing and is followed by another."""
        return Attempt(started_at=self.asked_at, blame=error.blame, reason=error.reason.value, detail=str(error))

    def no_answer(self, error: ProbeError) -> NoAnswer:
        """The last try gave nothing either."""
        return self._without_answer(error.reason, error.blame, str(error)).model_copy(
            update={"partial_text": error.partial_text, "evidence": error.evidence}
        )

    def not_asked(self, breaker: CircuitBreaker) -> NoAnswer:
        """The circuit is open."""
        return self._without_answer(NoAnswerReason.CIRCUIT_OPEN, breaker.blame, breaker.why)

    def _without_answer(self, reason: NoAnswerReason, blame: Blame, detail: str) -> NoAnswer:
        return NoAnswer(
            run_id=self.run_id,
            case_id=self.question.case.id,
            repeat=self.question.repeat,
            turns=self.question.case.turns,
            reason=reason,
            blame=blame,
            detail=detail,
            asked_at=self.asked_at,
            failed_attempts=self.failed,
            concurrency=self.concurrency,
        )
