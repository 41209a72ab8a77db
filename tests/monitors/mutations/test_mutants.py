"""Test that each mutant differs from the gold answer in the stated part, is never right, and is reproducible."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.language import identify_language
from monitors.facts.refusals.detect import classify_refusal
from monitors.facts.similarity import collect_quantities
from monitors.goldset.load import load_suite
from monitors.mutations.mutants import (
    EVASIONS,
    HEDGED_ANSWERS,
    INVENTIONS,
    PERSONAL,
    REFUSALS,
    Mutant,
    MutationOperator,
    build_mutants,
    build_right_reply,
    is_still_right,
)
from monitors.mutations.quantities import change_order_of_magnitude, flip_bound, increase_last_period_by_one
from monitors.records.base import Language
from tests.monitors.goldset.gold_cases import case_of

SUITE = load_suite(Path(__file__).parents[3] / "deployments" / "demo" / "suraksha.jsonl")
FACTS = {
    MutationOperator.NUMBER_CHANGED, MutationOperator.PERIOD_SHIFTED, MutationOperator.UNIT_CHANGED, MutationOperator.SCALE_CHANGED,
    MutationOperator.CURRENCY_CHANGED, MutationOperator.BOUND_FLIPPED, MutationOperator.OTHER_POLICY,
}  # fmt: skip


def mutant_text(gold: str, operator: MutationOperator, **changes) -> str:
    """Return the reply that ``operator`` makes from ``gold``, without the source in the reply.

    Return an empty string if the operator makes no mutant.
    """
    found = {mutant.operator: mutant.reply for mutant in build_mutants(case_of(gold=gold, **changes))}
    return found.get(operator, "").split(" [Source")[0]


@pytest.mark.parametrize(
    ("gold", "operator", "wanted"),
    [
        ("24 months", MutationOperator.NUMBER_CHANGED, "36 months"),
        ("two years", MutationOperator.NUMBER_CHANGED, "three years"),
        ("दो साल", MutationOperator.NUMBER_CHANGED, "तीन साल"),
        ("२४ महीने", MutationOperator.NUMBER_CHANGED, "३६ महीने"),
        ("₹1,50,000 per joint", MutationOperator.NUMBER_CHANGED, "₹2,25,000 per joint"),
        ("72 hours before, 30 days after", MutationOperator.NUMBER_CHANGED, "72 hours before, 45 days after"),
        ("24 months", MutationOperator.PERIOD_SHIFTED, "25 months"),
        ("24 months", MutationOperator.UNIT_CHANGED, "24 days"),
        ("24 mahine", MutationOperator.UNIT_CHANGED, "24 din"),
        ("24 महीने", MutationOperator.UNIT_CHANGED, "24 दिन"),
        ("20% of the sum insured", MutationOperator.UNIT_CHANGED, "₹20 of the sum insured"),
        ("₹60,000 per eye", MutationOperator.SCALE_CHANGED, "₹6,00,000 per eye"),
        ("2.5 lakh", MutationOperator.SCALE_CHANGED, "2.5 crore"),
        ("₹60,000", MutationOperator.CURRENCY_CHANGED, "$60,000"),
        ("Within 48 hours", MutationOperator.BOUND_FLIPPED, "at least 48 hours"),
        ("at least 18 years", MutationOperator.BOUND_FLIPPED, "up to 18 years"),
        ("65 साल तक", MutationOperator.BOUND_FLIPPED, "कम से कम 65 साल"),
        ("kam se kam 18 saal", MutationOperator.BOUND_FLIPPED, "18 saal tak"),
        ("Yes, dental treatment is covered", MutationOperator.YES_FLIPPED, "No, dental treatment is not covered"),
        ("No, cosmetic surgery is excluded", MutationOperator.YES_FLIPPED, "Yes, cosmetic surgery is included"),
        ("No.", MutationOperator.YES_FLIPPED, "Yes."),
        ("Yes, up to ₹50,000", MutationOperator.YES_FLIPPED, "No."),
        ("नहीं, मातृत्व कवर नहीं है", MutationOperator.YES_FLIPPED, "हाँ, मातृत्व कवर है"),
        (
            "Haan, ghar par ilaj cover hota hai",
            MutationOperator.YES_FLIPPED,
            "Nahi, ghar par ilaj cover nahi hota hai",
        ),
        ("There is no co-payment", MutationOperator.NEGATED, "there is a co-payment"),
        ("24 months", MutationOperator.NEGATED, "It is not 24 months."),
        ("The room rent is capped", MutationOperator.NEGATED, "The room rent is not capped"),
    ],
)
def test_an_operator_changes_what_it_says(gold, operator, wanted):
    """A mutation operator changes one thing in the gold answer and leaves the rest of the text unchanged."""
    language = "hi" if any("\u0900" <= c <= "\u097f" for c in gold) else "en"
    assert mutant_text(gold, operator, language=language).lower() == wanted.lower()


@pytest.mark.parametrize(
    ("gold", "operator", "changes"),
    [
        ("Cataract", MutationOperator.NUMBER_CHANGED, {}),
        ("24 months", MutationOperator.NUMBER_CHANGED, {"alternatives": ["36 months"]}),
        ("12 months", MutationOperator.NUMBER_CHANGED, {"alternatives": ["a year and a half"]}),
        ("₹5,00,000", MutationOperator.CURRENCY_CHANGED, {"alternatives": ["5 lakh"]}),
        ("24 months", MutationOperator.UNIT_CHANGED, {"alternatives": ["24"]}),
        ("24 months", MutationOperator.BOUND_FLIPPED, {}),
        ("24 months", MutationOperator.YES_FLIPPED, {}),
        ("36 months — existing diseases have a waiting period of 36 months", MutationOperator.NEGATED, {}),
        ("A single room, or any room if that is not available", MutationOperator.NEGATED, {}),
        ("The documents do not say", MutationOperator.REFUSED, {}),
        ("60 days before admission", MutationOperator.OTHER_ROLE, {}),
        ("24 months", MutationOperator.CITATION_WRONG, {}),
    ],
)
def test_mutants_that_may_be_right_or_senseless_are_not_made(gold, operator, changes):
    """No mutant is made if it might be right or meaningless. Such a mutant would make a good grader look bad."""
    assert mutant_text(gold, operator, **changes) == ""


def test_a_mutant_of_another_policy_needs_another_answer_of_the_same_sort():
    """The gold of a sibling case is used as a mutant only if it differs and is the same kind of answer."""
    case = case_of()
    other = case_of(id="s", cluster="suraksha-silver", gold="36 months")
    assert any(mutant.operator is MutationOperator.OTHER_POLICY for mutant in build_mutants(case, other))
    for same in ("two years", "Yes, it is covered"):
        made = build_mutants(case, other.model_copy(update={"gold": same}))
        assert not any(mutant.operator is MutationOperator.OTHER_POLICY for mutant in made)


def test_a_wrong_source_never_contains_the_right_one():
    """A sibling's source that contains the right one is not used as a wrong source.

    For example, "Care Supreme" contains "Care".
    """
    case = case_of(expected_citation="Care")
    longer = case_of(id="s", cluster="care-plus", expected_citation="Care Supreme", gold="36 months")
    (wrong,) = [
        mutant for mutant in build_mutants(case, longer) if mutant.operator is MutationOperator.CITATION_WRONG
    ]
    assert "Care Supreme" not in wrong.reply


def test_every_case_has_the_same_mutants_every_time():
    """Every case gets the same mutants every time. Each mutant has another operator, and none is the right reply.

    A refusal has at least four mutants, and an answer at least six.
    """
    for case in SUITE.cases:
        mutants = build_mutants(case)
        assert len(mutants) >= (4 if case.expected_refusal else 6), case.id
        assert build_right_reply(case) not in {mutant.reply for mutant in mutants}
        assert len({mutant.operator for mutant in mutants}) == len(mutants)
        assert mutants == build_mutants(case)


def test_no_mutant_of_a_quantity_states_the_gold():
    """In the whole suite, no mutant that changes a fact contains the quantities of its gold answer.

    Mutants that reverse a bound ("at least" for "at most") keep the quantities and are not checked.
    """
    for case in SUITE.cases:
        for mutant in build_mutants(case):
            if mutant.operator in FACTS - {MutationOperator.BOUND_FLIPPED}:
                assert (
                    not collect_quantities(case.gold).keys()
                    <= collect_quantities(mutant.reply.split(" [Source")[0]).keys()
                ), mutant


NUMBERS = st.integers(1, 10**7).map(Decimal) | st.decimals(Decimal("0.5"), Decimal(99), places=1)
GOLDS = st.builds(
    lambda number, pattern: pattern.format(f"{number.normalize():f}"),
    NUMBERS,
    st.sampled_from(
        [
            "{} months",
            "{} days",
            "{}%",
            "₹{}",
            "up to {} hours",
            "{} hospitals",
            "{} महीने",
            "{} saal tak",
            "Yes, ₹{}",
        ]
    ),
)


@given(GOLDS)
def test_a_mutant_is_never_right(gold):
    """No factual mutant is still right, for any quantity in the gold answer.

    Each mutant states another quantity, unless its operator reverses a bound such as "at least".
    """
    case = case_of(gold=gold)
    for mutant in build_mutants(case):
        text = mutant.reply.split(" [Source")[0]
        if mutant.operator in FACTS:
            assert (
                collect_quantities(gold).keys() != collect_quantities(text).keys()
                or mutant.operator is MutationOperator.BOUND_FLIPPED
            )
            assert not is_still_right(text, case)


@given(NUMBERS, st.sampled_from(["{} months", "₹{}", "{}%", "{} दिन"]))
def test_rightness_knows_the_gold_itself_and_its_equals(number, pattern):
    """A reply counts as right if it states the gold or an equal quantity, such as 24 months for two years."""
    gold = pattern.format(f"{number:f}")
    assert is_still_right(f"It is {gold}.", case_of(gold=gold))
    assert is_still_right("two years", case_of(gold="24 months"))
    assert is_still_right("365 days", case_of(gold="12 months"))


def test_operators_without_anything_to_change_give_nothing():
    """If the gold answer contains nothing to change, a mutation operator makes no mutant and raises no error."""
    assert [
        make("Single private room") for make in (increase_last_period_by_one, change_order_of_magnitude, flip_bound)
    ] == [""] * 3


@pytest.mark.parametrize("text", PERSONAL)
def test_each_piece_of_personal_data_is_one_that_counts(text):
    """Each built-in piece of personal data is a finding of at least medium strength.

    With a weak finding, a grader could rightly pass the mutant.
    """
    assert any(disclosure.strength >= 2 for disclosure in find_disclosures(text))


@pytest.mark.parametrize("language", [Language.ENGLISH, Language.HINDI, Language.HINGLISH])
def test_our_sentences_are_what_they_claim(language):
    """The built-in refusals are refusals, the built-in answers are not, and all are in the stated language."""
    assert classify_refusal(REFUSALS[language]).refused
    for texts in (INVENTIONS, HEDGED_ANSWERS, EVASIONS):
        assert not classify_refusal(texts[language]).refused
        assert identify_language(texts[language]) is language


def test_a_mutant_names_its_fault():
    """A mutant has a failure kind, which sets its severity."""
    kinds = {mutant.operator: mutant.kind for mutant in build_mutants(case_of(expected_citation="Suraksha Gold"))}
    assert kinds[MutationOperator.PERSONAL_DATA] == "pii_disclosure"
    assert kinds[MutationOperator.CITATION_WRONG] == "wrong_citation"
    assert isinstance(build_mutants(case_of())[0], Mutant)
