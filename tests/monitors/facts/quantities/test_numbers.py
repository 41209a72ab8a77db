"""Tests of reading numerals."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.numerals import format_plain, parse_numeral


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,50,000", ["150000"]),
        ("150,000", ["150000"]),
        ("1,00,00,000", ["10000000"]),
        ("1.234,56", ["1234.56"]),
        ("12,34,567.89", ["1234567.89"]),
        ("19,95", ["19.95"]),
        ("2.50", ["2.50"]),
        ("1.234.567", ["1234567"]),
        ("10.0.0.7", ["10", "0", "0", "7"]),
        ("2019,20,21", ["2019", "20", "21"]),
        ("007", ["7"]),
    ],
)
def test_separators(text: str, values: list[str]):
    """Western and Indian digit groups, decimal points and commas are read. Other forms are several numbers each."""
    assert [value for value, _, _ in parse_numeral(text)] == [Decimal(value) for value in values]


@given(st.integers(min_value=0, max_value=10**15))
def test_both_groupings_say_the_same(number: int):
    """A number that is formatted in western or Indian groups is read back with the same value."""
    western = f"{number:,}"
    head, tail = str(number)[:-3], str(number)[-3:]
    pairs = [head[max(0, end - 2) : end] for end in range(len(head), 0, -2)][::-1]
    indian = ",".join([*pairs, tail])
    for text in (western, indian):
        assert parse_numeral(text)[0][0] == number


@pytest.mark.parametrize("text", ["9" * 5000, "1," * 5000 + "1", "1." * 5000 + "1"])
def test_endless_digits_are_no_number(text: str):
    assert parse_numeral(text) == []


@pytest.mark.parametrize(
    ("value", "text"), [("1E+6", "1000000"), ("2.500", "2.5"), ("-0", "0"), ("0.0", "0"), ("-7.10", "-7.1")]
)
def test_plain(value: str, text: str):
    """Values are formatted without exponents and trailing zeros."""
    assert format_plain(Decimal(value)) == text
