"""Tests that the rules for all conversations find what the graders find in a sampled conversation."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.nightly.grading import TrafficGrader
from monitors.graders.base import GraderSettings
from monitors.graders.traffic_panel import TrafficPanel
from monitors.records.base import Severity
from monitors.records.grades import Judged
from monitors.records.nightly import CensusKind
from monitors.records.traffic import Conversation, Turn

PANEL = TrafficPanel(GraderSettings(public_contacts=("help@insurer.example",)))
ASKED = "How long is the waiting period of this plan?"
FINE = "You have thirty days to renew the policy of this plan."
MAIL = "Write to asha.verma.1987@gmail.com about her claim."
ERROR = "Error code: 429 - rate limit reached"
NO = "I'm sorry, I can't help with that request."
HINDI = "इस योजना में प्रतीक्षा अवधि चौबीस महीने की है।"
D, E, N, W, R = CensusKind


def talk(*turns: tuple[str, str]) -> Conversation:
    made = tuple(Turn(user_text=asked, reply_text=reply) for asked, reply in turns)
    return Conversation(id="c-1", origin_id="c-1", completed_at=datetime(2026, 1, 1, tzinfo=UTC), turns=made)


SEEN = [
    ("a good answer", [(ASKED, FINE)], set()),
    ("a disclosure", [(ASKED, MAIL)], {D}),
    ("what the user wrote is none", [("I am asha.verma.1987@gmail.com, who else is?", MAIL)], set()),
    ("a public contact is none", [(ASKED, "Please write to help@insurer.example about this.")], set()),
    ("an error", [(ASKED, ERROR)], {E}),
    ("an error that was asked about", [("What does this mean: Error code: 429 - rate limit?", ERROR)], set()),
    ("an error in the first of two replies", [(ASKED, ERROR), (ASKED, FINE)], {E}),
    ("a refusal", [(ASKED, NO)], {R}),
    ("another language", [(ASKED, HINDI)], {W}),
    (
        "German asked, French answered",
        [("Wann öffnet der Laden am Samstag?", "Le magasin ouvre le samedi à neuf heures.")],
        {W},
    ),
    (
        "German asked, Dutch answered",
        [("Wann öffnet der Laden am Samstag?", "De winkel is op de hoek van het plein.")],
        set(),
    ),
    ("no answer at all", [(ASKED, "")], {N}),
    ("blanks are no answer", [(ASKED, " \n")], {N}),
    ("the last message got none", [(ASKED, FINE), (ASKED, "")], {N}),
    ("an answer to the second of two messages in a row", [("Hello", ""), (ASKED, FINE)], set()),
    ("two kinds at once", [(ASKED, MAIL), (ASKED, ERROR)], {D, E}),
]


@pytest.mark.parametrize(("turns", "kinds"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_findings_in_a_conversation(turns, kinds):
    assert PANEL.find_first_failure_of_each_kind(talk(*turns)).found.keys() == kinds


def test_missing_fields_are_not_graded():
    assert PANEL.find_first_failure_of_each_kind(talk((ASKED, ""))).graded == {N}
    assert PANEL.find_first_failure_of_each_kind(talk(("Hi", FINE))).graded == {D, E, N, R}
    assert PANEL.find_first_failure_of_each_kind(talk((ASKED, FINE))).graded == set(CensusKind)


def test_an_example_is_where_it_shows_first():
    found = PANEL.find_first_failure_of_each_kind(
        talk((ASKED, FINE), (ASKED, "See: " + MAIL), (ASKED, MAIL))
    ).found[D]
    assert (found.turn, found.start, found.detail) == (1, len("See: Write to "), "e-mail address")


TEXTS = st.sampled_from([FINE, MAIL, ERROR, NO, HINDI, "", "Hi", ASKED, f"{MAIL} {ERROR}", "24 months [Source: 1]"])


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
def test_the_census_finds_what_the_graders_find(turns):
    """The census finds the same kinds of failure in a conversation as the graders.

    The census applies rules to all conversations. The test compares only the kinds of failure that the census
    checks.
    """
    conversation = talk(*turns)
    found = {kind.failure_kind for kind in PANEL.find_first_failure_of_each_kind(conversation).found} - {None}
    graded = TrafficGrader(PANEL, severity=Severity.MAJOR).grade_turns(conversation, conversation, "r")
    grades = [grade for turn in graded for grade in turn.result.assessment.grades if isinstance(grade, Judged)]
    comparable = {kind.failure_kind for kind in CensusKind} - {None}
    assert found == {grade.failure_kind for grade in grades} & comparable
