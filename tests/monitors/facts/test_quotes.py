"""A quote is found in a text, with its position, wherever a reader would find it, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.similarity import find_quote

DOCUMENT = (
    "4.2  Pre\u2011existing diseases are\n   covered after a waiting\u202fperiod of 24 months.\r\n"
    "4.3 Hospitali-\nsation under \u201cday care\u201d is paid from 10\u201320 beds.\n"
    "प्रतीक्षा अवधि २४ महीने की है।\n"
)


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("Pre-existing diseases are covered", "Pre\u2011existing diseases are\n   covered"),
        ("preexisting diseases are", None),  # letter case matters
        ("Preexisting diseases are", "Pre\u2011existing diseases are"),
        ("waiting period of 24 months.", "waiting\u202fperiod of 24 months."),
        ('Hospitalisation under "day care" is', "Hospitali-\nsation under \u201cday care\u201d is"),
        ("paid from 10-20 beds", "paid from 10\u201320 beds"),
        ("paid from 1020 beds", None),
        ("period of 24 month", None),  # half a word
        ("iod of 24 months", None),
        ("period of 2", None),  # half a number
        ("24 months", None),  # too short to show anything
        ("प्रतीक्षा अवधि 24 महीने", "प्रतीक्षा अवधि २४ महीने"),
        ("covered after a waiting period of 36 months", None),
        ("", None),
    ],
)
def test_a_quote_is_found_with_its_place(quote, stands):
    found = find_quote(quote, DOCUMENT)
    assert (DOCUMENT[slice(*found)] if found else None) == stands


@given(st.text(alphabet="abc ठ-\n\u2011\u00a0\u00ad.1", min_size=1, max_size=60), st.data())
def test_every_passage_of_whole_words_is_found_where_it_says_the_same(text, data):
    """If three adjacent words are found as a quote, the text at the found position is a quote of them too.

    The quote joins the words with single spaces; the text may join them in another way.
    """
    words = text.split()
    if len(words) < 3:
        return
    at = data.draw(st.integers(0, len(words) - 3))
    wanted = " ".join(words[at : at + 3])
    found = find_quote(wanted, text)
    if found is not None:
        assert find_quote(text[slice(*found)], text) is not None


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_two_texts_give_a_span_inside_the_document_or_none(document, quote):
    found = find_quote(quote, document)
    assert found is None or 0 <= found[0] < found[1] <= len(document)


def test_a_long_document_is_searched_in_linear_time():
    """A search in 900,000 characters takes linear time, even if the quote almost matches everywhere."""
    document = "covered after a waiting period " * 30_000
    assert find_quote("covered after a waiting period of never", document) is None
