"""Records of gold cases (questions with expected answers), of drafts of gold cases, and of suites."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Language, Record, Severity, Sha256, UtcTime
from monitors.records.incidents import Name
from monitors.records.sayings import SayingText
from monitors.records.triage import TriageTask

Text = Annotated[str, Field(min_length=1)]


class Pipeline(StrEnum):
    """How a case was made. `PIPELINE_MEANINGS` explains each value."""

    MANUAL = "manual"
    TEMPLATE = "template"
    DRAFT = "draft"
    ADVERSARIAL = "adversarial"
    BILINGUAL = "bilingual"
    TRIAGE = "triage"
    GROWTH = "growth"
    IMPORTED = "imported"


PIPELINE_MEANINGS: Final[Mapping[Pipeline, str]] = {
    Pipeline.MANUAL: "written by hand",
    Pipeline.TEMPLATE: "built from facts and templates by `lookout gold build`, which replaces the case each time",
    Pipeline.DRAFT: "drafted by a model from a document (`lookout gold draft`)",
    Pipeline.ADVERSARIAL: "an attack (`lookout gold starter adversarial`), or another case with its question in "
    "other words or with typing errors (`lookout gold vary`)",
    Pipeline.BILINGUAL: "a translation of another case by a model (`lookout gold translate`)",
    Pipeline.TRIAGE: "an issue with a reference (`lookout gold import`, or a line with issue keys)",
    Pipeline.GROWTH: "made from an incident, a review or a conversation of live traffic (`lookout gold grow`)",
    Pipeline.IMPORTED: "imported from another project's suite (`lookout gold import`)",
}

NEEDS_REVIEW = frozenset({Pipeline.DRAFT, Pipeline.BILINGUAL, Pipeline.GROWTH})
"""Pipelines whose cases a person must review.

