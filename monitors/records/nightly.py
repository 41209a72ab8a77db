"""The record of a nightly run over live traffic: its census, its sampled conversations, and its results.

The census counts what rules see in every conversation, not in a sample.
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
    """What a rule can see in a conversation without knowing the right answer."""

    DISCLOSURE = "disclosure"
    """A reply gives away personal data or a secret that the user had not written."""
    ERROR_LEAK = "error_leak"
    """A reply is an error of the machinery behind the application."""
    NO_ANSWER = "no_answer"
    """The user's last message got nothing back."""
    WRONG_LANGUAGE = "wrong_language"
    """A reply is in another language than its question."""
    REFUSAL = "refusal"
    """A reply declines. Whether it should have is not known without the right answer."""

    @property
    def failure_kind(self) -> FailureKind | None:
        """The failure kind of a reply; ``None`` for kinds that are not a failure of a reply."""
        return _FAILURE_KINDS.get(self)

    @property
    def always_fails(self) -> bool:
        """Whether a single occurrence is a failure. Of the other kinds only a change of the rate matters."""
        return self in _ALWAYS_FAILING


_FAILURE_KINDS = {
    CensusKind.DISCLOSURE: FailureKind.PII_DISCLOSURE,
    CensusKind.ERROR_LEAK: FailureKind.ERROR_LEAK,
    CensusKind.WRONG_LANGUAGE: FailureKind.WRONG_LANGUAGE,
}
_ALWAYS_FAILING = frozenset({CensusKind.DISCLOSURE, CensusKind.ERROR_LEAK, CensusKind.NO_ANSWER})


class CensusRate(Record):
    """How many of a nightly run's conversations show one kind.

    ``graded`` is the number of conversations in which the kind can be graded: one without a reply cannot show an
    error, one of two words has no language. ``first_at`` and ``last_at`` are when the first and the last ``found``
    conversation were completed; ``example_id`` is the stored id of the first.
    """

    kind: CensusKind
    found: Count
    graded: Count
    first_at: UtcTime | None = None
    last_at: UtcTime | None = None
    example_id: Identifier | None = None

    @property
    def share(self) -> float | None:
        """From 0 to 1; ``None`` where nothing was graded."""
        return self.found / self.graded if self.graded else None

    @model_validator(mode="after")
    def _check_found(self) -> Self:
        if self.found > self.graded:
            raise ValueError("more conversations were found than graded")
        if (self.found > 0) != (self.first_at is not None and self.last_at is not None):
            raise ValueError("an entry must have a first and a last time if, and only if, something was found")
        return self


class CensusExample(Record):
    """One conversation of a kind for a message: redacted and cut. ``finding`` is what the rule saw."""

    kind: CensusKind
    asked: Redacted
    answered: Redacted
    finding: Redacted


Rate = RateEstimate | RateUnknown


class SeenConversation(Record):
    """A conversation that a nightly run counted. Its texts are stored, protected, only if it was ``sampled``.

    ``id`` is its stored id: the source's own, unless that identifies a person.
    """

    target: Identifier
    source: Identifier
    run_id: Identifier
    id: Identifier
    completed_at: UtcTime
    stratum: Identifier
    sampled: SampledConversation | None = None


class KindRate(Record):
    """How many of the graded conversations failed in one way, and the share of all of the run's that did."""

    kind: FailureKind
    failures: Count
    rate: Rate


class QuestionsAsked(Record):
    """The application's clarifying questions and their thumbs; ``share`` is ``None`` without a thumb.

    ``recognised`` questions were detected by their wording, the others were marked by the source.
    """

    questions: Count
    recognised: Count = 0
    up: Count
    down: Count
    share: Probability | None = None
    low: Probability | None = None
    high: Probability | None = None

    def add_share(self, share: float, low: float, high: float) -> Self:
        """Add the share of the thumbs that is up, with its interval."""
        return self.model_copy(update={"share": share, "low": low, "high": high})


class FactsChecked(Record):
    """How many of the sampled ``replies`` had their facts checked: by a judge, or by rules against the gold set."""

    replies: Count = 0
    by_judge: Count = 0
    by_gold: Count = 0

    @property
    def total(self) -> int:
        """Replies whose facts were checked by either."""
        return self.by_judge + self.by_gold


class KnownQuestions(Record):
    """Sampled conversations whose question is in the gold set and that rules could grade against it."""

    conversations: Count
    failed: Count


class ReportsRated(Record):
    """The sampled reports on issues, and how useful a judge finds them: ``mean`` of 1 to 5 with its 95 % interval.

    Without any rating there is no mean. An empty report or a template is not rated.
    """

    reports: Count
    rated: Count = 0
    mean: Annotated[float, Field(ge=1, le=5)] | None = None
    low: Annotated[float, Field(ge=1, le=5)] | None = None
    high: Annotated[float, Field(ge=1, le=5)] | None = None


class NightlyIntake(Record):
    """What a nightly run read.

    ``read`` conversations were new, ``known`` ones were read by an earlier run; ``repeated`` items occurred more
    than once and count once. ``interrupted`` are sources that could not be read to their end: their watermarks do
    not move. ``census`` is what rules saw in every conversation that was read, sampled or not; old runs have none.
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
    """How many items could not be used, by reason; runs of earlier versions have none."""
    interrupted: tuple[str, ...] = ()
    census: tuple[CensusRate, ...] = ()
    citations_checked: dict[Identifier, bool] = Field(default_factory=dict[Identifier, bool])
    """Where citations are graded: by source, whether it holds what answers cite, so that they were checked."""


class NightlyReport(NightlyIntake):
    """The results of one nightly run of one target.

    ``severe`` is the share of conversations with a failure of severity 3, ``failed`` with any failure, found by
    rules or by a check of the facts; unknown if too few facts were checked. ``strata`` are the counts behind
    ``severe``, ``fact_strata`` those of wrong facts in conversations that rules passed. ``reviews`` counts the
    reviews of the judge's verdicts that its correction uses. ``graded_by`` names the graders: rates of different
    graders are not comparable. ``reports`` is set if a sampled conversation is an agent's job. ``drift`` is the
    drift test's state; ``drift_reading`` is absent if this run did not count for it.
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
        """``Partial`` if something is missing, ``Empty`` without a new conversation, else ``Graded``."""
        if self.shortfalls:
            return "Partial"
        return "Graded" if self.read else "Empty"

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What is missing in the nightly run, one text each; empty for a complete run."""
        judging = self.judging
        texts = [f"{plural(len(self.interrupted), 'source')} not read completely" if self.interrupted else ""]
        if judging.void_groups:
            texts.append(f"{plural(judging.void_grades, 'judge grade was', 'judge grades were')} discarded")
        if judging.is_short:
            texts.append(f"the judge graded {judging.judged:,} of {plural(judging.reached_judge, 'answer')}")
        if judging.budget_reached:
            texts.append("the judge's budget was used up")
        return tuple(text for text in texts if text)
