"""Graded answers that people review, and the human verdicts on the answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import Field

from monitors.records.base import Identifier, Language, Record, Severity, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import Aspect, CaseOutcome, Judged, JudgeLineage


class AnswerVerdict(StrEnum):
    """A person's verdict on an answer. After ``UNSURE``, Lookout does not show the answer to this person again."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSURE = "unsure"


class LabelSource(StrEnum):
    """Where a person gave a label.

    Only labels from reviews are an unbiased sample, because alerts show only failures.
    """

    ALERT = "alert"
    REVIEW = "review"


class AnswerId(Record):
    """Identifies an answer by its run, its case and its repeat."""

    run_id: Identifier
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0


class ReviewCandidate(NamedTuple):
    """A graded answer that people may review.

    A candidate does not contain the texts of the answer, because there may be hundreds of thousands of candidates.
    ``severe`` is true if the case has severity 3. ``verdicts`` lists all verdicts in one text.
    """

    answer_id: AnswerId
    target: str
    severe: bool
    outcome: CaseOutcome
    verdicts: str


class SampledAnswer(NamedTuple):
    """An answer that was sampled for review, and the probability with which it was sampled."""

    answer_id: AnswerId
    inclusion_probability: float


class GradedAnswer(Record):
    """An answer with its outcome and all verdicts on it. Its texts are not redacted.

    ``gold`` is missing for live traffic. ``issue`` and ``ratings`` are set only for an agent's report.
    """

    answer_id: AnswerId
    target: Identifier
    origin: Origin = Origin.PROBE
    asked_at: UtcTime
    severity: Severity
    language: Language
    turns: tuple[str, ...]
    answer: str
    gold: str | None = None
    expected_citation: str | None = None
    expected_refusal: bool = False
    outcome: CaseOutcome
    grades: tuple[Judged, ...] = Field(min_length=1)
    issue: str | None = None
    ratings: tuple[Judged, ...] = ()


class SpotCheck(Record):
    """A sampled answer with its texts, and the probability with which it was sampled."""

    answer: GradedAnswer
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class ReviewedAnswer(Record):
    """An answer that both people and a judge graded. Such answers are used to estimate the judge's errors.

    Answers with contradictory reviews, and unsure reviews, are not included.
    """

    answer_id: AnswerId
    target: Identifier
    lineage: JudgeLineage
    judge_passed: bool
    people_right: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class ReviewedRating(NamedTuple):
    """A judge's rating and one person's rating of the same report, from 1 to 5.

    ``people`` is the number of people who rated the report.
    """

    answer_id: AnswerId
    target: str
    lineage: JudgeLineage
    judge: int
    person: int
    people: int
    inclusion_probability: float


class RatingCount(NamedTuple):
    """The number of reports of a target that a judge rated, and the average rating."""

    target: str
    lineage: JudgeLineage
    reports: int
    average: float


class ReviewedGrade(NamedTuple):
    """The verdict of a rule-based grader, and the human verdict on the same question."""

    target: str
    grader: str
    version: str
    passed: bool
    people_right: bool
    inclusion_probability: float


class VerdictCount(NamedTuple):
    """The number of verdicts on a target by one grader version or judge lineage (model, prompt and rubric)."""

    target: str
    grader: str
    version: str
    aspect: Aspect
    lineage: JudgeLineage | None
    passed: int
    total: int
