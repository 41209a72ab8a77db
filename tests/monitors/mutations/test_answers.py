"""What is known to be wrong is wrong, and what is known to be right is right: said by the plain graders too."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitors.domains.pack import load_domain
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.factual import FactualGrader
from monitors.mutations.answers import AnswerMutation, right_answer, wrong_answers
from monitors.records.base import Language
from monitors.records.grades import Judged
from tests.builders import exchange, gold_case

SUITE = load_suite(Path(__file__).parents[3] / "deployments" / "demo" / "suraksha.jsonl")


@pytest.mark.parametrize(
    ("gold", "twist", "twin"),
    [
        ("24 months", AnswerMutation.QUANTITY, "92 months"),
        ("₹1,50,000 per joint", AnswerMutation.QUANTITY, "₹3,80,000 per joint"),
        ("2.5 lakh", AnswerMutation.QUANTITY, "9.8 lakh"),
        ("two years", AnswerMutation.QUANTITY, "nine years"),
        ("२४ महीने", AnswerMutation.QUANTITY, "९२ महीने"),
        ("दो साल", AnswerMutation.QUANTITY, "नौ साल"),
        ("teen mahine", AnswerMutation.QUANTITY, "aath mahine"),
        ("72 hours before, 30 days after", AnswerMutation.QUANTITY, "69 hours before, 40 days after"),
        ("₹1,50,000 per joint", AnswerMutation.CURRENCY, "$1,50,000 per joint"),
        ("Rs 2 lakh", AnswerMutation.CURRENCY, "$2 lakh"),
        ("€6,000 or 10%", AnswerMutation.CURRENCY, "US$6,000 or 10%"),
        ("$6,000", AnswerMutation.CURRENCY, "€6,000"),
        ("CHF 500", AnswerMutation.CURRENCY, "EUR 500"),
        ("पाँच लाख रुपये", AnswerMutation.CURRENCY, "पाँच लाख dollars"),
        ("Yes, it is covered", AnswerMutation.YES_FOR_NO, "No."),
        ("No.", AnswerMutation.YES_FOR_NO, "Yes."),
        ("हाँ, कवर है", AnswerMutation.YES_FOR_NO, "नहीं।"),
        ("Nahi, cover nahi hai", AnswerMutation.YES_FOR_NO, "Haan."),
        ("The room rent is capped", AnswerMutation.DENIAL, "The room rent is not capped"),
        ("Surgery isn't covered", AnswerMutation.DENIAL, "Surgery is covered"),
        ("It cannot be renewed", AnswerMutation.DENIAL, "It can be renewed"),
    ],
)
def test_a_gold_has_its_wrong_twin(gold, twist, twin):
    assert wrong_answers(gold_case(gold=gold))[twist] == twin


@pytest.mark.parametrize(
    ("gold", "twist"),
    [
        ("Cataract", AnswerMutation.QUANTITY),
        ("24 months", AnswerMutation.CURRENCY),
        ("6,000", AnswerMutation.CURRENCY),
        ("There is no co-payment and it is free", AnswerMutation.DENIAL),
        ("Yes, it is covered", AnswerMutation.DENIAL),
        ("The document does not mention it", AnswerMutation.REFUSAL),
    ],
)
def test_a_twin_that_might_be_right_is_not_made(gold, twist):
    assert twist not in wrong_answers(gold_case(gold=gold))


def test_a_twin_that_is_an_accepted_alternative_is_not_made():
    assert AnswerMutation.QUANTITY not in wrong_answers(gold_case(gold="24 months", alternatives=("92 months",)))


def test_every_case_has_a_wrong_twin_and_names_its_source_like_the_right_answer():
    for case in SUITE.cases:
        twins = wrong_answers(case)
        assert twins
        assert right_answer(case) not in twins.values()
        if case.expected_citation and not case.expected_refusal:
            assert case.expected_citation in right_answer(case)


def test_an_expected_refusal_is_refused_in_its_language():
    for language in Language:
        case = gold_case(expected_refusal=True, language=language)
        assert right_answer(case) not in wrong_answers(case).values()
        assert set(wrong_answers(case)) == {AnswerMutation.NO_REFUSAL}


def test_the_plain_graders_agree_with_every_twin_that_they_can_read():
    """A second opinion without a model: no right answer fails, no wrong twin passes, and most are told."""
    grader = FactualGrader(GraderSettings(), load_domain())
    told = 0
    for case in SUITE.cases:
        if case.expected_refusal:
            continue
        right = grader.grade(case, exchange(case, right_answer(case)))
        assert not isinstance(right, Judged) or right.passed, case.gold
        for twist, twin in wrong_answers(case).items():
            wrong = grader.grade(case, exchange(case, twin))
            assert not isinstance(wrong, Judged) or not wrong.passed, (twist, case.gold, twin)
            told += isinstance(wrong, Judged)
    assert told > len(SUITE.cases)
