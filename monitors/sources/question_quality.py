"""Rate the questions with which the app asks users for details, by the thumbs that users give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from monitors.facts.clarification import is_counter_question
from monitors.records.nightly import QuestionsAsked
from monitors.records.traffic import Conversation, Thumb
from monitors.stats.intervals import compute_wilson_interval


class QuestionTally(NamedTuple):
    """The number of questions that the app asked, how many were found by their wording, and their thumbs."""

    questions: int = 0
    recognised: int = 0
    up: int = 0
    down: int = 0


def measure_question_quality(tally: QuestionTally) -> QuestionsAsked:
    """Return the share of thumbs up with its confidence interval (Wilson).

    Only rated questions count. Users who rate are not a random sample, so the share can only be compared
    between nightly runs.
    """
    asked = QuestionsAsked(questions=tally.questions, recognised=tally.recognised, up=tally.up, down=tally.down)
    rated = tally.up + tally.down
    if not rated:
        return asked
    low, high = compute_wilson_interval(tally.up, rated)
    return asked.with_share(tally.up / rated, low, high)


def count_questions(conversation: Conversation) -> QuestionTally:
    """Count the questions that the app asked in one conversation.

    If the source marks such replies, its mark decides. Otherwise the wording decides.
    """
    questions = recognised = up = down = 0
    for turn in conversation.turns:
        if not (is_counter_question(turn.reply_text) if turn.is_question is None else turn.is_question):
            continue
        questions += 1
        recognised += turn.is_question is None
        if turn.feedback is not None:
            up += turn.feedback.thumb is Thumb.UP
            down += turn.feedback.thumb is Thumb.DOWN
    return QuestionTally(questions, recognised, up, down)


def add_tallies(tallies: Iterable[QuestionTally]) -> QuestionTally:
    """Return the sums of all counts."""
    return QuestionTally(*map(sum, zip(QuestionTally(), *tallies, strict=True)))
