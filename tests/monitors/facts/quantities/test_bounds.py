"""Tests of the bounds of quantities, such as "at least" and "at most"."""

import pytest

from monitors.facts.quantities.fact import Bound
from monitors.facts.quantities.scan import read_facts


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("up to ₹5,000", Bound.AT_MOST),
        ("upto 30 days", Bound.AT_MOST),
        ("not more than 10%", Bound.AT_MOST),
        ("not exceeding Rs 2 lakh", Bound.AT_MOST),
        ("maximum of 60 days", Bound.AT_MOST),
        ("less than 24 hours", Bound.AT_MOST),
        ("5,000 रुपये तक", Bound.AT_MOST),
        ("30 din tak", Bound.AT_MOST),
        ("10% se kam", Bound.AT_MOST),
        ("30 days or less", Bound.AT_MOST),
        ("at least 24 hours", Bound.AT_LEAST),
        ("minimum 15 beds", Bound.AT_LEAST),
        ("more than 45 years", Bound.AT_LEAST),
        ("no less than 3 months", Bound.AT_LEAST),
        ("65 years and above", Bound.AT_LEAST),
        ("कम से कम 24 घंटे", Bound.AT_LEAST),
        ("2 साल से अधिक", Bound.AT_LEAST),
        ("kam se kam 3 din", Bound.AT_LEAST),
        ("exactly 30 days", Bound.EXACT),
        ("at most. 30 days", Bound.EXACT),
    ],
)
def test_bounds(text: str, bound: Bound):
    """Bounds are read in English, Hindi and Hinglish, before or after the quantity, within one sentence."""
    assert read_facts(text)[0].bound is bound
