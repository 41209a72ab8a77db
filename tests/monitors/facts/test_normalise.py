"""Look-alike characters are folded, and each position can be traced back to the original text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.text import (
    normalise,
    normalise_and_tokenise,
    replace_spans_with_spaces,
    split_into_word_keys,
    to_word_key,
    tokenise,
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("24\u202fmonths", "24 months"),
        ("24\u2011month", "24-month"),
        ("१५ दिन", "15 दिन"),
        ("\uff11\uff12", "12"),
        ("ﬁrst", "first"),
        ("5\u200b0\u200d0", "500"),
        ("\u202e500\u202c", "500"),
        ("1½", "1½"),
        ("m²", "m²"),
        ("a\ud800b", "ab"),
        ("−5", "-5"),
        ("5–10", "5–10"),
    ],
)
def test_folding(text: str, folded: str):
    """Spaces, hyphens and digits are normalised, invisible characters removed, fractions and powers unchanged."""
    assert normalise(text).text == folded


def test_the_way_back():
    """A span of the folded text is mapped to the span of the same words in the original."""
    text = "ﬁne: 2\u200b4\u202fmonths"
    folded = normalise(text)
    start = folded.text.index("24")
    begin, end = folded.find_original_span(start, start + len("24 months"))
    assert text[begin:end] == "2\u200b4\u202fmonths"


@given(st.text())
def test_spans_stay_inside(text: str):
    """For any text, each character of the folded text is mapped to a non-empty span of the original text."""
    folded = normalise(text)
    for start in range(len(folded.text)):
        begin, end = folded.find_original_span(start, start + 1)
        assert 0 <= begin < end <= len(text)


@given(st.text())
def test_folding_twice_is_folding_once(text: str):
    once = normalise(text).text
    assert normalise(once).text == once


def test_keys():
    """A Hindi word has the same key with and without nukta, and with either nasal sign."""
    assert to_word_key("हज़ार") == to_word_key("हजार")
    assert to_word_key("पाँच") == to_word_key("पांच")
    assert split_into_word_keys("Rs हज़ार") == {"rs", "हजार"}


@pytest.mark.parametrize(
    "text",
    [
        "The sum [Source: Nova, clause 4.2] is 5.\t[p. 3].5",
        "[page 1][page 2]",
        "a'[doc x]'s 5[ref 2],000",
    ],
)
def test_blanked_stretches_have_no_tokens(text: str) -> None:
    """Blanking sections of a text gives the same tokens as replacing these sections with spaces."""
    spans = [match.span() for match in re.finditer(r"\[[^\]]*\]", text)]
    blanked = normalise_and_tokenise(text).copy_with_blanked_spans(spans)
    assert blanked.normalised.text == replace_spans_with_spaces(text, spans)
    assert blanked.tokens == tokenise(blanked.normalised.text)
