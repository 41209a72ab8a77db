"""Graded answers that people review, and their verdicts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import Field

from monitors.records.base import Identifier, Language, Record, Severity, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import Aspect, CaseOutcome, Judged, JudgeLineage


class AnswerVerdict(StrEnum):
    """A person's verdict on an answer. After ``UNSURE`` the question is not asked again."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSURE = "unsure"


class LabelSource(StrEnum):
    """The source of a label. Only ``REVIEW`` is an unbiased sample: alerts show only failures."""

    ALERT = "alert"
    REVIEW = "review"


class AnswerId(Record):
    """Which answer: of which run, to which case, at which repetition."""

    run_id: Identifier
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0


class ReviewCandidate(NamedTuple):
    """A graded answer that people may be asked to review, without its texts: a month has hundreds of thousands.

    ``severe`` says that its case is of severity 3. ``verdicts`` lists the graders and judges that gave a verdict,
    in one text that is equal for equal verdicts.
    """

    answer_id: AnswerId
    target: str
    severe: bool
    outcome: CaseOutcome
    verdicts: str


class SampledAnswer(NamedTuple):
    """An answer that was sampled for review, with its inclusion probability (above 0, to 1)."""

    answer_id: AnswerId
    inclusion_probability: float


class GradedAnswer(Record):
    """An answer with its outcome and every verdict on it. Texts are raw: redact them before they go anywhere.

    ``gold`` is absent for traffic, which has no right answer. ``grades`` are the verdicts of the graders and of the
    judge, if it was asked, in their order. ``issue`` is the text that a report is about, and ``ratings`` are the
    judges' ratings of the report; an answer that is not a report has neither.
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
    """An answer that was sampled for review, with its inclusion probability."""

    answer: GradedAnswer
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class ReviewedAnswer(Record):
    """An answer that people and a judge both graded; the calibration is computed from these.

    Contradictory and unsure reviews give no label.
    """

    answer_id: AnswerId
    target: Identifier
    lineage: JudgeLineage
    judge_passed: bool
    people_right: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class ReviewedRating(NamedTuple):
    """The ratings of one report by a judge and one person, from 1 to 5. ``people`` is how many rated it."""

    answer_id: AnswerId
    target: str
    lineage: JudgeLineage
    judge: int
    person: int
    people: int
    inclusion_probability: float


class RatingCount(NamedTuple):
    """How many reports a judge rated on a target, and their average."""

    target: str
    lineage: JudgeLineage
    reports: int
    average: float


class ReviewedGrade(NamedTuple):
    """A verdict of a grader without a model, and the people's verdict on the same question."""

    target: str
    grader: str
    version: str
    passed: bool
    people_right: bool
    inclusion_probability: float


class VerdictCount(NamedTuple):
    """How many verdicts one grader of one version, or one judge of one lineage, gave on a target."""

    target: str
    grader: str
    version: str
    aspect: Aspect
    lineage: JudgeLineage | None
    passed: int
    total: int
