"""Tests of explicit and implicit yes and no."""

import pytest

from monitors.domains.pack import INSURANCE, load_domain
from monitors.facts.text import normalise, tokenise
from monitors.graders.polarity import (
    Polarity,
    compare_with_gold_polarity,
    find_gold_polarity,
    find_polarity,
    is_yes_no_question,
    read_yes_no_question,
)

INSURANCE = load_domain((INSURANCE,))
COSMETIC = "Is cosmetic surgery covered?"


def says(question: str, reply: str) -> Polarity:
    return find_polarity(
        tokenise(normalise(reply).text), read_yes_no_question(question, INSURANCE), INSURANCE
    ).polarity


@pytest.mark.parametrize(
    ("question", "reply", "polarity"),
    [
        (COSMETIC, "Yes.", "yes"),
        (COSMETIC, "**No**, it is not.", "no"),
        (COSMETIC, "Cosmetic surgery is covered.", "yes"),
        (COSMETIC, "Cosmetic surgery is not covered.", "no"),
        (COSMETIC, "Cosmetic surgery is excluded.", "no"),
        (COSMETIC, "Cosmetic surgery is not excluded.", "yes"),
        (COSMETIC, "No, cosmetic surgery is excluded.", "no"),
        (COSMETIC, "Yes, cosmetic surgery is excluded.", "open"),
        (COSMETIC, "Nahi cover hoti.", "no"),
        (COSMETIC, "The plan doesn't cover cosmetic surgery.", "no"),
        (COSMETIC, "No cosmetic surgery is covered under this plan.", "no"),
        (COSMETIC, "Dental care is covered. Cosmetic surgery is not covered.", "no"),
        (COSMETIC, "Cosmetic surgery cover nahi hoti.", "no"),
        (COSMETIC, "Haan ji, cosmetic surgery cover hoti hai.", "yes"),
        (COSMETIC, "कॉस्मेटिक सर्जरी कवर नहीं है।", "no"),
        (COSMETIC, "जी हां, कवर है।", "yes"),
        (COSMETIC, "It is not covered for the first 24 months.", "not at first"),
        (COSMETIC, "Cosmetic surgery is covered. Cosmetic surgery is not covered.", "open"),
        (COSMETIC, "Please call us.", "open"),
        (COSMETIC, "Yes. Cosmetic surgery is not covered.", "open"),
        ("क्या भारत के बाहर इलाज कवर है?", "हाँ, भारत के बाहर इलाज कवर है।", "yes"),
        ("Kya India ke bahar ilaj cover hai?", "Haan, India ke bahar ilaj cover hota hai.", "yes"),
        ("Kya India ke bahar ilaj cover hai?", "India ke bahar ilaj cover nahi hota.", "no"),
        (COSMETIC, "कॉस्मेटिक सर्जरी कवर से बाहर है।", "no"),
        ("Can I port my policy?", "You can port it at renewal.", "yes"),
        ("Can I port my policy?", "You cannot port this policy.", "no"),
        ("Is there a co-pay?", "There is no co-payment.", "no"),
        ("Is there a co-pay?", "A co-payment of 10% applies.", "yes"),
        ("Is a medical test required?", "No medical test is required.", "no"),
    ],
)
def test_the_polarity_of_a_reply(question: str, reply: str, polarity: str):
    assert says(question, reply) == polarity


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is it covered?", True),
        ("Does the plan pay for dentists?", True),
        ("Kya maternity cover hai?", True),
        ("क्या मोतियाबिंद कवर है?", True),
        ("Maternity cover hai kya?", True),
        ("What is covered?", False),
        ("How long is it?", False),
        ("Is it 24 or 36 months?", False),
        ("Kya kitna cover hai?", False),
        ("", False),
    ],
)
def test_questions_for_yes_or_no(question: str, answer: bool):
    assert is_yes_no_question(question) is answer


