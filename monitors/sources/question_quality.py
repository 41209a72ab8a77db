"""Measure how useful the app's clarifying questions are, based on users' thumbs up and thumbs down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from monitors.facts.clarification import is_counter_question
from monitors.records.nightly import QuestionsAsked
from monitors.records.traffic import Conversation, Thumb
from monitors.stats.intervals import compute_wilson_interval


class QuestionTally(NamedTuple):
    """The number of questions that the app asked, and the numbers of thumbs up and thumbs down on them.

    ``recognised`` counts the questions that were recognised by their wording.
    """

    questions: int = 0
    recognised: int = 0
    up: int = 0
    down: int = 0


def summarise_question_thumbs(tally: QuestionTally) -> QuestionsAsked:
    """Return the share of thumbs up among all thumbs on the app's questions, with Wilson's confidence interval.

    Questions that nobody rated are ignored. Users who give a thumb are not a random sample of all users. Therefore,
    the share does not describe all questions, but it can be compared between nightly runs.
    """
    asked = QuestionsAsked(questions=tally.questions, recognised=tally.recognised, up=tally.up, down=tally.down)
    rated = tally.up + tally.down
    if not rated:
        return asked
    low, high = compute_wilson_interval(tally.up, rated)
    return asked.with_share(tally.up / rated, low, high)


def tally_app_questions(conversation: Conversation) -> QuestionTally:
    """Count the questions that the app asked in one conversation.

    If the source marks which replies are questions, the marks decide. Otherwise, the wording of each reply decides.
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
    """Return one tally with the sums of all ``tallies``."""
    return QuestionTally(*map(sum, zip(QuestionTally(), *tallies, strict=True)))
