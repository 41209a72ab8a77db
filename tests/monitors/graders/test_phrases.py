"""Tests of short golds without a quantity: names, phrases, lists."""

import pytest

from monitors.facts.claims.phrases import extract_phrase_keys
from monitors.records.grades import Abstained, Judged
from tests.monitors.graders import test_factual


def grade(gold: str, reply: str, *alternatives: str) -> Judged | Abstained:
    question = "Which hospital handles claims?"
    return test_factual.grade(question, gold, reply, alternatives=alternatives)


def name_outcome(verdict: Judged | Abstained) -> str:
    return "abstained" if isinstance(verdict, Abstained) else "passed" if verdict.passed else "failed"


@pytest.mark.parametrize(
    ("gold", "reply", "verdict"),
    [
        ("Lotus Clinic", "Claims go to the lotus clinic in Pune.", "passed"),
        ("The Lotus Clinic", "LOTUS CLINIC", "passed"),
        ("Café Médico", "cafe medico", "passed"),
        ("Lotus Clinic (Pune)", "Lotus Clinic", "passed"),
        ("लोटस क्लिनिक", "दावे लोटस क्लिनिक में जाते हैं।", "passed"),
        ("Lotus Clinic", "Claims go to the Banyan Hospital.", "failed"),
        ("Lotus Clinic", "Claims go to the Lotus Hospital.", "abstained"),
        ("Lotus Clinic", "It is not the Lotus Clinic.", "failed"),
        ("Lotus Clinic", "Lotus Clinic nahi, koi aur.", "failed"),
        ("hospital handles claims", "Which hospital handles claims? No idea.", "abstained"),
        ("Lotus Clinic", "Blotus clinical trials", "abstained"),
        ("Any room but a suite, only if no single room can be had that day", "A suite.", "abstained"),
        ("The answer is polite and explains the rule", "Bags go into a locker.", "abstained"),
        ("Guests must leave quietly", "Please make no noise when you go.", "abstained"),
        ("Frühstück hat begonnen um acht bitte warten", "Breakfast is served.", "abstained"),
        ("Lotus Clinic and Banyan Hospital", "Claims go to the post office.", "abstained"),
    ],
)
def test_phrases(gold: str, reply: str, verdict: str):
    """A reply with the whole phrase passes, a reply without any of its words fails, and other replies stay open."""
    assert name_outcome(grade(gold, reply)) == verdict


def test_any_alternative_is_enough():
    assert name_outcome(grade("Lotus Clinic", "Ask at Banyan.", "Banyan")) == "passed"


def test_evidence_is_the_phrase():
    verdict = grade("Lotus Clinic", "Go to the Lotus Clinic.")
    assert isinstance(verdict, Judged)
    (span,) = verdict.evidence
    assert "Go to the Lotus Clinic."[span.start : span.end] == "Lotus Clinic"


def test_brackets_of_more_than_three_words_are_part_of_the_gold():
    assert extract_phrase_keys("Single room (2016 plan)") == ("single", "room")
    assert len(extract_phrase_keys("Single room (suite only if no other is free)")) > 5
