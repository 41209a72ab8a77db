"""Tests of ordinal numbers and section numbers."""

import pytest

from monitors.facts.quantities.scan import scan


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("up to the 28th week", ["week"]),
        ("until week 28 of the pregnancy", ["week"]),
        ("from the 29th calendar day", ["day"]),
        ("Week 28: a scan", ["week"]),
        ("the twenty-eighth pregnancy week", ["week"]),
        ("on the third floor", ["floor"]),
        ("28वें सप्ताह तक", ["week"]),
        ("28 weeks", [""]),
        ("every day 20 people call", [""]),
        ("day 20 people call", [""]),
        ("a week 3, perhaps", ["", ""]),
        ("5 days 3", ["", ""]),
        ("in the year 2020", [""]),
        ("the 20th century", [""]),
        ("the 28th of May", [""]),
        ("the 28th patient", [""]),
    ],
)
def test_an_ordinal_or_digits_behind_the_noun(text: str, read: list[str]):
    assert [reading.counts for reading in scan(text).readings] == read
