"""Records of a nightly run on live traffic: its census, its sampled conversations and its results.

The census counts what rules find in every conversation.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.plural import plural
from monitors.records.base import Identifier, Probability, Record, UtcTime
from monitors.records.estimates import DriftReading, DriftState, GradedStratum, RateEstimate, RateUnknown
from monitors.records.grades import FailureKind
from monitors.records.incidents import Redacted
from monitors.records.runs import Judging
from monitors.records.traffic import SampledConversation, SourceWarning, UnusableReason, Watermark

Count = Annotated[int, Field(ge=0)]


class CensusKind(StrEnum):
    """A kind of problem that rules can find in a conversation without knowing the right answer."""

    DISCLOSURE = "disclosure"
    """A reply contains personal data or a secret that was not in the user's messages."""
    ERROR_LEAK = "error_leak"
    """A reply shows a technical error."""
    NO_ANSWER = "no_answer"
    """The user's last message got no reply."""
    WRONG_LANGUAGE = "wrong_language"
    """A reply is in another language than the question."""
    REFUSAL = "refusal"
    """A reply declines to answer, rightly or not."""

    @property
    def failure_kind(self) -> FailureKind | None:
        """Return the failure kind, or ``None`` if the finding is not a failure of a reply."""
        return _FAILURE_KINDS.get(self)

    @property
    def always_fails(self) -> bool:
        """Return whether every finding of this kind is a failure.

        For all other kinds, only a large increase is a failure.
        """
        return self in _ALWAYS_FAILING


_FAILURE_KINDS = {
    CensusKind.DISCLOSURE: FailureKind.PII_DISCLOSURE,
    CensusKind.ERROR_LEAK: FailureKind.ERROR_LEAK,
    CensusKind.WRONG_LANGUAGE: FailureKind.WRONG_LANGUAGE,
}
_ALWAYS_FAILING = frozenset({CensusKind.DISCLOSURE, CensusKind.ERROR_LEAK, CensusKind.NO_ANSWER})


class CensusRate(Record):
    """The number of conversations in a night that have one kind of finding.

    ``graded`` is the number of conversations for which rules can decide about this kind. ``first_at`` and
    ``last_at`` are the times of the first and the last conversation with the finding. ``example_id`` is the id of
    the first such conversation.
    """

    kind: CensusKind
    found: Count
    graded: Count
    first_at: UtcTime | None = None
    last_at: UtcTime | None = None
    example_id: Identifier | None = None

    @property
    def finding_share(self) -> float | None:
        """Return the share (0 to 1) of graded conversations with the finding, or ``None`` if nothing was graded."""
        return self.found / self.graded if self.graded else None

    @model_validator(mode="after")
    def _require_consistent_found_count(self) -> Self:
        if self.found > self.graded:
            raise ValueError("more conversations were found than graded")
        if (self.found > 0) != (self.first_at is not None and self.last_at is not None):
            raise ValueError("an entry must have a first and a last time if, and only if, something was found")
        return self


class CensusExample(Record):
    """An example of a finding, for use in a message. The example is redacted and shortened."""

    kind: CensusKind
    asked: Redacted
    answered: Redacted
    finding: Redacted


Rate = RateEstimate | RateUnknown


class SeenConversation(Record):
    """A conversation that a nightly run counted. Its texts are stored only if ``sampled`` is true."""

    target: Identifier
    source: Identifier
    run_id: Identifier
    id: Identifier
    completed_at: UtcTime
    stratum: Identifier
    sampled: SampledConversation | None = None


class KindRate(Record):
    """How many graded conversations have one kind of failure, and the estimated share of all conversations."""

    kind: FailureKind
    failures: Count
    rate: Rate


class QuestionsAsked(Record):
    """How many clarifying questions the application asked, and how users rated them with thumbs up or down.

    ``recognised`` is the number of questions that were recognised by their wording. All other questions are
    marked as questions in the source. ``share`` is the share of thumbs up, with the interval from ``low`` to
    ``high``.
    """

    questions: Count
    recognised: Count = 0
    up: Count
    down: Count
    share: Probability | None = None
    low: Probability | None = None
    high: Probability | None = None

    def with_share(self, share: float, low: float, high: float) -> Self:
        """Return a copy of the counts with the share of thumbs up, and with the limits of its interval."""
        return self.model_copy(update={"share": share, "low": low, "high": high})


