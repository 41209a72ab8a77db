"""The bot never sends a number that no retrieved fact contains."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from deployments.demo.bot import Hit, detect_unsupported_numbers
from deployments.demo.policies import load_policies

GOLD = load_policies().policies[0]
FACT = GOLD.find_fact("cataract_limit")


def hits() -> list[Hit]:
    assert FACT is not None
    return [Hit(GOLD, FACT, 4.0)]


def test_a_reply_that_keeps_to_its_facts_goes_out():
    reply = "Cataract surgery: ₹60,000 per eye. [Source: Suraksha Gold, clause 5.2]"
    assert detect_unsupported_numbers(reply, hits(), "How much?") is None


def test_another_number_blocks_the_reply_and_names_its_sentence(snapshot: SnapshotAssertion):
    claim = "You get ₹90,000 per eye."
    blocked = detect_unsupported_numbers(
        f"Good news. {claim} [Source: Suraksha Gold, clause 5.2]", hits(), "How much?"
    )
    assert blocked is not None
    assert [reason.partition(":")[0] for reason in blocked.reasons] == ["unsupported_number"]
    assert blocked.unsupported_claims == (claim,)
    assert blocked.reasons == snapshot


def test_a_figure_that_only_the_question_brought_is_no_support(snapshot: SnapshotAssertion):
    blocked = detect_unsupported_numbers("Yes, ₹90,000.", hits(), "It is ₹90,000, right?")
    assert blocked is not None
    assert [reason.partition(":")[0] for reason in blocked.reasons] == ["unsupported_number"]
    assert blocked.reasons == snapshot


def test_numbers_of_a_citation_are_not_claims():
    reply = "Yes. [Source: Suraksha Gold, clause 99.1]"
    assert detect_unsupported_numbers(reply, hits(), "Covered?") is None