Lookout refuses a suite that contains an unreviewed case of these pipelines.
"""


class Provenance(Record):
    """The origin of a case.

    A case of a pipeline in `NEEDS_REVIEW` was not written by a person. Such a case is gold only after a person has
    reviewed it.
    """

    pipeline: Pipeline = Field(description="The origin of the case, see below. `manual` means written by hand.")
    document: str | None = Field(
        default=None,
        description="The name of the document that states the gold. `lookout gold check --documents` searches for "
        "`clause` in the file with this name.",
    )
    field: str | None = Field(
        default=None,
        description="The name of the fact that the question is about. Cases with the same `cluster` and the same "
        "`field` must not contradict each other.",
    )
    clause: str | None = Field(
        default=None,
        description="The exact words of the document that prove the gold, or the number of the clause in the "
        "document.",
    )
    reviewed_by: str | None = Field(
        default=None,
        description="The person who confirmed the gold. Required for "
        + ", ".join(f"`{pipeline}`" for pipeline in Pipeline if pipeline in NEEDS_REVIEW)
        + ".",
    )
    reviewed_at: UtcTime | None = Field(
        default=None, description="The time at which this person confirmed the gold."
    )

    def derive_unreviewed(self, pipeline: Pipeline) -> Self:
        """Return the origin of a new case that ``pipeline`` makes from a case with the present origin.

        The new case is marked as not reviewed.
        """
        return self.model_copy(update={"pipeline": pipeline, "reviewed_by": None, "reviewed_at": None})


class ScriptedAnswer(Record):
    """The answer that Lookout gives if an agent interrupts its work and asks a question."""

    asks: Text | None = Field(
        default=None,
        description="Words that the agent's question must contain, in any letter case. Without this key, the "
        "entry matches every question.",
    )
    answer: Text = Field(description="The answer that Lookout gives to the agent.")


class GoldCase(Record):
    """One question with the expected answer. docs/suite.md is generated from these fields."""

    id: Identifier = Field(
        description="The name of the case in reports and alerts, and the link to its earlier results. Each id may "
        "be used only once in a suite."
    )
    turns: tuple[Text, ...] = Field(
        min_length=1,
        description="The user's messages in order, sent in one conversation. Lookout grades the answer to the "
        "last message.",
    )
    gold: Text = Field(
        description="The right answer. For an expected refusal: the reason why the application must decline."
    )
    alternatives: tuple[Text, ...] = Field(
        default=(), description="Other right answers. A reply that agrees with one of these answers is also right."
    )
    expected_refusal: bool = Field(
        default=False,
        description="`true` if the application must decline. The case then fails if the application answers "
        "the question.",
    )
    expected_citation: Text | None = Field(
        default=None,
        description="A text that one of the reply's citations must contain, for example the document's name "
        "(letter case and spacing do not matter). Without this key, any source is enough. A refusal needs no "
        "source.",
    )
    alternative_citations: tuple[Text, ...] = Field(
        default=(),
        description="Other names of the expected source, such as its name in another language. Lookout also "
        "accepts a citation that contains one of these names.",
    )
    must_say: tuple[SayingText, ...] = Field(
        default=(),
        description="The reply must contain all of these phrases, as whole words in any letter case. A phrase "
        "between two slashes is a regular expression (see below). A reply with all phrases is right; a reply "
        "that lacks a phrase fails.",
    )
    must_not_say: tuple[SayingText, ...] = Field(
        default=(),
        description="The reply must not contain any of these phrases or regular expressions. A reply that "
        "contains a forbidden phrase fails, even if it declines first.",
    )
    severity: Severity = Field(
        description="How bad a wrong answer is. Use 3 for disclosed personal data, an irreversible action, or a "
        "claim that can cost money."
    )
    language: Language = Field(
        description="The language of the reply: English, Hindi, Hinglish (Hindi in Latin letters mixed with "
        "English), German, French, Spanish, or any other."
    )
    type: Identifier = Field(
        description="The kind of question, as a word of your choice, such as `waiting_period`. Reports count "
        "cases by type. `[gate.themes]` lists the types about personal data, destructive actions and money."
    )
    provenance: Provenance = Field(description="The source of the case, see below.")
    cluster: Identifier | None = Field(
        default=None,
        description="A name that related cases share, such as the name of a policy. Related cases often fail "
        "together, so statistics do not count them as independent.",
    )
    pair: Identifier | None = Field(
        default=None,
        description="An id that a question shares with its versions in other languages. Lookout uses these pairs "
        "to compare the languages.",
    )
    month_is_30_days: bool = Field(
        default=False, description="If `true`, 30 days and one month are equal. Otherwise, they differ."
    )
    relative_tolerance: Annotated[Decimal, Field(ge=0, lt=1)] = Field(
        default=Decimal(0),
        description="Maximum difference between a quantity in the reply and in the gold, as a share of the gold. "
        "For example, 0.01 is 1 %.",
    )

    when_asked: tuple[ScriptedAnswer, ...] = Field(
        default=(),
        description="The answers for an agent that stops to ask a question. Lookout uses the first entry whose "
        "`asks` is in the question. An entry without `asks` matches every question. If no entry matches, the "
        "agent gets the target's `default_answer`.",
    )
    triage: TriageTask | None = Field(
        default=None,
        description="An issue for an agent that writes a report (see [agents that triage issues](triage.md)). "
        "Lookout grades the reply as a report, not as an answer.",
    )

    def with_turns(self, turns: tuple[str, ...]) -> Self:
        """Return a copy of the case with ``turns`` as the user's messages, for example with fewer messages."""
        return self.model_copy(update={"turns": turns})

    def with_id_and_cluster_without_pair(self, case_id: str, cluster: str | None) -> Self:
        """Return a copy of the case with the id ``case_id`` and the cluster ``cluster``, but without ``pair``.

        ``pair`` is the name that a case shares with its versions in other languages.
        """
        return self.model_copy(update={"id": case_id, "cluster": cluster, "pair": None})

    def reduce_to_question(self) -> Self:
        """Return a copy of the case without its expected answer and its cluster.

        Two such copies can be compared by their questions alone.
        """
        return self.model_copy(
            update={
                "id": f"{self.id}-asked",
                "gold": "?",
                "alternatives": (),
                "expected_refusal": False,
                "cluster": None,
            }
        )

    def derive_variant(self, case_id: str, question: str, language: Language) -> Self:
        """Return a copy of the case whose last question is ``question``, in ``language``.

        The expected answer is the same. The copy is not reviewed yet.
        """
        return self.model_copy(
            update={
                "id": case_id,
                "turns": (*self.turns[:-1], question),
                "language": language,
                "pair": None,
                "provenance": self.provenance.derive_unreviewed(Pipeline.ADVERSARIAL),
            }
        )

    def derive_translation(self, question: str, gold: str, language: Language) -> Self:
        """Return a translation of this case, which no person has reviewed yet.

        The translation also accepts the gold of this case as an answer, and both cases have the same ``pair``.
        ``must_say`` is removed, because its phrases are in the original language.
        """
        original_gold = () if self.expected_refusal or gold == self.gold else (self.gold,)
        return self.model_copy(
            update={
                "id": f"{self.id}-{language.value}",
                "turns": (question,),
                "gold": gold,
                "alternatives": tuple(dict.fromkeys((*original_gold, *self.alternatives))),
                "must_say": (),
                "language": language,
                "pair": self.pair or self.id,
                "provenance": self.provenance.derive_unreviewed(Pipeline.BILINGUAL),
            }
        )

    def replace_id_and_pair(self, case_id: str, pair: str | None) -> Self:
        """Return a copy of the case with the id ``case_id`` and the pair name ``pair``."""
        return self.model_copy(update={"id": case_id, "pair": pair})

    def with_language(self, language: Language) -> Self:
        """Return a copy of the case with another ``language``."""
        return self.model_copy(update={"language": language})

    def with_severity(self, severity: Severity) -> Self:
        """Return a copy of the case with another severity."""
        return self.model_copy(update={"severity": severity})

    def mark_reviewed(self, by: str, at: datetime) -> Self:
        """Return a copy of the case that states who reviewed it (``by``) and when (``at``)."""
        return self.model_copy(
            update={"provenance": self.provenance.model_copy(update={"reviewed_by": by, "reviewed_at": at})}
        )

    @property
    def question_and_answer_sha256(self) -> str:
        """Return a hash of the question and of all fields that determine which answers are right."""
        parts: tuple[object, ...] = (
            self.turns,
            self.gold,
            self.alternatives,
            self.expected_refusal,
            self.expected_citation,
        )
        if self.must_say or self.must_not_say:
            parts = (*parts, self.must_say, self.must_not_say)
        if self.alternative_citations:
            parts = (*parts, self.alternative_citations)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def accepted_citations(self) -> tuple[str, ...]:
        """Return all names that an answer may give as the expected source.

        Empty if the case accepts every source.
        """
        return (*([self.expected_citation] if self.expected_citation else []), *self.alternative_citations)

    @property
    def cluster_or_repository(self) -> str | None:
        """Return the name that related cases have in common.

        This is the cluster, or the issue's repository if the case has no cluster.
        """
        return self.cluster or (self.triage.issue.repository if self.triage else None)

    @property
    def question(self) -> str:
        """Return the last turn, whose answer is graded."""
        return self.turns[-1]

    def find_answer_to_agent(self, agent_question: str) -> str | None:
        """Return the suite's answer to a question that an agent asks while it works on the case.

        Return ``None`` if no entry of ``when_asked`` matches the question.
        """
        folded = agent_question.casefold()
        fitting = (
            entry.answer for entry in self.when_asked if entry.asks is None or entry.asks.casefold() in folded
        )
        return next(fitting, None)


