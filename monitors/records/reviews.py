"""Judged answers that people look at again, and what they say of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Identifier, Language, Probability, Record, Severity, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind, JudgeLineage


class AnswerVerdict(StrEnum):
    """What a person says of an answer. Unsure is an answer too: the question is not asked again."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSURE = "unsure"


class LabelSource(StrEnum):
    """How a label came about. Only ``REVIEW`` is a fair sample: alerts show failures alone."""

    ALERT = "alert"
    REVIEW = "review"


class AnswerId(Record):
    """Which answer: of which run, to which case, at which repetition."""

    run_id: Identifier
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0


class JudgedAnswer(Record):
    """An answer with the judge's grade of its facts. Texts are raw: redact them before they go anywhere.

    ``gold`` is absent for traffic, where nobody wrote down the right answer.
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
    expected_refusal: bool = False
    judge_passed: bool
    judge_score: Probability | None = None
    judge_reason: str
    failure_kind: FailureKind | None = None
    lineage: JudgeLineage


class SpotCheck(Record):
    """An answer that was drawn to be looked at, and how likely that was."""

    answer: JudgedAnswer
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class Reviewed(Record):
    """An answer that people and a judge both told: what calibration is reckoned from.

    People who contradict each other, and those who are unsure, tell nothing.
    """

    answer_id: AnswerId
    target: Identifier
    lineage: JudgeLineage
    judge_passed: bool
    people_right: bool
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]
