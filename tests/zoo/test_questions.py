"""Test that the zoo classifies answers correctly as right, cut or mixed up."""

from __future__ import annotations

import pytest

from tests.zoo.bot import reply
from tests.zoo.questions import KEY, Reading, conversations, read

QUESTION = "what is plan1234?"


@pytest.mark.parametrize(
    ("seen", "reading"),
    [
        (
            "The waiting period for what is plan1234? is 24 months [Source: Policy P-100, clause 4.2].",
            Reading.RIGHT,
        ),
        (
            "The waiting period for\nwhat is plan1234?  is 24 months [Source: Policy P-100, clause 4.2].",
            Reading.RIGHT,
        ),
        ("The waiting period for what is plan1234? is 24", Reading.CUT),
        ("is 24 months [Source: Policy P-100, clause 4.2].", Reading.CUT),
        ("The waiting period for what is plan9999? is 24 months", Reading.MIXED),
        ("Suraj\nThe waiting period for what is plan1234? is 24 months", Reading.OTHER),
    ],
)
def test_a_reading_is_right_only_when_all_of_it_and_nothing_else_was_seen(seen: str, reading: Reading) -> None:
    assert read(QUESTION, seen, reply) is reading


def test_every_question_has_a_key_of_its_own_and_the_seed_decides() -> None:
    asked = [question for turns in conversations(7) for question in turns]
    assert len(asked) == 20
    assert len({KEY.findall(question)[0] for question in asked}) == 20
    assert conversations(7) == conversations(7) != conversations(8)
