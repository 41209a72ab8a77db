"""How good the application's clarifying questions are, by the thumbs that users gave them (T7). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from monitors.facts.clarification import asks_back
from monitors.records.base import Probability, Record
from monitors.records.traffic import Conversation, Thumb, Turn
from monitors.stats.intervals import compute_wilson_interval

Count = Annotated[int, Field(ge=0)]


class QuestionQuality(Record):
    """A nightly run's clarifying questions: how many were asked, and what users pressed below them.

    ``recognised`` of the questions were known by their wording; the others the source itself marks. ``share`` of
    the pressed ones is up, ``low`` to ``high`` its Wilson interval. Those who press are no random choice of those
    who were asked: the share compares nightly runs, it does not measure all users.
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
    """There is no figure: nobody pressed anything below a question, or none was asked."""

    outcome: Literal["ungraded"] = "ungraded"
    questions: Count
    recognised: Count = 0


class QuestionTally(NamedTuple):
    """Clarifying questions: all, those known by their wording, and the thumbs below them."""

    questions: int = 0
    recognised: int = 0
    up: int = 0
    down: int = 0


def measure_question_quality(tally: QuestionTally, *, confidence: float = 0.95) -> QuestionQuality | QualityUnknown:
    """Counts and share over the turns whose reply asks back. Unrated questions count as asked, not as bad."""
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
    """The clarifying questions of one conversation.

    What the source says of a turn counts; where it says nothing, the reply's wording does.
    """
    questions = recognised = up = down = 0
    for turn in filter(_is_question, conversation.turns):
        questions += 1
        recognised += turn.is_question is None
        if turn.feedback is not None:
            up += turn.feedback.thumb is Thumb.UP
            down += turn.feedback.thumb is Thumb.DOWN
    return QuestionTally(questions, recognised, up, down)


def add_tallies(tallies: Iterable[QuestionTally]) -> QuestionTally:
    """All of them together."""
    return QuestionTally(*map(sum, zip(QuestionTally(), *tallies, strict=True)))


def _is_question(turn: Turn) -> bool:
    return asks_back(turn.reply_text) if turn.is_question is None else turn.is_question
