"""Test that redaction replaces personal data with a label of its kind, such as ``[phone]``.

The redacted text identifies no person, and redacting it again changes nothing.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stdnum import verhoeff

from monitors.alerts.redact import redact, redact_with_findings
from monitors.facts.disclosures.candidates import DisclosureKind
from monitors.facts.disclosures.masking import LABELS

_ELEVEN = "68304417295"
AADHAAR = _ELEVEN + verhoeff.calc_check_digit(_ELEVEN)
DEVANAGARI_DIGITS = {ord(str(n)): chr(0x966 + n) for n in range(10)}


def test_each_kind_has_a_label_of_its_own() -> None:
    assert set(LABELS) == set(DisclosureKind)
    assert len(set(LABELS.values())) == len(LABELS)


def test_an_alert_about_a_leak_does_not_leak() -> None:
    leak = {
        "[name]": "Tara Devi",
        "[account number]": "70018834120",
        "[phone]": "+91 98231 77450",
        "[address]": "Flat 4, Banyan Court, 8 Peepal Marg, Nagpur 440001",
    }
    words = "Your claim is fine. Customer on file: {}, account number {}, mobile {}, {}."
    assert redact(words.format(*leak.values())) == words.format(*leak)


@pytest.mark.parametrize("between", ["", " ", "-", ".", "/", "\u00a0", "\u202f", "\u2011", "\u200b", "  "])
@pytest.mark.parametrize("script", ["ascii", "devanagari"])
def test_f87_an_identity_is_masked_in_every_spelling(between: str, script: str) -> None:
    number = AADHAAR if script == "ascii" else AADHAAR.translate(DEVANAGARI_DIGITS)
    text = "Aadhaar: " + between.join((number[:4], number[4:8], number[8:])) + ", thanks"
    assert redact(text) == "Aadhaar: [Aadhaar], thanks"


@pytest.mark.parametrize("words", ["order {}", "Order no. {} was delivered", "your order: {}", "tracking id {}"])
def test_f88_an_order_number_without_context_is_not_redacted(words: str) -> None:
    text = words.format(AADHAAR)
    assert redact(text) == text


def test_f82_mentions_and_links_pass_unchanged_to_where_they_are_escaped() -> None:
    text = "<!channel> see <https://x.example|here>"
    assert redact(text) == text


def test_places_are_in_the_text_as_it_was_given() -> None:
    text = "\u200bmail tara@mailbox.example, call 98231\u202f77450"
    found = redact_with_findings(text).found
    assert [text[one.start : one.end] for one in found] == ["tara@mailbox.example", "98231\u202f77450"]


def test_target_numbers_are_masked_when_the_target_says_how_they_look() -> None:
    assert redact("ZQ-77-19 is yours", account_patterns=(r"ZQ-\d\d-\d\d",)) == "[account number] is yours"


@pytest.mark.parametrize(
    "text", ["", "nothing here", "[e-mail] and [Aadhaar] stay", "\ud800", "\u202eabc\u202c", "\x00\x01"]
)
def test_harmless_text_stays_unchanged(text: str) -> None:
    assert redact(text) == text


PIECES = st.sampled_from(
    [
        "account", "a/c no", "Aadhaar", "phone", "my number is", "address:", "born", "card", "order", "policy no", "[e-mail]",
        "[phone]", "[", "]", "**", "`", " ", " ", "-", ".", ":", "\n", "98231", "77450", "6830", "4417", "2951", "123456789",
        "tara@mailbox.example", "tara@", "10.1.2.3", "::1", "DE89370400440532013000", "BQRPK4417L", "MH12QT4471", "lives at",
        "7 Banyan Road, Nagpur 440001", "17/08/1979", "sk-abcdefghij0123456789", "password is", "nine eight two", "three four five",
        "\u200b", "\u2011", "९८२", "Customer: Tara Devi", "\ufffc",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
@example("phone 98231 77450-98231 77450")
@example("a/c 12345678 and 99887766")
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(
    st.from_regex(r"[679][0-9]{9}", fullmatch=True),
    st.lists(st.sampled_from(["", " ", "-", ".", "\u200b", "\u00a0"]), min_size=9, max_size=9),
)
def test_no_tail_of_a_phone_number_survives(number: str, between: list[str]) -> None:
    """If a keyword precedes a phone number, redaction removes all digits of the number, whatever separates them."""
    text = "phone: " + "".join(digit + gap for digit, gap in zip(number, [*between, ""], strict=True))
    assert not re.search(r"\d", redact(text))


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_is_taken(before: str, after: str) -> None:
    redacted = redact(before + " tara@mailbox.example " + after)
    assert "tara@mailbox.example" not in redacted
