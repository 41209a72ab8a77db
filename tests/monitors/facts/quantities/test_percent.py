"""Tests of percentages."""

import pytest

from monitors.facts.quantities.scan import read_facts


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10%", ["10"]),
        ("12.5 %", ["12.5"]),
        ("twenty per cent", ["20"]),
        ("5 percent of the sum insured", ["5"]),
        ("दस प्रतिशत", ["10"]),
        ("20 फ़ीसदी", ["20"]),
        ("bees pratishat", ["20"]),
        ("5 to 10 percent", ["5", "10"]),
        ("10%, 20% or 25%", ["10", "20", "25"]),
        ("minus two percent", ["-2"]),
        ("a percentage of the claim", []),
        ("https://example.org/?q=20%25", []),
    ],
)
def test_percentages(text: str, values: list[str]):
    found = [fact for fact in read_facts(text) if fact.kind.value == "percent"]
    assert [fact.value for fact in found] == values
    assert {fact.unit for fact in found} <= {"percent"}


def test_a_year_before_a_percentage_is_no_percentage():
    facts = read_facts("in 2019, 40 % of claims")
    assert [(fact.kind.value, fact.value) for fact in facts] == [("number", "2019"), ("percent", "40")]