class FactsChecked(Record):
    """How many of the sampled ``replies`` had their facts checked, by a judge or against the gold set."""

    replies: Count = 0
    by_judge: Count = 0
    by_gold: Count = 0

    @property
    def total(self) -> int:
        """Return the number of replies whose facts were checked."""
        return self.by_judge + self.by_gold


class KnownQuestions(Record):
    """The sampled conversations whose question is in the gold set. Rules can grade the facts in these replies."""

    conversations: Count
    failed: Count


class ReportsRated(Record):
    """How many of an agent's sampled reports a judge rated, and their average rating.

    The rating is from 1 to 5, and the average has a 95 % interval. Empty reports and templates are not rated.
    """

    reports: Count
    rated: Count = 0
    mean: Annotated[float, Field(ge=1, le=5)] | None = None
    low: Annotated[float, Field(ge=1, le=5)] | None = None
    high: Annotated[float, Field(ge=1, le=5)] | None = None


class NightlyIntake(Record):
    """What a nightly run read.

    - ``read`` counts new conversations, and ``known`` counts conversations that an earlier run had read.
    - ``repeated`` counts the items that occurred more than once in a source. Such an item is counted once.
    - ``interrupted`` contains the names of the sources that were not read to their end.
    - ``census`` contains what rules found in all conversations.
    """

    since: UtcTime
    until: UtcTime
    read: Count
    known: Count
    repeated: Count = 0
    questions: QuestionsAsked
    watermarks: tuple[Watermark, ...] = ()
    issues: tuple[SourceWarning, ...] = ()
    issue_count: Count = 0
    unusable: dict[UnusableReason, Count] = Field(default_factory=dict[UnusableReason, Count])
    """The number of items that could not be used, by reason. The field is empty in reports of earlier versions."""
    interrupted: tuple[str, ...] = ()
    census: tuple[CensusRate, ...] = ()
    citations_checked: dict[Identifier, bool] = Field(default_factory=dict[Identifier, bool])
    """For each source, whether citations were checked.

    Citations are checked only if some conversations from the source contain citations.
    """


class NightlyReport(NightlyIntake):
    """The results of a nightly run for one target.

    - ``severe`` is the share of conversations with a failure of severity 3, and ``failed`` is the share with any
      failure.
    - ``strata`` contains the counts behind ``severe``, and ``fact_strata`` contains the counts of wrong facts.
    - ``reviews`` counts human reviews, which are used to correct the rates for the errors of the judge.
    - ``graded_by`` contains the names of the graders. Rates from different graders are not comparable.
    - ``drift_reading`` is ``None`` if the drift test ignored this run.
    """

    run_id: Identifier
    target: Identifier
    due_at: UtcTime
    finished_at: UtcTime
    sampled: Count
    strata: tuple[GradedStratum, ...] = ()
    fact_strata: tuple[GradedStratum, ...] = ()
    severe: Rate
    failed: Rate
    kinds: tuple[KindRate, ...] = ()
    facts: FactsChecked = FactsChecked()
    known_questions: KnownQuestions | None = None
    reports: ReportsRated | None = None
    reviews: Count = 0
    graded_by: str
    drift: DriftState | None = None
    drift_reading: DriftReading | None = None
    judging: Judging

    @property
    def state(self) -> str:
        """Return the state of the run: ``Partial``, ``Empty`` or ``Graded``.

        A run is ``Partial`` if it has shortfalls, and ``Empty`` if it has no new conversations.
        """
        if self.shortfalls:
            return "Partial"
        return "Graded" if self.read else "Empty"

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Return texts that state what is missing in the run. The result is empty if the run is complete."""
        judging = self.judging
        texts = [f"{plural(len(self.interrupted), 'source')} not read completely" if self.interrupted else ""]
        if judging.void_groups:
            texts.append(f"{plural(judging.void_grades, 'judge grade was', 'judge grades were')} discarded")
        if judging.has_too_few_verdicts:
            texts.append(f"the judge graded {judging.judged:,} of {plural(judging.needed_judge_count, 'answer')}")
        if judging.budget_reached:
            texts.append("the judge's budget was used up")
        return tuple(text for text in texts if text)
