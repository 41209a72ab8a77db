"""Test the rate of question quality, which is computed from the ratings of clarifying questions.

Without any rating, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.records.nightly import QuestionsAsked
from monitors.records.traffic import Conversation, Feedback, Thumb, Turn
from monitors.sources.question_quality import (
    add_tallies,
    summarise_question_thumbs,
    tally_app_questions,
)
from monitors.stats.intervals import compute_wilson_interval

Pressed = tuple[bool, Thumb | None]


def conversation(*pressed: Pressed) -> Conversation:
    turns = tuple(
        Turn(
            user_text="q", reply_text="which?", is_question=asks, feedback=Feedback(thumb=thumb) if thumb else None
        )
        for asks, thumb in pressed
    )
    return Conversation(id="c", origin_id="c", completed_at=datetime(2026, 3, 1, tzinfo=UTC), turns=turns)


def quality_of(conversations: Sequence[Conversation]) -> QuestionsAsked:
    return summarise_question_thumbs(add_tallies(map(tally_app_questions, conversations)))


def test_thumbs_below_questions_are_counted_and_others_are_not() -> None:
    night = [
        conversation((True, Thumb.UP), (False, Thumb.DOWN), (True, None)),
        conversation((True, Thumb.DOWN), (True, Thumb.UP), (False, None)),
        conversation((True, Thumb.UP)),
    ]
    quality = quality_of(night)
    assert (quality.questions, quality.up, quality.down, quality.share) == (5, 3, 1, 0.75)
    assert (quality.low, quality.high) == pytest.approx((0.3006, 0.9544), abs=1e-4)  # statsmodels, Wilson, 3 of 4


@pytest.mark.parametrize(
    ("night", "questions"),
    [([], 0), ([conversation((False, Thumb.UP))], 0), ([conversation((True, None), (True, None))], 2)],
)
def test_without_a_thumb_nothing_is_said(night: Sequence[Conversation], questions: int) -> None:
    assert quality_of(night) == QuestionsAsked(questions=questions, up=0, down=0)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([Thumb.UP, Thumb.DOWN, None])), min_size=1))
def test_how_turns_are_spread_over_conversations_does_not_matter(turns: list[Pressed]) -> None:
    together = quality_of([conversation(*turns)])
    assert quality_of([conversation(turn) for turn in turns]) == together
    if together.share is not None:
        assert (together.low, together.high) == compute_wilson_interval(together.up, together.up + together.down)
        assert together.low <= together.share <= together.high
