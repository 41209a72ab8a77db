"""Tests that the reasons of grades contain quantities as people write them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, strategies

from monitors.facts.claims.wording import describe_reading, group_digits
from monitors.facts.quantities.scan import scan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It pays up to Rs. 40,000.", "up to ₹40,000"),
        ("It pays ₹1.5 lakh.", "₹1,50,000"),
        ("It pays 2 crore rupees.", "₹2,00,00,000"),
        ("It costs USD 1,234,567.50.", "$1,234,567.5"),
        ("at least 24 months", "at least 24 months"),
        ("one year", "1 year"),
        ("a co-payment of 10%", "10 %"),
        ("on 5 March 2026", "2026-03-05"),
    ],
)
def test_a_quantity_in_words(text, words):
    (reading,) = scan(text).readings
    assert describe_reading(reading) == words


@given(strategies.decimals(-(10**12), 10**12, places=2), strategies.booleans())
def test_groups_change_no_value(value, indian):
    assert Decimal(group_digits(value, indian=indian).replace(",", "")) == value