def test_the_polarity_of_a_gold():
    """The polarity of a gold is explicit or follows from its statement; text in brackets is ignored."""
    assert find_gold_polarity(COSMETIC, "No, it is excluded", INSURANCE) is Polarity.NO
    assert find_gold_polarity(COSMETIC, "Cosmetic surgery is excluded", INSURANCE) is Polarity.NO
    assert find_gold_polarity("What is the limit?", "The limit is not covered", INSURANCE) is Polarity.OPEN
    assert (
        find_gold_polarity("Is there a cap on room rent?", "Single room (if available, not suite)", INSURANCE)
        is Polarity.OPEN
    )


def graded(question: str, gold: str, reply: str) -> str:
    agrees = compare_with_gold_polarity(question, (gold,), reply, INSURANCE).agrees
    return "abstained" if agrees is None else "passed" if agrees else "failed"


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("Yes", "It is covered.", "passed"),
        ("Yes", "It is not covered.", "failed"),
        ("No, it is excluded", "It is excluded.", "passed"),
        ("No, it is excluded", "Yes, fully.", "failed"),
        ("Yes, after 24 months", "Not covered for the first 24 months.", "passed"),
        ("Yes", "Not covered for the first 24 months.", "abstained"),
        ("No", "Not covered for the first 24 months.", "abstained"),
        ("No", "The document does not mention cosmetic surgery.", "abstained"),
        ("24 months", "It is covered.", "abstained"),
        ("Yes", "It is, but only after an accident.", "abstained"),
        ("No", "It isn't.", "passed"),
    ],
)
def test_verdicts(gold: str, reply: str, verdict: str):
    """A reply is graded by its yes or no.

    The words "not at first" are a yes only if the gold also has a limit. An unstated fact is neither yes nor no.
    """
    assert graded(COSMETIC, gold, reply) == verdict


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        ("Do you repair saddles?", "Yes", "We certainly do!", "passed"),
        ("Do you repair saddles?", "No", "We do, but expect to wait two weeks.", "failed"),
        ("Don't you repair saddles?", "Yes, leather ones", "We don't.", "failed"),
        ("Can I bring my own boat?", "Yes", "You can't, not even a small one.", "failed"),
        ("Can I bring my own boat?", "Yes", "It is.", "abstained"),
        ("Do I lose my points?", "No", "Not at all.", "passed"),
        ("Do you repair saddles?", "Yes", "We do not know.", "abstained"),
        ("Can you deliver to the island?", "No", "I can't, sorry.", "abstained"),
        ("Do you repair saddles?", "No", "Of course we do!", "failed"),
    ],
)
def test_a_pronoun_and_the_verb_of_the_question_are_a_short_answer(question, gold, reply, verdict):
    assert graded(question, gold, reply) == verdict


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        ("Is the greenhouse heated?", "No", "The greenhouse isn't heated.", "passed"),
        ("Is the greenhouse heated?", "No", "The greenhouse is heated.", "failed"),
        ("Is the greenhouse heated?", "No", "The shop is heated.", "abstained"),
        ("Is the greenhouse heated?", "No", "The shop is heated, the greenhouse is not.", "abstained"),
        ("Is it washable?", "Yes", "A machine won't harm it: it's washable.", "passed"),
        ("Is she a nurse?", "No", "The nurse is upstairs.", "abstained"),
        ("Is the greenhouse heated?", "Yes", "Ask the staff if the greenhouse is heated.", "abstained"),
        ("Is the greenhouse heated?", "Yes", "The greenhouse is hardly heated.", "abstained"),
        ("Is the greenhouse heated?", "No", "The shop next to the greenhouse is heated.", "abstained"),
        ("Are they safe?", "Yes", "They're anything but safe.", "abstained"),
        ("Are they safe?", "Yes", "They're very safe.", "passed"),
    ],
)
def test_a_question_about_a_quality_is_answered_by_the_quality_of_its_subject(question, gold, reply, verdict):
    assert graded(question, gold, reply) == verdict


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        ("May children climb alone?", "No, only with an adult", "Only with a grown-up, they may not go up alone.", "abstained"),
        ("Can I cancel online?", "Yes", "You can cancel by phone only.", "abstained"),
        ("Is maternity covered?", "No", "To cover maternity, please ask for the rider.", "abstained"),
        ("May I come in?", "Yes", "You may come in without a ticket.", "passed"),
        ("May I come in?", "No", "Only with a ticket may you come in.", "abstained"),
        ("Can I film with a drone?", "No, without a drone", "You may film without a drone.", "abstained"),
        ("Can I pay by cheque?", "No, in cash only", "You can pay in cash.", "abstained"),
        ("Can I bring my cat?", "No", "Only assistance animals can come in.", "abstained"),
        ("Can I return it when used?", "Yes, in its box", "It cannot be returned unless you have its box.", "abstained"),
        ("Can I get it back after the start?", "No", "Yes, you can get it back.", "failed"),
        ("Can I pay by cheque?", "No, in cash only", "You can pay by cheque.", "failed"),
        ("May children climb alone?", "No", "Children may not climb alone.", "passed"),
        ("May children climb alone?", "No", "No, children may not climb alone.", "passed"),
        ("Can I bring my dog?", "No", "Dogs can not come in.", "passed"),
        ("Can I bring my dog?", "No", "Dogs cannot come in.", "passed"),
        ("Can I bring my dog?", "No", "Dogs must not come in.", "passed"),
        ("Can I bring my dog?", "No", "Dogs are forbidden.", "passed"),
        ("Can I bring my dog?", "Yes", "Dogs are not forbidden here.", "passed"),
        ("Can I pay in cash?", "Yes", "You may not pay in cash.", "failed"),
        ("Can I pay in cash?", "Yes", "You can no longer pay in cash.", "failed"),
        ("Can I pay in cash?", "No", "You may pay in cash.", "failed"),
        ("Can I bring my dog?", "No", "I cannot help with that.", "abstained"),
        ("Can I bring my dog?", "No", "Sorry, we can't say.", "abstained"),
        ("Can I bring my dog?", "Yes", "You may bring it, but not into the pool.", "passed"),
        ("Must I book?", "No", "You must not book, just come.", "passed"),
        ("Kya kutta la sakte hain?", "Nahi", "Kutta lana mana hai.", "passed"),
        ("Kya bachche akele ja sakte hain?", "Nahi", "Sirf bade log ke saath ja sakte hain.", "abstained"),
    ],
)  # fmt: skip
def test_a_condition_or_the_golds_own_words_are_no_contradiction(question, gold, reply, verdict):
    """A reply that starts with neither yes nor no fails only if it clearly states the opposite of the gold."""
    assert graded(question, gold, reply) == verdict


