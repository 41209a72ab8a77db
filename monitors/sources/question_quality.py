"""Rate the application's clarifying questions by the users' thumbs (T7). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from monitors.facts.clarification import asks_back
from monitors.records.base import Probability, Record
from monitors.records.traffic import Conversation, Thumb
from monitors.stats.intervals import compute_wilson_interval

Count = Annotated[int, Field(ge=0)]


class QuestionQuality(Record):
    """A nightly run's clarifying questions: how many were asked, and how users rated them.

    ``recognised`` counts the questions found by their wording; the source marks the others. ``share`` is the part
    of the ratings that is up, ``low`` to ``high`` its Wilson interval. Users who rate are not a random sample: the
    share compares nightly runs, it does not measure all users.
    """

    outcome: Literal["rated"] = "rated"
    questions: Annotated[int, Field(ge=1)]
    recognised: Count = 0
    up: Count
    down: Count
    share: Probability
    low: Probability
    high: Probability
    confidence: Probability


class QualityUnknown(Record):
    """No rating is known: no question was rated, or none was asked."""

    outcome: Literal["ungraded"] = "ungraded"
    questions: Count
    recognised: Count = 0


class QuestionTally(NamedTuple):
    """Counts of clarifying questions: all, those found by their wording, and their thumbs up and down."""

    questions: int = 0
    recognised: int = 0
    up: int = 0
    down: int = 0


def measure_question_quality(tally: QuestionTally, *, confidence: float = 0.95) -> QuestionQuality | QualityUnknown:
    """Compute the share of thumbs up with its interval. Unrated questions count as asked, not as bad."""
    rated = tally.up + tally.down
    if not rated:
        return QualityUnknown(questions=tally.questions, recognised=tally.recognised)
    low, high = compute_wilson_interval(tally.up, rated, confidence=confidence)
    return QuestionQuality(
        questions=tally.questions,
        recognised=tally.recognised,
        up=tally.up,
        down=tally.down,
        share=tally.up / rated,
        low=low,
        high=high,
        confidence=confidence,
    )


def count_questions(conversation: Conversation) -> QuestionTally:
    """Count the clarifying questions of one conversation.

    The source's own mark decides; without one, the reply's wording does.
    """
    questions = recognised = up = down = 0
    for turn in conversation.turns:
        if not (asks_back(turn.reply_text) if turn.is_question is None else turn.is_question):
            continue
        questions += 1
        recognised += turn.is_question is None
        if turn.feedback is not None:
            up += turn.feedback.thumb is Thumb.UP
            down += turn.feedback.thumb is Thumb.DOWN
    return QuestionTally(questions, recognised, up, down)


def add_tallies(tallies: Iterable[QuestionTally]) -> QuestionTally:
    """Add the tallies field by field."""
    return QuestionTally(*map(sum, zip(QuestionTally(), *tallies, strict=True)))
