"""Test that in a language without word lists, only currency names, ``h`` and ``min`` are read as words."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.currencies import COUNTRIES, DOLLARS
from monitors.facts.quantities.lexicon import MONTHS, NUMBER_WORDS
from monitors.facts.quantities.locales import build_locale
from monitors.facts.quantities.other_languages import CURRENCY_KEYS, translate_or_hide_words
from monitors.facts.quantities.scan import scan
from monitors.facts.quantities.units import TIME_UNITS
from monitors.facts.text import NUMERAL, WORD, tokenise
from monitors.graders.golds import REPLY_LIMITS
from monitors.records.base import Language

WORDS = sorted(
    {*NUMBER_WORDS, *MONTHS, *TIME_UNITS, *COUNTRIES, *DOLLARS, "percent", "upto", "tak", "today", "Euro"}
)
PIECES = st.sampled_from(WORDS) | st.sampled_from(
    [
        "5",
        "12",
        "500",
        "1.234,56",
        "2024",
        "€",
        "$",
        "US$",
        "%",
        "-",
        ",",
        ".",
        "(",
        ")",
        "'",
        "e",
        "x",
        "h",
        "min",
        "/",
    ]
)
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", " ", "\n"])), max_size=12).map(
    lambda pieces: "".join(piece + gap for piece, gap in pieces)
)
ALIKE = (
    CURRENCY_KEYS | {"us", "ca", "c", "a", "au", "s", "hk", "nz", "r", "mx", "mex", "ci", "nt"} | {"h", "minutes"}
)


@given(TEXTS)
def test_no_reading_holds_a_word_of_english_or_hindi(text: str) -> None:
    scanned = scan(text, locale=build_locale(Language.OTHER))
    inside = [scanned.reader.token(at) for found in scanned.readings for at in range(found.first, found.last + 1)]
    words = {token.key for token in inside if token.kind == WORD}
    assert words - ALIKE - {"e", "x"} == set()


@given(TEXTS)
def test_every_quantity_stands_on_digits(text: str) -> None:
    """Nothing is read from a text without digits, regardless of its words."""
    scanned = scan("".join(letter for letter in text if not letter.isdigit()), locale=build_locale(Language.OTHER))
    assert scanned.readings == []


@given(TEXTS)
def test_tokens_keep_their_places(text: str) -> None:
    tokens = translate_or_hide_words(tokenise(text), text)
    assert all(first.end <= second.start for first, second in pairwise(tokens))
    digits = "".join(token.text for token in tokens if token.kind == NUMERAL)
    assert set(digits) <= set("0123456789.,")


def test_a_flood_is_cut_whatever_its_language() -> None:
    assert scan("1'000 " * 4_000, limits=REPLY_LIMITS, locale=build_locale(Language.OTHER)).cut
