"""Tests of the sieve, which decides quickly whether a text must be searched by the rules.

It passes every text in which the rules find something, and drops most of the other texts.
"""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.facts.disclosures import candidates, labelled, secrets, sieve
from monitors.facts.disclosures.candidates import Context, build_normalised_view
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import LABELS, mask
from monitors.facts.disclosures.sieve import has_possible_disclosure, is_possible_disclosure
from monitors.facts.text import MAX_TEXT_LENGTH
from tests.monitors.facts.disclosures.test_disclosures_quick_looks import AROUND, TEXTS
from tests.tiers import scale_examples

ORDINARY = (
    "Cataract is covered after 24 months up to 40,000 rupees per eye, see clause 4.2.",
    "Room rent is paid up to **₹5,000** per day — ask `Nova Gold` for the list.",
    "A co-payment of 10% applies to every claim above the age of sixty years.",
    "मोतियाबिंद के लिए चौबीस महीने की प्रतीक्षा अवधि है।",
    "2026-03-01T10:00:00.123456+05:30",
    "3f2a9c1e-77d0-4b1c-9a55-0c8b1e6f2d31",
    "session 8e12c4d90ab37f65, be3f90d1c2a4e7b8, trace aa12b34c5d6e7f80",
    "unsupported_number: 1,00,000 stands in no retrieved clause",
    "The policy year 2024 ends in 2025.",
)
SAID = (
    Context.AADHAAR,
    Context.CARD,
    Context.PHONE,
    Context.EUROPEAN_PHONE,
    Context.ACCOUNT,
    Context.PASSPORT,
    Context.LICENCE,
    Context.VEHICLE,
)


@given(AROUND, TEXTS, AROUND)
@settings(max_examples=scale_examples(400))
@pytest.mark.whole_only
def test_texts_found_by_the_rules_pass_the_sieve(before: str, text: str, after: str) -> None:
    whole = f"{before}{text} {after}"
    if find_disclosures(whole):
        assert is_possible_disclosure(whole)
        assert has_possible_disclosure([ORDINARY[0], whole, ORDINARY[1]])


@given(TEXTS, st.sampled_from(("**", "`", "\u200b", "—", "\x1c", "***", "\u00a0", "[phone]")), st.integers(0, 60))
@settings(max_examples=scale_examples(400))
@pytest.mark.whole_only
def test_marks_and_hidden_characters_hide_nothing(text: str, put: str, place: int) -> None:
    broken = text[:place] + put + text[place:]
    if mask(broken).text != broken:
        assert is_possible_disclosure(broken)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_are_spared_the_rules(text: str) -> None:
    assert not find_disclosures(text)
    assert not is_possible_disclosure(text)


def test_every_character_that_the_view_changes_is_folded_first() -> None:
    """The sieve recognises every Unicode character that the normalised view of a text changes.

    A text with such a character is normalised before the sieve decides.
    """
    for start in range(0, sys.maxunicode + 1, 256):
        piece = "".join(chr(code) for code in range(start, start + 256) if not 0xD800 <= code < 0xE000)
        if build_normalised_view(piece).text != piece:
            changed = [
                one for one in piece if one not in "*`" and build_normalised_view(f"a{one}a").text != f"a{one}a"
            ]
            assert all(sieve._is_unusual(one) for one in changed)


@pytest.mark.parametrize("context", SAID)
def test_the_words_before_a_number_are_known(context: Context) -> None:
    for word in candidates._WORDS[context].split():
        if re.fullmatch("[a-z/]+", word) or not word.isascii():
            assert sieve._has_context_word(f"the {word} is"), word


def test_digits_in_words_are_known() -> None:
    for word in {*labelled.SPOKEN_DIGITS, *labelled.SPOKEN_TIMES}:
        assert sieve._has_disclosure_form(" ".join([word] * 6)), word


def test_prefixes_of_tokens_are_known() -> None:
    """For each known prefix of a token, the sieve passes every text in which the rules find a secret."""
    for prefix in secrets._PREFIXES:
        texts = [
            f"{head}{prefix}{body}" for head in ("", "sk", "rzp") for body in ("a1b2c3d4e5" * 4, "ABCD1234" * 4)
        ]
        texts += [
            f"{prefix}{'0a' * 16}",
            f"{prefix}/services/T0000/B0000",
            f"{prefix}aaaaaaaaaa.bbbbbbbbbb",
            f"{prefix}b-1234567890",
        ]
        found = [text for text in texts if find_disclosures(text)]
        assert found, prefix
        assert all(map(is_possible_disclosure, found))


@pytest.mark.parametrize("label", LABELS.values())
def test_a_text_with_a_label_is_read(label: str) -> None:
    """The sieve passes a text with a redaction label such as ``[phone]``.

    Such a text is searched by the rules, which count the label as one character.
    """
    assert is_possible_disclosure(f"on {label} only")


def test_a_very_long_text_is_read() -> None:
    assert is_possible_disclosure("x" * (MAX_TEXT_LENGTH + 1))


def test_a_text_with_half_a_surrogate_pair_is_read() -> None:
    assert is_possible_disclosure("a\ud800")


def test_the_targets_own_patterns_count() -> None:
    assert is_possible_disclosure("see LP-77", (r"LP-\d+",))
    assert is_possible_disclosure("see L**P-77**", (r"^see LP-\d+$",))
    assert has_possible_disclosure(["a", "LP-77", "b"], (r"\ALP-\d+\Z",))
    assert not has_possible_disclosure(["a", "LP-x", "b"], (r"\ALP-\d+\Z",))
