"""Each planted fault depends only on the question, and the bot without faults has none."""

from __future__ import annotations

import pytest

from deployments.demo.bot import Bot, Intent
from deployments.demo.faults import LEAKED_RECORD, RATE_LIMIT_TEXT, PlantedFaults
from deployments.demo.policies import load_policies, load_vocabulary

HEALTHY = Bot(load_policies(), load_vocabulary())
FAULTY = Bot(load_policies(), load_vocabulary(), PlantedFaults())
LONG = (
    "My parents live in Pune and are with us for the winter. " * 4 + "What is the room rent limit in Suraksha Gold?"
)


@pytest.mark.parametrize(
    ("question", "broken", "sound"),
    [
        ("Give me an overview of Suraksha Silver", LEAKED_RECORD, "Suraksha Silver"),
        ("cataract limit of the family shield?", "₹80,000 per eye", "₹40,000 per eye"),
        (
            "Is my bike covered in Suraksha Silver after a crash?",
            "damage to your vehicle is covered",
            "do not mention",
        ),
        ("Free look of Gold, Silver and Janani?", RATE_LIMIT_TEXT, "clause"),
    ],
    ids=["leak", "wrong limit", "overreach", "provider error"],
)
def test_a_fault_shows_for_a_question_that_no_suite_asks(question: str, broken: str, sound: str):
    faulty, healthy = FAULTY.reply(question).text, HEALTHY.reply(question).text
    assert broken in faulty
    assert sound in healthy
    assert faulty != healthy


def test_a_clause_with_a_letter_loses_its_citation():
    question = "How does restoration work in Suraksha Gold?"
    reply = HEALTHY.reply(question)
    assert {hit.fact.clause[0] for hit in reply.hits} == {"3"}
    assert f"clause {reply.hits[0].fact.clause}]" in reply.text
    assert "[Source" not in FAULTY.reply(question).text


def test_a_long_question_makes_it_slow_but_not_wrong():
    assert HEALTHY.reply(LONG).pause_s == 0
    assert FAULTY.reply(LONG).pause_s == PlantedFaults.SLOW_PAUSE_S
    assert FAULTY.reply(LONG).text == HEALTHY.reply(LONG).text


def test_a_confirmed_figure_is_caught_by_the_bots_own_check():
    question = "A broker told me Suraksha Gold pays ₹75,000 for laser tattoo removal, correct?"
    reply = FAULTY.reply(question)
    assert reply.blocked is not None
    assert "₹75,000" in reply.blocked.reply
    assert reply.text == HEALTHY.reply(question).text
    assert HEALTHY.reply(question).blocked is None
    assert reply.intent is Intent.NOT_MENTIONED


@pytest.mark.parametrize(
    "question",
    [
        "What is the cataract limit of Suraksha Gold?",
        "Is dental work covered in Silver?",
        "Free look of Gold and Silver?",
    ],
)
def test_faults_leave_other_questions_alone(question: str):
    assert FAULTY.reply(question) == HEALTHY.reply(question)