@pytest.mark.parametrize(
    ("question", "reply", "verdict"),
    [
        ("Can I feed them bread?", "I'm no vet, but you can feed them bread.", "failed"),
        ("Can I feed them bread?", "Not to worry, you can feed them bread.", "failed"),
        ("Can I feed them bread?", "I'm no vet, but you can't feed them bread.", "passed"),
        ("Can I feed them bread?", "Oh no, I'm sorry! You can feed them bread.", "failed"),
    ],
)
def test_a_denial_before_the_main_clause_does_not_negate_its_verb(question, reply, verdict):
    assert graded(question, "No", reply) == verdict


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Is breakfast included?", "Breakfast is included, dinner is not."),
        ("Is the greenhouse open?", "The greenhouse is open but the pond is not."),
        ("Can I bring my dog?", "You can bring your dog, but cats may not."),
    ],
)
def test_a_final_not_about_another_subject_does_not_deny_the_answer(question, reply):
    assert graded(question, "Yes", reply) != "failed"


@pytest.mark.parametrize(
    ("question", "gold", "reply"),
    [
        (
            "Is theft included in Home?",
            "No",
            "| Plan | Glass | Theft |\n|---|---|---|\n| Home | included | + £4 |\n| Flat | + £2 | included |",
        ),
        ("Dogs aren't allowed in here, are they?", "Correct, dogs are not allowed.", "They are! Dogs may come in."),
    ],
    ids=["a table", "a gold that confirms a denial"],
)
def test_what_is_neither_yes_nor_no_stays_open(question, gold, reply):
    """The grader abstains if it cannot read a reply or a gold as a yes or a no.

    A word in a table may belong to another row. The gold "Correct, … not" confirms the denial in the question.
    """
    assert graded(question, gold, reply) == "abstained"
