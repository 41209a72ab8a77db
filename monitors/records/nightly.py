"""The record of a nightly run over live traffic: its census, its sampled conversations, and what it came to.

The census counts what rules saw in every conversation, not in a sample.
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
from monitors.records.traffic import SampledConversation, SourceWarning, Watermark

Count = Annotated[int, Field(ge=0)]


class CensusKind(StrEnum):
    """What a rule can see in a conversation without knowing what is right."""

    DISCLOSURE = "disclosure"
    """A reply gives away personal data or a secret that the user had not written."""
    ERROR_LEAK = "error_leak"
    """A reply is an error of the machinery behind the application."""
    NO_ANSWER = "no_answer"
    """The user's last message got nothing back."""
    WRONG_LANGUAGE = "wrong_language"
    """A reply is in another language than its question."""
    REFUSAL = "refusal"
    """A reply declines. Whether it should have stays open without knowing what is right."""

    @property
    def failure_kind(self) -> FailureKind | None:
        """The kind of failure that it is, where it is one of a reply."""
        return _FAILURES.get(self)

    @property
    def always_fails(self) -> bool:
        """Whether a single one is a failure. The others are rates, of which only a change means something."""
        return self in _ALWAYS


_FAILURES = {
    CensusKind.DISCLOSURE: FailureKind.PII_DISCLOSURE,
    CensusKind.ERROR_LEAK: FailureKind.ERROR_LEAK,
    CensusKind.WRONG_LANGUAGE: FailureKind.WRONG_LANGUAGE,
}
_ALWAYS = frozenset({CensusKind.DISCLOSURE, CensusKind.ERROR_LEAK, CensusKind.NO_ANSWER})


class CensusRate(Record):
    """How many of a nightly run's conversations show one kind.

    ``graded`` are those in which the kind can be graded: a conversation without any reply cannot show an error, one
    of two words has no language. ``first_at`` and ``last_at`` are when the first and the last of those ``found``
    were completed; ``example_id`` is the first of them, by the id that it is stored under.
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
    def _found_among_graded(self) -> Self:
        if self.found > self.graded:
            raise ValueError("no more can be found than were graded")
        if (self.found > 0) != (self.first_at is not None and self.last_at is not None):
            raise ValueError("what was found has a first and a last time, and nothing else has")
        return self


class CensusExample(Record):
    """One conversation of a kind, as a message may show it: redacted and cut. ``finding`` is what the rule saw."""

    kind: CensusKind
    asked: Redacted
    answered: Redacted
    finding: Redacted


Rate = RateEstimate | RateUnknown


class SeenConversation(Record):
    """A conversation that a nightly run counted. Its texts are stored, protected, only where it was ``sampled``.

    ``id`` is the one that it is stored under: the source's own, unless that identifies a person.
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
    """The application's clarifying questions and the thumbs below them; no share where nobody pressed any.

    ``recognised`` of them were known by their wording, the others by what the source says itself.
    """

    questions: Count
    recognised: Count = 0
    up: Count
    down: Count
    share: Probability | None = None
    low: Probability | None = None
    high: Probability | None = None


class FactsChecked(Record):
    """How many of the sampled ``replies`` had their facts checked: by a judge, or by rules against the gold set."""

    replies: Count = 0
    by_judge: Count = 0
    by_gold: Count = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.by_judge + self.by_gold


class KnownQuestions(Record):
    """Sampled conversations whose question stands in the gold set and that rules could grade against it."""

    conversations: Count
    failed: Count


class ReportsRated(Record):
    """The sampled reports on issues, and how useful a judge finds them: ``mean`` of 1 to 5 with its 95 % interval.

    Without any rating there is no figure. A report that is none (empty, a template) is not rated.
    """

    reports: Count
    rated: Count = 0
    mean: Annotated[float, Field(ge=1, le=5)] | None = None
    low: Annotated[float, Field(ge=1, le=5)] | None = None
    high: Annotated[float, Field(ge=1, le=5)] | None = None


class NightlyIntake(Record):
    """What a nightly run read.

    ``read`` conversations were new, ``known`` had been taken by an earlier run; ``repeated`` items stood there more
    than once and count once. ``interrupted`` are sources that could not be read to their end: their watermarks stay
    where they were. ``census`` is what rules saw in every conversation that was read, sampled or not; a run from
    before there was one has none.
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
    interrupted: tuple[str, ...] = ()
    census: tuple[CensusRate, ...] = ()


class NightlyReport(NightlyIntake):
    """What one nightly run of one target came to.

    ``severe`` is the share of conversations with a failure of severity 3, ``failed`` with
    any failure: what rules found, and of the rest what was wrong in its facts; unknown where too few facts were
    checked. ``strata`` stand behind ``severe``, ``fact_strata`` behind what was wrong in the facts of those that
    rules passed. ``reviews`` of the judge's verdicts by people stand behind its correction. ``graded_by`` names
    what graded: another one's rates are other rates. ``reports`` are there where a sampled
    conversation is an agent's job. ``drift`` is the test's state, ``drift_reading`` absent where this run was not
    counted for it.
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

    def census_of(self, kind: CensusKind) -> CensusRate | None:
        """What the census says of one kind; ``None`` where it did not check it."""
        return next((one for one in self.census if one.kind is kind), None)

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the nightly run should have had and did not, one each; a run without any is whole."""
        judging = self.judging
        found = [f"{len(self.interrupted)} of the sources not read to their end" if self.interrupted else ""]
        if judging.void_groups:
            void = plural(judging.void_grades, "grade of the judge is", "grades of the judge are")
            found.append(f"{void} void")
        if judging.is_short:
            found.append(f"the judge graded {judging.judged:,} of {plural(judging.reached_judge, 'answer')}")
        if judging.budget_reached:
            found.append("the judge's budget was reached")
        return tuple(one for one in found if one)
