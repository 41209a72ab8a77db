"""Tests that equal quantities are recognised in two texts, in three languages and any spelling."""

from __future__ import annotations

import pytest

from monitors.facts.similarity import find_missing_quantities, list_quantity_differences


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("24 months", "24 महीने"),
        ("two years", "24 mahine"),
        ("₹1,20,000 per year", "1.2 lakh rupaye har saal"),
        ("up to 10% of the sum", "बीमा राशि के १०% तक"),
        ("72 hours before a claim", "claim se 72 ghante pehle"),
        ("a claim within 15 days", "एक क्लेम 15 दिन के अंदर"),
        ("Does it cover H1N1?", "Kya H1N1 cover hai?"),
    ],
)
def test_spelling_and_language_make_no_difference(one, other):
    assert list_quantity_differences(one, other) == ()
    assert list_quantity_differences(other, one) == ()


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        ("24 months", "18 mahine", ("24 months is lost", "18 mahine is added")),
        ("24 months", "24 din", ("24 months is lost", "24 din is added")),
        ("₹6,000 per day", "₹6,000", ()),  # a rate's "day" is no duration of its own
        ("10% after 30 days", "30 दिन", ("10% is lost",)),
        ("yes", "haan, 5 saal", ("5 saal is added",)),
    ],
)
def test_changes_are_quoted_as_written(one, other, changes):
    assert list_quantity_differences(one, other) == changes


def test_a_gold_may_say_less_than_its_clause_and_nothing_more():
    clause = "A delivery is covered up to ₹50,000 after 24 months."
    assert find_missing_quantities("₹50,000", clause) == ()
    assert find_missing_quantities("₹50,000 after 36 months", clause) == ("36 months",)
