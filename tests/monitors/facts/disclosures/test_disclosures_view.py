"""Test the normalised view of a text, which is searched for personal data.

In the view, digits, spaces and hyphens have one form, and invisible characters are removed. Each character of the
view has a known position in the original text.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.disclosures.candidates import HIDDEN, build_normalised_view

TEXTS = st.text(alphabet=st.sampled_from("a1९ \u200b\u202f\u2011*`\ufeff[x"), max_size=60)


def test_plain_text_is_its_own_view() -> None:
    view = build_normalised_view("abc 123")
    assert view.text == "abc 123"
    assert view.find_original_span(4, 7) == (4, 7)


def test_digits_spaces_hyphens_are_folded_and_the_invisible_is_gone() -> None:
    text = "९\u202f\uff11\u20111\u200b2"
    view = build_normalised_view(text)
    assert view.text == "9 1-12"
    assert view.find_original_span(0, 6) == (0, len(text))


def test_bold_marks_go_but_masked_digits_stay() -> None:
    assert build_normalised_view("**12** `3`").text == "12 3"
    assert build_normalised_view("41**** 7").text == "41**** 7"


def test_a_hidden_stretch_is_one_mark() -> None:
    view = build_normalised_view("call 98230 now", hidden=[(5, 10)])
    assert view.text == f"call {HIDDEN} now"
    assert view.find_original_span(7, 10) == (11, 14)


@given(TEXTS)
def test_every_character_of_the_view_has_its_place(text: str) -> None:
    view = build_normalised_view(text)
    at = -1
    for index in range(len(view.text)):
        start, end = view.find_original_span(index, index + 1)
        assert at < start < end <= len(text)
        at = start
