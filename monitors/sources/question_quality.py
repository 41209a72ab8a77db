"""How good the application's clarifying questions are, by the thumbs that users gave them (T7). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from monitors.records.base import Probability, Record
from monitors.records.traffic import Conversation, Thumb, Turn
from monitors.stats import wilson

Count = Annotated[int, Field(ge=0)]


class QuestionQuality(Record):
    """A night's clarifying questions: how many were asked, and what users pressed below them.

    ``share`` of the pressed ones is up, ``low`` to ``high`` its Wilson interval. Those who press are no random
    choice of those who were asked: it compares nights, it does not measure all users.
    """

    outcome: Literal["rated"] = "rated"
    questions: Annotated[int, Field(ge=1)]
    up: Count
    down: Count
    share: Probability
    low: Probability
    high: Probability
    confidence: Probability


class QualityUntold(Record):
    """Nobody pressed anything below a question, or none was asked: there is nothing to say."""

    outcome: Literal["untold"] = "untold"
    questions: Count


class _Tally(NamedTuple):
    questions: int
    up: int
    down: int


def question_quality(
    conversations: Iterable[Conversation], *, confidence: float = 0.95
) -> QuestionQuality | QualityUntold:
    """Counts and share over the turns whose reply asks back. Unrated questions count as asked, not as bad."""
    tally = _tally(turn for one in conversations for turn in one.turns if turn.is_question)
    pressed = tally.up + tally.down
    if not pressed:
        return QualityUntold(questions=tally.questions)
    low, high = wilson(tally.up, pressed, confidence=confidence)
    return QuestionQuality(
        questions=tally.questions,
        up=tally.up,
        down=tally.down,
        share=tally.up / pressed,
        low=low,
        high=high,
        confidence=confidence,
    )


def _tally(questions: Iterable[Turn]) -> _Tally:
    asked = up = down = 0
    for turn in questions:
        asked += 1
        if turn.feedback is not None:
            up += turn.feedback.thumb is Thumb.UP
            down += turn.feedback.thumb is Thumb.DOWN
    return _Tally(asked, up, down)
