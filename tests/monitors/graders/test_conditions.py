"""Tests of replies with a correct figure, or a correct yes, that also state a wrong condition."""

import pytest

from monitors.records.grades import Abstained
from tests.monitors.graders.test_factual import grade, name_outcome

TURNED = [
    ("How much is the day ticket?", "24 euros", "Last season it cost 24 euros.", "earlier"),
    ("How much is the day ticket?", "24 euros", "It used to cost 24 euros.", "earlier"),
    ("When can I check in?", "2 hours before departure", "Check in 2 hours after departure.", "after"),
    ("What does a swim cost for adults?", "6 euros", "For children it is 6 euros.", "child"),
    ("When will I be refunded?", "within 14 days", "Within 14 business days.", "working days"),
    ("When will I be refunded?", "within 5 working days", "It takes 5 days.", "working days"),
    ("What does the cruise cost?", "90 euros per person", "It is 90 euros for two people.", "may or may not"),
    ("Can I bring a dog?", "Yes", "Yes, except in July and August.", "condition"),
    ("Is breakfast included?", "yes", "Yes, provided you book the suite.", "condition"),
    ("Is there parking?", "Yes, free parking", "Yes, there is paid parking behind the house.", "compared"),
]  # fmt: skip

RIGHT = [
    ("How much is the day ticket?", "24 euros", "The day ticket is 24 euros this season."),
    ("Until when can I return shoes?", "30 days after delivery", "You have 30 days after delivery to return them."),
    ("Until when can I return shoes?", "30 days after delivery", "Within 30 days of delivery."),
    ("When can I check in?", "2 hours before departure", "Two hours before departure, and not after it."),
    ("What does a swim cost for adults?", "6 euros", "Adults pay 6 euros, children 3 euros."),
    ("When will I be refunded?", "within 5 working days", "Within 5 business days."),
    ("When will I be refunded?", "within 14 days", "Refunds take up to 14 days."),
    ("What does the cruise cost?", "90 euros for two people", "For two people it is 90 euros."),
    ("What does the cruise cost?", "90 euros per person", "It is 90 euros per person, drinks included."),
    ("How long is the Kids class?", "45 minutes", "Kids: 45 minutes, Teens: 60 minutes."),
    ("How heavy may a parcel to Norway be?", "20 kg", "To Norway it may weigh 20 kg, to Spain 15 kg."),
    ("Can I bring a dog?", "Yes", "Yes, dogs are welcome."),
    ("Can I pay in cash?", "No, only by card", "No, we only take cards."),
    ("Is there parking?", "Yes, free parking", "Yes, parking is free."),
    ("May I bring guests?", "Yes, three guests", "Yes, you may bring three guests."),
    ("From what age may I dive?", "10 years", "From the age of 10."),
    ("When are you open?", "Monday to Friday, 7.30 to 16.00", "Monday to Friday from 7:30 am to 4 pm."),
    ("What does a lesson cost?", "40 euros", "A lesson costs 40 euros. A course of ten lessons costs 350 euros."),
    ("What does the map cost?", "0 euros", "The map is free of charge."),
    ("When was the house built?", "1974", "It was originally built in 1974 and is now a museum of 3 floors."),
]


@pytest.mark.parametrize(("question", "gold", "reply", "why"), TURNED)
def test_a_condition_that_reverses_an_answer_leaves_it_open(question: str, gold: str, reply: str, why: str):
    verdict = grade(question, gold, reply)
    assert isinstance(verdict, Abstained)
    assert why in verdict.reason


CONTRADICTED = [
    ("How much is the day ticket?", "24 euros", "The day ticket was 24 euros; it is now 27 euros."),
    ("How long is the Kids class?", "45 minutes", "Teens: 45 minutes, Kids: 30 minutes."),
    ("How heavy may a parcel to Norway be?", "20 kg", "To Spain 20 kg, to Norway 15 kg."),
    ("What does a lesson for beginners cost?", "40 euros", "A lesson for experts costs 40 euros. One for beginners costs 55 euros."),
    ("May I bring guests?", "Yes, three guests", "Yes, five guests may come with you."),
    ("Are there lockers?", "Yes, ten lockers", "Yes, 8 large free lockers."),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "reply"), CONTRADICTED)
def test_another_figure_for_the_golds_own_subject_fails(question: str, gold: str, reply: str):
    assert name_outcome(grade(question, gold, reply)) == "wrong_fact"


@pytest.mark.parametrize(("question", "gold", "reply"), RIGHT)
def test_neutral_words_leave_an_answer_right(question: str, gold: str, reply: str):
    assert name_outcome(grade(question, gold, reply)) == "passed"


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("No, we are closed on 24 December", "On 24 December we close at 2 pm.", "abstained"),
        ("No, we are closed on 24 December", "No, not on 24 December.", "abstained"),
    ],
)
def test_a_date_of_the_gold_is_no_yes_or_no(gold: str, reply: str, verdict: str):
    assert name_outcome(grade("Are you open on Christmas Eve?", gold, reply)) == verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("We don't take them.", "abstained"),
        ("Yes, with identification.", "abstained"),
    ],
)
def test_a_gold_of_no_may_be_said_in_other_words(reply: str, verdict: str):
    assert name_outcome(grade("Do you take vouchers?", "No vouchers", reply)) == verdict


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("80 euros per year", "You get 80 euros every two years.", "wrong_fact"),
        ("80 euros per year", "It is 80 euros every 12 months.", "passed"),
        ("80 euros per month", "It is 80 euros per 1 month.", "passed"),
        ("80 euros per year", "It is 80 euros every twelve years.", "wrong_fact"),
        ("03.02. - 28.02.2027", "From 3 February 2027 to 28 February 2027.", "passed"),
        ("03.02. - 28.02.2027", "From 4 February 2027 to 28 February 2027.", "wrong_fact"),
        ("from 8.30 to 15.30 euros", "8:30 am to 3:30 pm", "abstained"),
    ],
)
def test_periods_and_dates_that_are_written_short(gold: str, reply: str, verdict: str):
    assert name_outcome(grade("How much, and when?", gold, reply)) == verdict


def test_a_sentence_of_an_alternative_that_stands_in_the_reply_is_enough():
    """A reply that contains a sentence of an accepted alternative passes, even if the rules cannot decide.

    A reply that denies this alternative fails.
    """
    question, reply = "Can I pay by cheque?", "You can pay in cash. We do not take cheques of any kind."
    assert name_outcome(grade(question, "No", reply)) == "abstained"
    assert name_outcome(grade(question, "No", reply, alternatives=("We do not take cheques",))) == "passed"
    assert (
        name_outcome(grade(question, "No", "Yes, you can.", alternatives=("We do not take cheques",)))
        == "wrong_fact"
    )


def test_permission_words_match_offers():
    assert name_outcome(grade("Can I pay by cheque?", "No", "We do not accept payment by cheque.")) == "passed"
    assert name_outcome(grade("Can I pay by cheque?", "Yes", "We do not accept payment by cheque.")) == "wrong_fact"


def test_a_spoken_hour_is_compared():
    """A reply is compared with an hour that the gold states in words, here "half past one".

    The time 1:30 passes, and 12:30 fails. The time 13:30 is left open, because the words do not say whether it
    is morning or afternoon.
    """
    question, gold = "When is the desk open?", "From 9 to half past one"
    assert name_outcome(grade(question, gold, "It is open from 9:00 to 13:30.")) == "abstained"
    assert name_outcome(grade(question, gold, "It is open from 9 to 1:30.")) == "passed"
    assert name_outcome(grade(question, gold, "It is open from 9 to 12:30.")) == "wrong_fact"
