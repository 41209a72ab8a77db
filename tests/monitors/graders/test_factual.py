"""Tests of the grader for factual accuracy. The form of the gold decides how the grader compares a reply."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.factual import FactualGrader
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Abstained, Aspect, Judged


def grade(question: str, gold: str, reply: str, **more: object) -> Judged | Abstained:
    fields = {
        "id": "c1", "turns": (question,), "gold": gold, "severity": Severity.CRITICAL, "language": Language.ENGLISH,
        "type": "coverage_scope", "provenance": Provenance(pipeline=Pipeline.TEMPLATE),
    }  # fmt: skip
    case = GoldCase.model_validate(fields | more)
    exchange = Exchange(
        run_id="r1",
        case_id="c1",
        turns=case.turns,
        visible_text=reply,
        asked_at=datetime(2026, 1, 1, tzinfo=UTC),
        timings=Timings(total_ms=1),
    )
    return FactualGrader(GraderSettings(), load_domain((INSURANCE,))).grade(case, exchange)


def name_outcome(verdict: Judged | Abstained) -> str:
    if isinstance(verdict, Abstained):
        return "abstained"
    return "passed" if verdict.failure_kind is None else verdict.failure_kind.value


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        ("Is cataract covered?", "Yes, after 24 months", "Cataract is covered after two years.", "passed"),
        ("Is cataract covered?", "Yes, after 24 months", "Cataract is covered.", "abstained"),
        ("Is cataract covered?", "Yes, after 24 months", "Cataract is covered after 12 months.", "wrong_fact"),
        ("Is cataract covered?", "Yes, after 24 months", "Cataract is not covered.", "wrong_fact"),
        ("Is cataract covered?", "Yes", "Cataract is not covered.", "wrong_fact"),
        (
            "Is there a co-pay?",
            "10% co-pay applies",
            "The plan has no co-pay. An add-on has a 10% one.",
            "wrong_fact",
        ),
        ("Kya maternity cover hai?", "Haan, 24 mahine ke baad", "Haan, do saal baad.", "passed"),
        ("Who settles claims?", "Lotus Clinic", "The Lotus Clinic does.", "passed"),
        ("Who settles claims?", "Lotus Clinic", "The Banyan House does.", "missing_fact"),
        ("Who settles claims?", "Lotus 24 Clinic", "Banyan 24", "abstained"),
        ("Who settles claims?", "Lotus Clinic", "   ", "missing_fact"),
        # A line number in a file is not a quantity, and a sentence states more than its quantities.
        (
            "Why do sessions expire early?",
            "auth/middleware.py:L142 uses local time where the token carries UTC",
            "The pool closes idle connections: see line 142 of db/pool.py.",
            "abstained",
        ),
        (
            "Why do sessions expire early?",
            "Tokens live 30 minutes, but the middleware compares local time with UTC",
            "The cache is emptied every 30 minutes.",
            "abstained",
        ),
        (
            "Why do sessions expire early?",
            "Tokens live 30 minutes, but the middleware compares local time with UTC",
            "A token lives 30 minutes; the middleware compares UTC with local time.",
            "passed",
        ),
        (
            "How long is the waiting period?",
            "24 months of continuous cover from the first policy",
            "36 months.",
            "wrong_fact",
        ),
        ("How long is the waiting period?", "24 months waiting period", "Two years.", "passed"),
        ("What is the limit?", "Up to ₹5 lakh", "₹5,00,000 at most.", "passed"),
        ("Which year had the larger margin?", "2018", "2018, 2019", "abstained"),
    ],
)
def test_verdicts(question: str, gold: str, reply: str, verdict: str):
    assert name_outcome(grade(question, gold, reply)) == verdict


@pytest.mark.parametrize(
    ("question", "gold", "reply", "verdict"),
    [
        ("When can I call?", "Mon-Fri 8:30-18:00", "Monday to Friday from 8:30 am to 6 pm (CET)", "passed"),
        ("When can I call?", "Mon-Fri 8:30-18:00", "Monday to Friday from 8:30 am to 5 pm (CET)", "wrong_fact"),
        ("When can I call?", "Mon-Fri 8:30-18:00", "on working days from 8:30 am to 6 pm", "abstained"),
        ("Are births covered?", "Yes, until week 28", "Yes, up to the 36th week.", "wrong_fact"),
        ("Are births covered?", "Yes, until week 28", "Yes, up to the 28th week.", "passed"),
        ("Is it staffed?", "Yes, 24/7", "Yes, around the clock.", "passed"),
        ("What does it cost?", "119 EUR per year", "€119.00 a month", "wrong_fact"),
    ],
)
def test_one_fact_in_two_forms(question: str, gold: str, reply: str, verdict: str):
    assert name_outcome(grade(question, gold, reply)) == verdict


def test_an_expected_refusal_is_not_its_business():
    assert (
        name_outcome(grade("Space travel?", "Must refuse", "I cannot say.", expected_refusal=True)) == "abstained"
    )


def test_a_phrase_among_the_alternatives_counts():
    """A reply without the gold's quantity passes if it contains an accepted alternative phrase."""
    assert name_outcome(grade("When?", "24 months", "At renewal.", alternatives=("at renewal",))) == "passed"