class Suite(Record):
    """A set of cases. ``sha256`` is the hash of the cases and is stored with every result."""

    name: Identifier
    sha256: Sha256
    cases: Annotated[tuple[GoldCase, ...], Field(min_length=1)]


class DraftState(StrEnum):
    """The state of a draft. Only an accepted draft has a case in a suite."""

    DRAFTED = "drafted"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Quote(Record):
    """A part of a document, word for word.

    ``start`` and ``end`` (exclusive) are positions in the document's text, in Unicode code points.
    ``document_sha256`` identifies the edition of the document. ``before`` and ``after`` are the text around the
    quote.
    """

    document: Text
    document_sha256: Sha256
    text: Text
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(gt=0)]
    before: str = ""
    after: str = ""


class GoldDraft(Record):
    """A case that a model proposes. The case becomes gold only if a person accepts it.

    ``quote`` is the part of the document that proves the gold. A draft of a translation has no ``quote``. Instead,
    ``original`` is the case that was translated. ``why`` is the reason for the severity.
    """

    id: Identifier
    state: DraftState = DraftState.DRAFTED
    made_at: UtcTime
    model: Text
    prompt_sha256: Sha256
    case: GoldCase
    quote: Quote | None = None
    original: GoldCase | None = None
    why: str = ""
    reviewed_by: Name | None = None
    reviewed_at: UtcTime | None = None
    note: Annotated[str, Field(max_length=2_000)] = ""

    def with_case(self, case: GoldCase) -> Self:
        """Return a copy of the draft that contains ``case``, the version of its case that a person has edited."""
        return self.model_copy(update={"case": case})

    def with_severity(self, severity: Severity, why: str) -> Self:
        """Return a copy of the draft with the severity that a person has chosen, and the reason ``why``."""
        return self.model_copy(update={"case": self.case.with_severity(severity), "why": why})

    def accept(self, case: GoldCase, *, by: str, at: datetime) -> Self:
        """Return a copy of the draft that is marked as accepted.

        ``case`` is the case that was added to the suite.
        """
        return self.model_copy(
            update={"state": DraftState.ACCEPTED, "reviewed_by": by, "reviewed_at": at, "case": case}
        )

    def reject(self, note: str, *, by: str, at: datetime) -> Self:
        """Return a copy of the draft that is marked as rejected. ``note`` is the reason."""
        return self.model_copy(
            update={"state": DraftState.REJECTED, "reviewed_by": by, "reviewed_at": at, "note": note}
        )

    @model_validator(mode="after")
    def _require_source_and_review_fields(self) -> Self:
        if (self.quote is None) == (self.original is None):
            raise ValueError(
                "a draft must have either the `quote` of a document or the `original` of a translation"
            )
        decided = self.state is not DraftState.DRAFTED
        if decided != (self.reviewed_by is not None) or decided != (self.reviewed_at is not None):
            raise ValueError(
                "a draft must have `reviewed_by` and `reviewed_at` if, and only if, a person decided on it"
            )
        return self


class DraftOutcome(Record):
    """A person's decision on a `CaseDraft`.

    If ``joined`` is true, the draft was accepted and added to ``suite`` as the case ``case_id``.
    """

    draft_id: Identifier
    at: UtcTime
    by: Name
    joined: bool
    case_id: Identifier | None = None
    suite: str = ""
    note: Annotated[str, Field(max_length=2_000)] = ""

    @model_validator(mode="after")
    def _require_case_id_if_joined(self) -> Self:
        if self.joined != (self.case_id is not None):
            raise ValueError("an outcome must have a `case_id` if, and only if, the draft was added to a suite")
        return self
