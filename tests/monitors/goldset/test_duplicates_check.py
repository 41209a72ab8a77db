"""Tests that questions that occur twice in a suite are found.

Questions that only look alike are not reported.
"""

from __future__ import annotations

import pytest

from monitors.goldset.checks import Weight, find_bad_lines, find_duplicates
from tests.monitors.goldset.gold_cases import numbered_of


def lines_found(*rows):
    return [[place.line for place in one.places] for one in find_duplicates(numbered_of(*rows).cases)]


def test_the_same_question_with_the_same_gold_is_an_error():
    """The same question with the same gold is an error, even if typed differently, because it would count twice."""
    first = {"question": "What is the free-look period?"}
    second = {"question": "what is  the free-look period"}
    (found,) = find_duplicates(numbered_of(first, {"question": "Is dental covered?"}, second).cases)
    assert [place.line for place in found.places] == [1, 3]
    assert found.weight is Weight.MUST


def test_a_duplicate_id_is_reported():
    """A duplicate id is reported, because a suite with a duplicate id does not load."""
    rows = ({"id": "x", "question": "Is dental covered?"}, {"id": "x", "question": "What is the co-pay?"})
    assert lines_found(*rows) == [[1, 2]]


@pytest.mark.parametrize(
    "second",
    [
        "How long is the wating period for pre-existing diseases in Suraksha Gold?",
        "Please, how long is the waiting period for pre-existing diseases in Suraksha Gold",
        "How long is the waiting period for pre-existing disease in Suraksha Gold?",
    ],
)
def test_a_typo_or_a_polite_word_makes_no_new_question(second):
    """Questions that differ only by a typo or a polite word are reported as near-duplicates."""
    (found,) = find_duplicates(numbered_of({}, {"question": second}).cases)
    assert found.weight is Weight.SHOULD


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"question": "How many days of pre-hospitalisation expenses does the Suraksha Gold policy cover?"},
            {"question": "How many days of post-hospitalisation expenses does the Suraksha Gold policy cover?"},
        ),
        (
            {"question": "Can I claim for my pre-existing diabetes under the policy after 12 months?"},
            {"question": "Can I claim for my pre-existing diabetes under the policy after 48 months?"},
        ),
        ({}, {"cluster": "suraksha-silver", "question": "How long is the waiting period in Suraksha Silver?"}),
        ({}, {"language": "hi", "question": "सुरक्षा गोल्ड में प्रतीक्षा अवधि कितनी है?"}),
    ],
)
def test_different_questions_are_left_alone(one, other):
    """Questions with a different word, quantity, policy or language are not duplicates, even with the same gold."""
    assert lines_found(one, other) == []


def test_a_case_without_severity_differs_from_a_broken_line(snapshot):
    """A case without a severity and a line with an unreadable value are reported by different checks.

    Each invalid line has its own finding with the loader's message.
    """
    missing, broken = find_bad_lines(numbered_of({"severity": None}, {"language": "klingon"}))
    assert missing.check == "severity"
    assert missing.do == snapshot
    assert missing.places[0].case_id == "case-1"
    assert broken.check == "unreadable"