def test_an_unclear_quantity_is_not_outvoted_by_a_yes():
    assert (
        name_outcome(grade("Is it covered?", "Yes, from 3 May 2024", "Yes, it is covered from 2024."))
        == "abstained"
    )


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("Tuesday to Sunday, 10:00 to 20:00", "We are open Monday to Sunday, 10 am to 8 pm.", "abstained"),
        ("Tuesday to Sunday, 10:00 to 20:00", "Tue-Sun from 10:00 to 20:00, closed on Mondays.", "passed"),
        ("daily from 5:30 am to 11 pm", "Monday to Friday from 05:30 to 23:00.", "abstained"),
        ("daily from 5:30 am to 11 pm", "Monday to Sunday from 05:30 to 23:00.", "passed"),
        ("Terminal 2", "You leave from Terminal 1, opposite gate A2.", "wrong_fact"),
        ("Terminal 2", "You leave from terminal 2, gate B1.", "passed"),
        ("Gate 12", "Gate A12.", "abstained"),
    ],
)
def test_days_of_the_week_and_places_in_a_row(gold: str, reply: str, verdict: str):
    assert name_outcome(grade("When, and from where?", gold, reply)) == verdict


def test_a_flood_is_left_alone():
    """A reply with very many figures, or a very long reply, is left open."""
    assert (
        name_outcome(grade("How long?", "24 months", " ".join(f"{n} months," for n in range(1, 900))))
        == "abstained"
    )
    assert name_outcome(grade("How long?", "24 months", "24 months " + "blah " * 20_000)) == "abstained"


@given(st.text(), st.text(min_size=1), st.text(min_size=1))
def test_it_never_raises(reply: str, gold: str, question: str):
    """The grader raises no error for any text.

    Texts with lone surrogates are left out, because no record contains them.
    """
    texts = (reply, gold, question)
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        return
    assert grade(question, gold, reply).aspect is Aspect.FACTUAL_MATCH


PIECES = st.sampled_from(
    ["yes", "no", "not", "covered", "24", "months", "₹", "5,000", "%", "or", "and", ".", ",", "waiting", "period", "prior",
     "week", "28th", "28", "24/7", "a", "per", "to", "Nova", "Gold", "Silver", "नहीं", "कवर", "है", "दो", "साल", "tak", "up", "nahi", "(", ")", "[", "]"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25), st.lists(PIECES, min_size=1, max_size=8))
def test_it_never_raises_on_its_own_words(reply: list[str], gold: list[str]):
    verdict = grade("Is the waiting period of Nova Gold covered?", " ".join(gold), " ".join(reply))
    if isinstance(verdict, Judged):
        assert all(span.end >= span.start for span in verdict.evidence)


@pytest.mark.parametrize(
    ("question", "gold", "reply", "outcome"),
    [
        ("When does the last ferry leave?", "22:40", "The kiosk on the pier shuts at 22:40.", "abstained"),
        ("When does the last ferry leave?", "22:40", "The last ferry leaves at 22:40.", "passed"),
        ("How long is the guarantee on a frame?", "5 years", "Our workshop opened its doors 5 years ago.", "abstained"),
        ("How long is the guarantee on a frame?", "5 years", "फ़्रेम की गारंटी 5 साल है।", "passed"),
        ("What does plywood cost?", "£31", "Until last winter customers paid £28; nowadays sheets go for £31.", "passed"),
    ],
)  # fmt: skip
def test_a_figure_without_a_word_of_the_question_is_left_open(question, gold, reply, outcome):
    assert name_outcome(grade(question, gold, reply)) == outcome


@pytest.mark.parametrize(
    ("question", "gold", "reply"),
    [
        ("Who repairs the organ?", "Halvard", "piano: Halvard\norgan: Mireille\nharp: Tove"),
        (
            "What must I bring to the course?",
            "boots, gloves and a helmet",
            "Please bring this:\n\n✔ boots\n✔ gloves\n✔ a helmet\n✔ a harness",
        ),
        (
            "When is the chimney swept?",
            "The chimney is swept on 3 May.",
            "You can ask for another day until 3 May; the sweep comes on 12 May.",
        ),
        ("How do I mix sand and lime?", "2, 3", "Take 3 parts sand and 2 parts lime."),
    ],
    ids=["another label", "an item more", "a deadline", "another order"],
)
def test_what_stands_there_for_something_else_is_left_open(question, gold, reply):
    assert name_outcome(grade(question, gold, reply)) == "abstained"
