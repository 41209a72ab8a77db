"""Golds that contradict each other are found; golds that state the same fact differently are not reported."""

from __future__ import annotations

import pytest

from monitors.goldset.checks import Weight, find_contradictions
from tests.monitors.goldset.gold_cases import numbered_of

OTHER = {"question": "When is an old illness covered?"}


def lines(*rows):
    return [[place.line for place in one.places] for one in find_contradictions(numbered_of(*rows).cases)]


@pytest.mark.parametrize(
    "second",
    [
        {"gold": "36 months"},
        {"gold": "36 months", "cluster": "suraksha-silver"},
        {"gold": "not stated", "expected_refusal": True},
        {"gold": "After 48 months", "provenance": {"pipeline": "adversarial"}},
    ],
)
def test_one_question_with_two_golds_is_found(second):
    """One question with two golds is found, also across policies if the question does not name the policy."""
    assert lines({}, second) == [[1, 2]]


@pytest.mark.parametrize(
    "second",
    [
        OTHER | {"gold": "36 months"},
        OTHER | {"gold": "24 days"},
        OTHER | {"gold": "24 months", "expected_refusal": True},
        {"question": "प्रतीक्षा अवधि कितनी है?", "language": "hi", "gold": "36 महीने"},
    ],
)
def test_one_field_of_one_policy_with_two_values_is_found(second):
    """Two values of one field of one policy are found with any wording and in any language."""
    (found,) = find_contradictions(numbered_of({}, second).cases)
    assert found.weight is Weight.MUST
    assert "ped_waiting of suraksha-gold" in found.what


@pytest.mark.parametrize(
    "second",
    [
        OTHER | {"gold": "two years"},
        OTHER | {"gold": "Yes, after 24 months of continuous cover"},
        OTHER | {"gold": "Up to 24 months"},
        OTHER | {"gold": "No, diabetes is a pre-existing disease"},
        OTHER | {"gold": "36 months", "cluster": "suraksha-silver"},
        OTHER | {"gold": "36 months", "provenance": {"pipeline": "template", "field": "maternity_waiting"}},
        {"question": "प्रतीक्षा अवधि कितनी है?", "language": "hi", "gold": "24 महीने"},
        {"gold": "24 months from the start"},
    ],
)
def test_compatible_golds_are_accepted(second):
    """Golds that differ in wording, length, policy, field or language are not reported as contradictions."""
    assert lines({}, second) == []


def test_two_refusals_of_one_question_do_not_contradict():
    """Two refusals of one question do not contradict each other, because their golds only give the reason."""
    silent = {"expected_refusal": True}
    assert lines(silent | {"gold": "not stated"}, silent | {"gold": "It is not in the documents"}) == []


def test_many_golds_for_one_question_are_reported_as_a_few_pairs():
    """Many golds for one question are reported as a few pairs, not as forty-five lines."""
    rows = [{"gold": f"{months} months"} for months in range(10, 20)]
    assert len(lines(*rows)) <= 6
