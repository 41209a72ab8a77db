"""Tests of numbers in words: English, Hindi, Hindi in Latin letters, and words mixed with digits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.scan import read_facts


def numbers(text: str) -> list[str]:
    return [fact.value for fact in read_facts(text) if fact.kind.value == "number"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("thirty-six", "36"),
        ("three hundred and five", "305"),
        ("two thousand, four hundred and six", "2406"),
        ("seven million two hundred thousand", "7200000"),
        ("twelve lakh", "1200000"),
        ("2.5 crore", "25000000"),
        ("3 crore 20 lakh", "32000000"),
        ("4 thousand 3 hundred and 12", "4312"),
        ("a hundred", "100"),
        ("half a million", "500000"),
        ("four and a half", "4.5"),
        ("2½", "2.5"),
        ("6 3/4", "6.75"),
        ("three quarters", "0.75"),
        ("five eighths", "0.625"),
        ("one over eight", "0.125"),
        ("six point oh five", "6.05"),
        ("two million and a half", "2500000"),
        ("three dozen", "36"),
        ("nineteen forty seven", "1947"),
        ("minus eleven", "-11"),
        ("7k", "7000"),
        ("4.5L", "450000"),
        ("12e2", "1200"),
        ("पैंतालीस", "45"),
        ("तीन सौ सात", "307"),
        ("दो लाख पचास हज़ार", "250000"),
        ("ढाई हज़ार", "2500"),
        ("डेढ़ लाख", "150000"),
        ("सवा चार सौ", "425"),
        ("साढ़े सात हजार", "7500"),
        ("पौने तीन करोड़", "27500000"),
        ("सात बटा आठ", "0.875"),
        ("दस दशमलव दो पाँच", "10.25"),
        ("साढ़े 6 लाख", "650000"),
        ("teen lakh", "300000"),
        ("dhai lakh", "250000"),
        ("paanch hazaar", "5000"),
        ("5 लाख", "500000"),
        ("फ़िफ़्टी फाइव", "55"),
    ],
)
def test_one_number(text: str, value: str):
    assert numbers(text) == [value]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two hundred and three hundred", ["200", "300"]),
        ("rows 7, 8 and 9", ["7", "8", "9"]),
        ("25/7", ["25", "7"]),
        ("in 2016 90 people", ["2016", "90"]),
        ("five thousand two million", ["5000", "2000000"]),
        ("the one you chose", []),
        ("how do you do", []),
        ("sath mein dena", []),
        ("an apple", []),
        ("see https://example.org/a/12345?b=20", []),
    ],
)
def test_none_or_several(text: str, values: list[str]):
    """Adjacent numbers are not joined; pronouns, verbs and addresses are not numbers."""
    assert numbers(text) == values


@pytest.mark.parametrize(
    ("text", "value"),
    [("the 5th floor", "5"), ("twenty third", "23"), ("तीसरी", "3"), ("12वां", "12"), ("पचासवीं", "50")],
)
def test_ordinals_are_marked(text: str, value: str):
    """An ordinal is read as a number with the original unit "ordinal"."""
    (fact,) = read_facts(text)
    assert (fact.value, fact.original_unit) == (value, "ordinal")


ONES = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]  # fmt: skip
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spoken(number: int) -> str:
    """Return a number below a billion in English words."""
    for size, name in ((10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= size:
            head, rest = divmod(number, size)
            return f"{spoken(head)} {name}" + (f" {spoken(rest)}" if rest else "")
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")


@given(st.integers(min_value=1, max_value=10**9 - 1))
def test_said_then_read(number: int):
    """Any number that is written in English words is read back with its value."""
    assert numbers(spoken(number)) == [str(number)]
