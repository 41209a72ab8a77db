"""Tests of quantities: the figures of the gold are found in the reply if they are about the right subject."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.factual import FactualGrader
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Channel, Exchange, Timings, WirePayload
from monitors.records.grades import Abstained, FailureKind, Judged

WAITING = "What is the waiting period for pre-existing diseases under Nova Gold?"


def a_case(question: str, gold: str, **more: object) -> GoldCase:
    fields = {
        "id": "c1", "turns": (question,), "gold": gold, "severity": Severity.MAJOR, "language": Language.ENGLISH,
        "type": "waiting_period", "provenance": Provenance(pipeline=Pipeline.TEMPLATE),
    }  # fmt: skip
    return GoldCase.model_validate(fields | more)


def an_exchange(text: str, **more: object) -> Exchange:
    fields = {
        "run_id": "r1", "case_id": "c1", "turns": ("?",), "visible_text": text,
        "asked_at": datetime(2026, 1, 1, tzinfo=UTC), "timings": Timings(total_ms=1),
    }  # fmt: skip
    return Exchange.model_validate(fields | more)


def graded(question: str, gold: str, reply: str, **more: object) -> Judged | Abstained:
    return FactualGrader(GraderSettings(), load_domain((INSURANCE,))).grade(
        a_case(question, gold, **more), an_exchange(reply)
    )


def name_outcome(grade: Judged | Abstained) -> str:
    if isinstance(grade, Abstained):
        return "abstained"
    return "passed" if grade.failure_kind is None else grade.failure_kind.value


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("36 months", "It is 36 months."),
        ("36 months", "You wait three (3) years for pre-existing diseases."),
        ("36 months", "Pre-existing diseases: waiting period of 36\u202fmonths."),
        ("24 months", "PED ke liye do saal ka waiting period hai."),
        ("24 months", "पहले से मौजूद बीमारियों के लिए प्रतीक्षा अवधि दो साल है।"),
        ("24 months", "The waiting period went down from 48 months to 24 months."),
        ("24 months", "24 months [Source: Nova Gold, p. 36]"),
        ("up to 60 days", "60 days"),
        ("60 days", "up to 60 days"),
    ],
)
def test_the_gold_is_met(gold: str, reply: str):
    assert name_outcome(graded(WAITING, gold, reply)) == "passed"


@pytest.mark.parametrize(
    ("gold", "reply", "kind"),
    [
        ("36 months", "It is 24 months.", "wrong_fact"),
        ("36 months", "It is 36 days.", "wrong_fact"),
        ("36 months", "It is not 36 months.", "wrong_fact"),
        ("24 months", "24 mahine nahi, 36 mahine hai.", "wrong_fact"),
        (
            "36 months",
            "A pre-existing disease is one diagnosed within 36 months prior to the policy.",
            "abstained",
        ),
        ("36 months", "See clause 36.", "abstained"),
        ("36 months", "The grace period is 36 months.", "abstained"),
        ("24 months", "24 months. It is actually 36 months.", "wrong_fact"),
        ("24 months", "Nova Silver has a waiting period of 24 months; Nova Gold one of 36 months.", "wrong_fact"),
        ("24 months and 30 days for illness", "24 months.", "abstained"),
        ("at least 24 hours", "up to 24 hours", "wrong_fact"),
        ("24 months", "The document does not say.", "missing_fact"),
    ],
)
def test_the_gold_is_not_met(gold: str, reply: str, kind: str):
    """A reply does not pass if its figure is missing or retracted, or has another value, unit, subject or bound."""
    assert name_outcome(graded(WAITING, gold, reply)) == kind


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("Covered in full", "It is 24 months."),
        ("24 months", "24 or 36 months"),
        ("14 March 2021", "In 2021."),
        ("1,24,300", "about 1.2 lakh"),
        ("Apollo 11 hospital group", "They are 11."),
        ("24 months", "7 " * 500),
    ],
)
def test_nothing_to_go_on(gold: str, reply: str):
    """The grader abstains if the gold has no quantity, or if the reply has no figure that can be compared with it.

    For example, the reply offers two values, is less precise than the gold, or has very many numbers. A number in a
    name cannot be compared either.
    """
    assert name_outcome(graded(WAITING, gold, reply)) == "abstained"


@pytest.mark.parametrize(
    ("gold", "reply", "wanted"),
    [
        ("Up to 65 years", "It is not up to 65 years.", "wrong_fact"),
        ("Within 2 hours", "It is not within 2 hours.", "wrong_fact"),
        ("65 साल तक", "यह 65 साल तक नहीं है।", "wrong_fact"),
        ("6,200 अस्पताल", "यह 6,200 अस्पताल नहीं है।", "wrong_fact"),
        ("₹4,000 per day", "Yeh ₹4,000 per din nahi hai.", "wrong_fact"),
        ("30 days", "Illness is covered, but not within 30 days of the start.", "passed"),
        ("30 din", "30 din tak claim nahi milega.", "passed"),
        ("₹1,500", "It is ₹15,000.", "wrong_fact"),
        ("₹1,500 per hospitalisation", "₹15,000 per hospitalisation", "wrong_fact"),
        ("1901", "in 19012", "abstained"),
    ],
)
def test_a_denied_limit_is_wrong_and_a_waiting_time_said_by_a_limit_is_not(gold: str, reply: str, wanted: str):
    """A reply that denies the limit of the gold is wrong.

    A waiting time that is stated as a limit is not wrong. An amount with an additional zero is wrong. Additional
    digits after a year may be a footnote.
    """
    assert name_outcome(graded("What is it?", gold, reply)) == wanted


def test_money():
    question = "What is the room rent limit?"
    assert name_outcome(graded(question, "₹5,000 per day", "Room rent: Rs. 5000/- a day")) == "passed"
    assert name_outcome(graded(question, "₹5,000 per day", "रूम रेंट पाँच हज़ार रुपये")) == "abstained"
    assert name_outcome(graded(question, "₹5,000 per day", "रूम रेंट प्रति दिन पाँच हज़ार रुपये")) == "passed"
    assert name_outcome(graded(question, "₹5 lakh", "5,00,000")) == "passed"
    assert name_outcome(graded(question, "₹5,000 per day", "$5,000 per day")) == "wrong_fact"
    assert name_outcome(graded(question, "₹5,000 per day", "₹50,000 per day")) == "wrong_fact"
    assert name_outcome(graded(question, "₹5,000 per day", "Room rent is not covered up to ₹5,000.")) == "abstained"
    assert (
        name_outcome(graded(question, "₹5,000 per day", "Room rent is not covered beyond ₹5,000.")) == "abstained"
    )
    assert (
        name_outcome(graded(question, "up to ₹5,000", "We will not charge more than ₹5,000 of rent.")) == "passed"
    )


def test_how_often():
    """The words "once", "twice" and "thrice" count if the question is about a number of times."""
    question = "How many times can the sum insured be restored?"
    assert name_outcome(graded(question, "2", "It can be restored twice.")) == "passed"
    assert name_outcome(graded(question, "2", "It can be restored once.")) == "wrong_fact"
    assert name_outcome(graded("How many documents?", "1", "Once you ask, five.")) == "wrong_fact"


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("119 EUR per year", "The annual plan costs €119.00 a month.", "wrong_fact"),
        ("119 euros a year", "It is €119 monthly.", "wrong_fact"),
        ("₹5,000 per day", "₹5,000 per week", "wrong_fact"),
        ("3 % p.a.", "3 % a month", "wrong_fact"),
        ("119 EUR per year", "€119.00/year", "passed"),
        ("119 EUR per year", "119 euros annually", "passed"),
        ("119 EUR per year", "The annual plan costs €119.", "passed"),
        ("119 EUR", "It costs €119 a year.", "passed"),
        ("€10 per person", "€10 per year", "wrong_fact"),
        ("₹5,000 per day", "Rs 5,000 per night", "passed"),
        ("€120 a year", "€10 per month, that is €120 per year.", "passed"),
        ("€10 a month", "It costs €10 a month. It is €120 a year.", "passed"),
        ("€10 a month and €100 a year", "€10 a year and €100 a month", "abstained"),
    ],
)
def test_an_amount_for_another_period_is_another_amount(gold: str, reply: str, verdict: str):
    """Amounts for different periods do not match. An amount per night and one per day have the same period."""
    assert name_outcome(graded("What does the annual plan cost?", gold, reply)) == verdict


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("Yes, until week 28", "Yes, travellers are covered up to the 36th week.", "wrong_fact"),
        ("Yes, until week 28", "Yes, travellers are covered up to the 28th week.", "passed"),
        ("Yes, up to the 28th week", "Yes, up to and including week 28.", "passed"),
        ("Yes, up to the 28th week", "Yes, pregnancy is covered.", "abstained"),
        ("28th week", "It is covered up to the 28th week.", "passed"),
        ("28th week", "It is covered for the first 28 weeks.", "passed"),
        ("from the 29th day", "from day 43 on", "wrong_fact"),
        ("from the 29th day", "after 28 days", "abstained"),
        ("from the 29th day", "from the 29th", "passed"),
        ("€500 from the 29th day", "€500 from day 29", "passed"),
        ("€500 from the 29th day", "€500 from day 43", "wrong_fact"),
        ("the third floor", "It is on the 3rd floor.", "passed"),
        ("the third floor", "It is on the 4th floor.", "wrong_fact"),
        ("28 weeks", "28 weeks, first seen in week 4", "passed"),
        ("Yes, from day 1", "Yes, at once.", "abstained"),
        ("€500 in the second year", "€500 after a year", "abstained"),
    ],
)
def test_a_place_in_a_row_is_a_fact_of_its_own(gold: str, reply: str, verdict: str):
    """An ordinal in the gold, such as a week or a floor, is compared with the ordinals of the reply.

    A duration with the same number passes, and a duration that is one lower stays open. Small ordinals such as "day
    1" have many other names, so the grader abstains on them if the reply has no ordinal.
    """
    assert name_outcome(graded("Until when is it covered?", gold, reply)) == verdict


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("around the clock", "The line is open 24/7, every day of the year.", "passed"),
        ("24/7", "You can call around the clock.", "passed"),
        ("24 hours a day", "Open 24 hours, seven days a week.", "passed"),
        ("24/7", "It is open from 8 am to 8 pm.", "abstained"),
        ("8 am to 8 pm", "It is open around the clock.", "abstained"),
        ("24/7", "It is not open around the clock.", "wrong_fact"),
        ("24/7", "Not only by day but around the clock.", "passed"),
        ("24/7", "There is a 24-hour helpline.", "abstained"),
        ("24/7", "There is a helpline.", "abstained"),
        ("24 hours", "It takes 24 hours; the helpline is open 24/7.", "passed"),
        ("the 24-hour helpline", "Call the 24-hour helpline.", "passed"),
        ("7 days", "The helpline is open 24/7.", "abstained"),
        ("8:30-18:00", "Monday to Friday from 8:30 am to 6 pm (CET)", "passed"),
        ("8:30-18:00", "Monday to Friday from 8:30 am to 5 pm (CET)", "wrong_fact"),
        ("6 pm", "bis 18 Uhr", "passed"),
        ("7–18 Uhr", "from 7 am to 6 pm", "passed"),
    ],
)
def test_times_of_day_and_what_is_always_open(gold: str, reply: str, verdict: str):
    assert name_outcome(graded("When can I call?", gold, reply)) == verdict


def test_always_is_read_in_german():
    other = {"language": Language.OTHER, "alternatives": ("24/7",)}
    asked = "Wann ist die Hotline erreichbar?"
    assert name_outcome(graded(asked, "rund um die Uhr", "Sie ist rund um die Uhr besetzt.", **other)) == "passed"
    assert name_outcome(graded(asked, "rund um die Uhr", "Sie ist nicht 24/7 besetzt.", **other)) == "wrong_fact"
    assert name_outcome(graded(asked, "rund um die Uhr", "Von 8 bis 18 Uhr.", **other)) == "wrong_fact"


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        ("What is the oldest insurable age?", "79", "You can join up to and including 69 years.", "abstained"),
        ("What is the oldest insurable age?", "79", "You can join up to and including 79 years.", "passed"),
        ("What is the oldest insurable age?", "79", "The wait is 3 months.", "abstained"),
        ("How many months must I wait?", "24", "You wait for 36 months.", "wrong_fact"),
        ("How many hospitals are there?", "79", "You find some within 5 minutes.", "abstained"),
        ("Which percentage do I pay?", "10", "You pay 20 %.", "wrong_fact"),
        ("How many claims are there per year?", "2", "You are insured for one year.", "abstained"),
        ("How many of the 30 days are left?", "12", "The free look is 30 days.", "abstained"),
    ],
)
def test_another_number_of_what_is_asked_is_wrong(question: str, gold: str, reply: str, verdict: str):
    """If the gold is a number without a unit, the unit is taken from the question.

    A reply with another number of this unit is wrong.
    """
    assert name_outcome(graded(question, gold, reply)) == verdict


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        (
            "How much for bags?",
            "up to 2500 euros",
            "Up to €1,200 in all; with the Plus plan it's €2,500.",
            "abstained",
        ),
        ("How much for bags?", "up to 2500 euros", "Bags: up to €1,200 in total. Plus pays €2,500.", "wrong_fact"),
        ("How much for bags?", "up to 2500 euros", "Up to €2,500; with the basic plan it's €1,200.", "passed"),
        (
            "How much for bags with Plus?",
            "up to 2500 euros",
            "Up to €1,200 in all; with Plus it's €2,500.",
            "passed",
        ),
        ("How much for bags?", "up to 2500 euros", "It costs €12 and pays up to €2,500.", "abstained"),
        ("How much for bags?", "up to 2500 euros", "Up to €12 a day, up to €2,500 in all.", "abstained"),
        ("How much for bags?", "€2,500", "It went up from €1,200 to €2,500.", "passed"),
        ("How much for bags?", "€2,500", "It is not €1,200, it is €2,500.", "passed"),
        ("What is the ICU limit?", "₹10,000", "Room rent: ₹5,000, ICU: ₹10,000.", "passed"),
        ("What is the ICU limit?", "₹10,000", "₹5,000 for a room and ₹10,000 for the ICU.", "passed"),
        ("What do I pay?", "€5 and €9", "You pay €5 and then €9.", "passed"),
        ("Which share of €100 is mine?", "€20", "Of €100 you pay €20.", "passed"),
        ("How long may I return it?", "30 days", "We reply within 2 days. You have 30 days.", "passed"),
    ],
)
def test_an_amount_behind_another_as_near_to_the_question_stays_open(
    question: str, gold: str, reply: str, verdict: str
):
    """An amount stays open if an earlier amount in the reply is equally near to the question.

    The earlier amount may be the answer, and the gold's amount may belong to another subject.
    """
    assert name_outcome(graded(question, gold, reply)) == verdict


def test_none_is_zero():
    assert name_outcome(graded("What co-payment applies?", "0%", "There is no co-payment.")) == "passed"
    assert name_outcome(graded("What co-payment applies?", "0%", "A co-payment of 5% applies.")) == "wrong_fact"


def test_the_case_decides_how_close():
    """The case decides how exact a reply must be.

    Only if the case allows it, a month counts as thirty days and a value has a tolerance.
    """
    assert name_outcome(graded("Free look?", "30 days", "one month")) == "wrong_fact"
    assert name_outcome(graded("Free look?", "30 days", "one month", month_is_30_days=True)) == "passed"
    assert name_outcome(graded("Premium?", "₹1,000", "₹1,009")) == "wrong_fact"
    assert name_outcome(graded("Premium?", "₹1,000", "₹1,009", relative_tolerance=Decimal("0.01"))) == "passed"


def test_alternatives_are_as_good():
    assert name_outcome(graded(WAITING, "24 months", "36 months", alternatives=("36 months",))) == "passed"


def test_evidence_points_at_the_figure():
    """The evidence of a grade is the position of the figure in the graded text.

    In this test, the graded text is the one that the API sent, not the visible one.
    """
    wire = WirePayload(url="http://localhost/answer", text="It is two years.")
    exchange = an_exchange("hidden", wire=wire, graded_channel=Channel.WIRE)
    grade = FactualGrader(GraderSettings(), load_domain((INSURANCE,))).grade(
        a_case(WAITING, "a wait of 24 months"), exchange
    )
    assert isinstance(grade, Judged)
    (span,) = grade.evidence
    assert span.where == Channel.WIRE
    assert "It is two years."[span.start : span.end] == "two years"


@given(st.text(), st.text(min_size=1))
def test_it_never_raises(reply: str, gold: str):
    grade = (
        FactualGrader(GraderSettings(), load_domain((INSURANCE,))).grade(a_case(WAITING, gold), an_exchange(reply))
        if _is_valid(gold, reply)
        else None
    )
    assert grade is None or grade.grader == "factual"


def _is_valid(*texts: str) -> bool:
    return all(not any("\ud800" <= character <= "\udfff" for character in text) for text in texts)


@given(
    st.integers(min_value=1, max_value=600),
    st.integers(min_value=1, max_value=600),
    st.sampled_from(["days", "months", "years", "%"]),
)
def test_equal_figures_pass_and_others_fail(gold: int, said: int, unit: str):
    """A reply passes if and only if its figure equals the gold's."""
    grade = graded("How much is it?", f"{gold} {unit}", f"It is {said} {unit}.")
    assert name_outcome(grade) == ("passed" if gold == said else FailureKind.WRONG_FACT.value)
