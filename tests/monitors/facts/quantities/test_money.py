"""Tests of amounts of money with their currency."""

import pytest

from monitors.facts.quantities.scan import read_facts


def money(text: str) -> list[tuple[str, str | None]]:
    return [(fact.value, fact.unit) for fact in read_facts(text) if fact.kind.value == "money"]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("₹15,000", "15000", "INR"),
        ("Rs. 1,50,000", "150000", "INR"),
        ("Rs.500", "500", "INR"),
        ("INR 2.5 lakh", "250000", "INR"),
        ("`7,500 per day", "7500", "INR"),
        ("20,000/-", "20000", "INR"),
        ("₹5 lakh", "500000", "INR"),
        ("₹ ५०,०००", "50000", "INR"),
        ("Rs. 3 (three) lakh", "300000", "INR"),
        ("दो लाख रुपये", "200000", "INR"),
        ("साढ़े तीन सौ रुपए", "350", "INR"),
        ("पचास हज़ार रुपये", "50000", "INR"),
        ("do lakh rupaye", "200000", "INR"),
        ("25 rupees 50 paise", "25.5", "INR"),
        ("$12", "12", None),
        ("US$ 3 million", "3000000", "USD"),
        ("C$7.50", "7.5", "CAD"),
        ("£9.99", "9.99", "GBP"),
        ("1.299,00 €", "1299", "EUR"),
        ("40 Swiss francs", "40", "CHF"),
        ("USD 12.5 million", "12500000", "USD"),
        ("18 MEUR", "18000000", "EUR"),
        ("eight dollars and forty cents", "8.4", None),
    ],
)
def test_one_amount(text: str, value: str, unit: str | None):
    """An amount is read once, in words or digits, with its currency on either side. No extra number is read."""
    assert [fact.kind.value for fact in read_facts(text)] == ["money"]
    assert money(text) == [(value, unit)]


def test_ranges_share_their_sign_and_scale():
    assert money("₹5,000 - 10,000") == [("5000", "INR"), ("10000", "INR")]
    assert money("$2-3 million") == [("2000000", None), ("3000000", None)]
    assert money("5 to 10 lakh rupees") == [("500000", "INR"), ("1000000", "INR")]


def test_neighbours_keep_their_own():
    """If several amounts are next to each other, each keeps its own currency sign."""
    assert money("₹100 ₹200") == [("100", "INR"), ("200", "INR")]
    assert money("eur 5 usd 6") == [("5", "EUR"), ("6", "USD")]


def test_code_in_backticks_is_no_money():
    assert money("set `30` there") == []
