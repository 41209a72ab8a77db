"""Tests of check digits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn

from monitors.facts.disclosures.identifiers import extract_digits, passes_luhn


@given(st.from_regex(r"[0-9]{1,19}", fullmatch=True))
def test_luhn_agrees_with_the_library(digits: str) -> None:
    assert passes_luhn(digits) == luhn.is_valid(digits)
    assert passes_luhn(digits + luhn.calc_check_digit(digits))


def test_only_ascii_digits_are_digits() -> None:
    assert extract_digits("a1 ९-2²") == "12"
