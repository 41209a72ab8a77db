"""Short golds without a quantity."""

from datetime import UTC, datetime

import pytest

from monitors.graders.phrases import PhrasesGrader, phrase_words
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Abstained, Judged


def grade(gold: str, reply: str, *alternatives: str) -> Judged | Abstained:
    case = GoldCase(
        id="c1",
        turns=("Which hospital handles claims?",),
        gold=gold,
        alternatives=alternatives,
        severity=Severity.WRONG,
        language=Language.ENGLISH,
        type="network",
        provenance=Provenance(pipeline=Pipeline.TEMPLATE),
    )
    exchange = Exchange(
        run_id="r1",
        case_id="c1",
        turns=case.turns,
        visible_text=reply,
        asked_at=datetime(2026, 1, 1, tzinfo=UTC),
        timings=Timings(total_ms=1),
    )
    return PhrasesGrader().grade(case, exchange)


def told(verdict: Judged | Abstained) -> str:
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
        ("Lotus Clinic", "It is not the Lotus Clinic.", "abstained"),
        ("Lotus Clinic", "Lotus Clinic nahi, koi aur.", "abstained"),
        ("hospital handles claims", "Which hospital handles claims? No idea.", "abstained"),
        ("Lotus Clinic", "Blotus clinical trials", "abstained"),
        ("Any room but a suite, only if no single room can be had that day", "A suite.", "abstained"),
        ("The answer is polite and explains the rule", "Bags go into a locker.", "abstained"),
        ("Guests must leave quietly", "Please make no noise when you go.", "abstained"),
        ("Frühstück hat begonnen um acht bitte warten", "Breakfast is served.", "abstained"),
        ("Lotus Clinic and Banyan Hospital", "Claims go to the post office.", "failed"),
    ],
)
def test_phrases(gold: str, reply: str, verdict: str):
    """Whole phrases pass, replies that share nothing fail, all in between is left open."""
    assert told(grade(gold, reply)) == verdict


def test_any_alternative_is_enough():
    assert told(grade("Lotus Clinic", "Ask at Banyan.", "Banyan")) == "passed"


def test_evidence_is_the_phrase():
    verdict = grade("Lotus Clinic", "Go to the Lotus Clinic.")
    assert isinstance(verdict, Judged)
    (span,) = verdict.evidence
    assert "Go to the Lotus Clinic."[span.start : span.end] == "Lotus Clinic"


def test_brackets_of_more_than_three_words_are_part_of_the_gold():
    assert phrase_words("Single room (2016 plan)") == ("single", "room")
    assert len(phrase_words("Single room (suite only if no other is free)")) > 5
