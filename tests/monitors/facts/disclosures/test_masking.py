"""Personal data in a text is replaced, and the masked text discloses nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.disclosures.candidates import Disclosure, DisclosureKind, Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.masking import WITHHELD, mask


def test_the_replacement_is_made_of_kind_and_text() -> None:
    masked = mask("mail tara@mailbox.example now", lambda kind, text: f"<{kind}:{len(text)}>")
    assert masked.text == "mail <email:20> now"
    assert [(one.kind, one.start, one.end) for one in masked.found] == [(DisclosureKind.EMAIL, 5, 25)]


def test_a_safe_stretch_stays_as_it_is() -> None:
    text = "mail tara@mailbox.example or dev@mailbox.example"
    assert mask(text, safe=[(5, 25)]).text == "mail tara@mailbox.example or [e-mail]"


def test_of_safe_stretches_that_overlap_one_counts() -> None:
    assert mask("see [e-mail] and [phone]", safe=[(4, 9), (4, 12), (6, 14)]).text == "see [e-mail] and [phone]"


@given(st.lists(st.sampled_from(["phone", " ", "98231 77450", "tara@mailbox.example", "[phone]", "x"]), max_size=8))
def test_nothing_is_found_in_a_masked_text(pieces: list[str]) -> None:
    masked = mask("".join(pieces)).text
    assert mask(masked).found == ()


def test_without_labels_nothing_is_left_for_the_reader() -> None:
    assert find_disclosures(mask("call 98231 77450").text.replace("[phone]", "")) == ()


def test_a_text_that_never_settles_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every round of redaction finds another disclosure, the whole text is withheld.

    An attacker could write such a text.
    """

    def one_more(
        text: str, *, account_patterns: Sequence[str], hidden: Sequence[tuple[int, int]]
    ) -> tuple[Disclosure, ...]:
        at = len(hidden)
        return (Disclosure(kind=DisclosureKind.PHONE, start=at, end=at + 1, strength=Strength.WEAK),)

    monkeypatch.setattr("monitors.facts.disclosures.masking.find_disclosures", one_more)
    assert mask("x" * 50).text == WITHHELD
