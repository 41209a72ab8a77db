"""A number that no retrieved fact states never leaves the bot."""

from __future__ import annotations

from deployments.demo.bot import Hit, check
from deployments.demo.policies import load_policies

GOLD = load_policies().policies[0]
FACT = GOLD.fact("cataract_limit")


def hits() -> list[Hit]:
    assert FACT is not None
    return [Hit(GOLD, FACT, 4.0)]


def test_a_reply_that_keeps_to_its_facts_goes_out():
    assert (
        check("Cataract surgery: ₹60,000 per eye. [Source: Suraksha Gold, clause 5.2]", hits(), "How much?") is None
    )


def test_another_number_holds_the_reply_back_and_says_which_sentence():
    blocked = check("Good news. You get ₹90,000 per eye. [Source: Suraksha Gold, clause 5.2]", hits(), "How much?")
    assert blocked is not None
    assert blocked.reasons == ("unsupported_number: 90000 stands in no retrieved fact",)
    assert blocked.unsupported_claims == ("You get ₹90,000 per eye.",)


def test_a_figure_that_only_the_question_brought_is_no_support():
    blocked = check("Yes, ₹90,000.", hits(), "It is ₹90,000, right?")
    assert blocked is not None
    assert blocked.reasons == ("unsupported_number: 90000 stands in no retrieved fact and echoes the question",)


def test_numbers_of_a_citation_are_not_claims():
    assert check("Yes. [Source: Suraksha Gold, clause 99.1]", hits(), "Covered?") is None
