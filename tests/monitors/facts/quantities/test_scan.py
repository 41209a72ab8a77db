"""All quantities of any text are found, with their positions."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.facts.quantities.scan import ReadLimits, read_facts, scan
from tests.tiers import scale_examples


def test_a_sentence():
    """The kinds, values and positions of all quantities in a sentence are read, sorted and without overlaps."""
    text = "Maternity: ₹50,000 after two (2) years; 10% co-pay, from 1 April 2024, for 3 claims."
    assert [(fact.kind.value, fact.value, fact.text) for fact in read_facts(text)] == [
        ("money", "50000", "₹50,000"),
        ("duration", "730", "two (2) years"),
        ("percent", "10", "10%"),
        ("date", "2024-04-01", "1 April 2024"),
        ("number", "3", "3"),
    ]


def test_spans_count_the_original():
    """Positions are counted in code points of the original text, even if folding moved every character."""
    text = "\u202eﬁrst: रु.\u200b १५,०००\u202f/- and 24\u2011month"
    facts = read_facts(text)
    assert [fact.value for fact in facts][-2:] == ["15000", "720"]
    assert all(text[fact.start : fact.end] == fact.text for fact in facts)


def test_measures_and_identifiers_are_no_numbers():
    """Letters directly after digits make a unit or an identifier, not a number."""
    assert [fact.value for fact in read_facts("A4 paper, 4x4 drive, a 7P chip")] == ["4", "4", "4"]
    assert [(fact.kind, fact.value) for fact in read_facts("750ml")] == [("quantity", "0.75")]


PIECES = st.sampled_from(
    ["24", "months", "₹", "5", "lakh", "%", "(", ")", "two", "and", "a", "half", "-", "/", "to", "march", "2020", ",", ".", "सौ",
     "साढ़े", "दो", "साल", "का", "बटा", "point", "minus", "Rs", "crore", "hundred", "third", "1,50,000", "of", "\n", "½", "tak",
     "kam", "se", "up", "twenty", "nineteen", "oh", "days", "every", "$", "cents", "or", "1/2", "^", "e", "x10"]
)  # fmt: skip


@settings(max_examples=scale_examples(400))
@given(st.lists(PIECES, max_size=14), st.sampled_from([" ", ""]))
def test_anything_made_of_quantities(pieces: list[str], joint: str):
    """Any text is read without an error; facts are in order, do not overlap, and match the text at their position."""
    text = joint.join(pieces)
    facts = read_facts(text)
    for fact in facts:
        assert text[fact.start : fact.end] == fact.text
        assert fact.start < fact.end
    for first, second in pairwise(facts):
        assert first.end <= second.start


@given(st.text())
def test_any_text(text: str):
    for fact in read_facts(text):
        assert text[fact.start : fact.end] == fact.text


@pytest.mark.parametrize(
    "unit",
    [
        "9,",
        " ",
        "सौ ",
        "one hundred and ",
        "crore ",
        "twenty ",
        "000 ",
        "(",
        "5(",
        "$5-",
        "half a ",
        "1/",
        "http://1 ",
    ],
)
def test_hostile_repetition_ends(unit: str):
    """A hundred thousand repetitive characters are read in one pass, within the time limit of the test."""
    text = unit * (100_000 // len(unit))
    assert scan(text, limits=ReadLimits(tokens=6_000, readings=400)) is not None
    assert len(read_facts(text[:20_000])) <= 20_000


def test_limits_say_that_they_cut():
    assert scan("7; " * 50, limits=ReadLimits(readings=10)).cut
    assert scan("word " * 50, limits=ReadLimits(tokens=20)).cut
    assert not scan("7; " * 5, limits=ReadLimits(tokens=20, readings=10)).cut


@pytest.mark.parametrize(
    "text",
    [
        "nine decillion decillion hundredth",
        "9" * 40 + " twentieth",
        "1e30 crore crore days",
        "2^30 lakh crore ₹",
        "twenty " * 3000,
    ],
)
def test_numbers_beyond_reason(text: str):
    """Very large numbers are read or omitted without an error. Every value is shorter than 100 characters."""
    assert all(len(fact.value) < 100 for fact in read_facts(text))


@pytest.mark.parametrize(
    "text",
    [
        "auth/middleware.py:L142 uses local time",
        "it fails at pool.py:142",
        "see db/pool.py#L10-L20",
        "as of v2.3.1",
        "commit 9f2c7e41a",
        "ticket #4312",
        "request 6d1c0c9e-3f7e-4a11-9d2a-0b6f2c5e7a10",
        "C:\\logs\\2024\\app.txt",
        "https://shop.example/items/42",
    ],
)
def test_numbers_of_paths_lines_versions_and_identifiers_are_no_quantities(text: str) -> None:
    assert read_facts(text) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("v2.3.1 costs ₹500", ["500"]),
        ("Rs.5,000/- per day", ["5000"]),
        ("25/7 for 5/8 of them", ["25", "7", "0.625"]),
        ("₹2,00,000.In 3 days", ["200000", "3"]),
        ("1e6 of 12 abc", ["1000000", "12"]),
    ],
)
def test_quantities_beside_them_stay(text: str, values: list[str]) -> None:
    assert [fact.value for fact in read_facts(text)] == values
