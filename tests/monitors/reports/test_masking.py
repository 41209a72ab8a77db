import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.records.exchanges import Channel
from monitors.records.grades import Aspect, FailureKind, Span
from monitors.reports.masking import disclosure_spans, masked, masked_part, masks_of, safe_text
from tests.monitors.reports.parts import failed, passed, redact

DIGITS = re.compile(r"\d+")


def hide_digits(text: str) -> str:
    return DIGITS.sub("•", text)


WORDS = st.lists(st.sampled_from(["a", "12", "b7", " ", "  ", "\n", "x@y.in", "4111 1111 1111", ",", "क"])).map(
    "".join
)


@given(WORDS)
def test_masks_alone_say_what_the_redaction_says(text):
    """However the words are compared, the shown text is the redacted text, character for character."""
    for how in (hide_digits, redact, str.upper, lambda _: "", lambda t: "> " + t):
        assert masked(text, masks_of(text, (), Channel.VISIBLE, how)) == how(text)


@given(WORDS, st.integers(0, 30), st.integers(0, 30))
def test_masks_stand_in_order_and_apart(text, start, length):
    spans = [Span(where=Channel.VISIBLE, start=start, end=start + length, label="x")]
    masks = masks_of(text, spans, Channel.VISIBLE, hide_digits)
    edges = [edge for mask in masks for edge in (mask.start, mask.end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)


@pytest.mark.parametrize("padding", [0, 10_000], ids=["short", "too long to compare"])
def test_a_graders_find_is_hidden_even_when_the_redaction_misses_it(padding):
    text = "word " * padding + "account SH-1 of x@y.in ends"
    start = text.index("SH-1")
    spans = [Span(where=Channel.VISIBLE, start=start, end=start + 4, label="account number")]
    shown = safe_text(text, spans, Channel.VISIBLE, redact)
    assert "SH-1" not in shown
    assert "x@y.in" not in shown


@given(WORDS, st.sampled_from([" ", ",", "", "/", "1"]), WORDS)
def test_a_find_never_comes_back_by_way_of_its_neighbours(before, glue, after):
    """A redaction that rewrites the word around a find must not carry the find along."""
    text = f"{before}{glue}SECRET{glue}{after}"
    start = len(before + glue)
    spans = [Span(where=Channel.VISIBLE, start=start, end=start + 6, label="name")]
    for how in (hide_digits, redact, str.swapcase, lambda t: t.replace("SECRET", "SECRET!")):
        assert "SECRET" not in safe_text(text, spans, Channel.VISIBLE, how).upper()


def test_a_find_that_reaches_over_a_redaction_keeps_its_label():
    text = "mail to x@y.in now"
    spans = [Span(where=Channel.VISIBLE, start=5, end=14, label="e-mail")]
    assert safe_text(text, spans, Channel.VISIBLE, redact) == "mail [e-mail] now"


def test_a_span_of_another_text_or_beyond_the_end_hides_nothing_here():
    spans = [
        Span(where=Channel.WIRE, start=0, end=3, label="x"),
        Span(where=Channel.VISIBLE, start=90, end=99, label="x"),
    ]
    assert safe_text("abc def", spans, Channel.VISIBLE, str) == "abc def"


def test_a_part_of_a_text_never_cuts_a_mask():
    text = "call 4111 1111 1111 today"
    masks = masks_of(text, (), "", redact)
    assert masked_part(text, masks, 0, 8) == "call [redacted]"
    assert masked_part(text, masks, 20, 25) == "today"


def test_only_failed_disclosures_name_what_to_hide():
    leak = Span(where=Channel.VISIBLE, start=0, end=2, label="pan")
    other = Span(where=Channel.VISIBLE, start=3, end=4, label="money")
    grades = (
        failed("disclosure", Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE, "r", leak),
        failed("quantities", Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT, "r", other),
        passed("citations", Aspect.CITATION, "r", other),
    )
    assert disclosure_spans(grades) == (leak,)
