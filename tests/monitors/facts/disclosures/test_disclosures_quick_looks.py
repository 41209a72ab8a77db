"""The quick pre-checks save time and do not change what is found in any text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.facts.disclosures import candidates, find, identifiers
from monitors.facts.disclosures import identifiers as disclosures_numbers
from monitors.facts.disclosures.candidates import Disclosure
from monitors.facts.disclosures.find import find_disclosures
from tests.monitors.facts.disclosures.test_disclosures_in_long_texts import ALONE
from tests.tiers import scale_examples

FILLER = "we have looked at the papers of the claim and will answer her soon, as you asked us to do it "
PIECES = st.one_of(
    st.sampled_from(ALONE),
    st.sampled_from(
        ("4111-1111-1111-1111", "5500 0055 5555 5559", "3782 822463 10005", "4222222222222", "4222 2222 2222 2", "2345 6789 0124", "234567890124",
         "DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "219-09-9998", "21909-9998", "27AAPFU0939F1ZV",
         "ABCPK 1234 F", "dl no. MH-12-2014-0012345", "licence 123-45-6789", "car KA 01 1234", "24 BH 1234 AB",
         "+91 98765 43210", "(415) 555-0132", "98230.11457", "my number is 020 7946 018", "call 022-1234567",
         "Flat 12, Green Apartments, 99 Lake Road, Pune 411001", "policy no. SH/20/004", "a/c 40017", "cif no. 12345",
         "member id MBR-771-20943", "Policy ACME 7712094", "account of the other one is 0040 0177", "card ends 4471",
         "आधार २३४५ ६७८९ ०१२४", "\U0001d7d2\U0001d7cf\U0001d7cf\U0001d7cf", "98\u200b230\u00ad11457",
         "\U000e0031", "nine eight two three zero double one four five seven", "₹5,000", "24 months", "10%")
    ),
    st.from_regex(r"[0-9]{1,7}", fullmatch=True),
    st.from_regex(r"[A-Z]{1,4}[ -]?[0-9]{1,4}", fullmatch=True),
    st.sampled_from(("card", "Aadhaar", "phone", "passport", "policy number", "vehicle", FILLER, "\n", "-", ".", "/")),
)  # fmt: skip
TEXTS = st.lists(PIECES, min_size=1, max_size=7).flatmap(
    lambda pieces: st.sampled_from((" ", "", ", ")).map(lambda between: between.join(pieces))
)
AROUND = st.sampled_from(("", FILLER, 2 * FILLER))
ANYTHING = re.compile("")
AHEAD = r"(?=[A-Z]{2}[ -]?\d)"


@contextmanager
def no_quick_look() -> Iterator[None]:
    """Disable the quick pre-checks: every pattern is applied to every text, and every text is normalised."""
    codes = tuple(
        code._replace(pattern=re.compile(code.pattern.pattern.replace(AHEAD, ""), code.pattern.flags))
        for code in identifiers._CODES
    )
    assert codes != identifiers._CODES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "_DIGIT", ANYTHING)  # each character counts as one
        patch.setattr(disclosures_numbers, "_IBAN_START", ANYTHING)
        patch.setattr(identifiers, "_CODES", codes)
        patch.setattr(candidates, "_UNUSUAL", ANYTHING)
        yield


def found_slowly(text: str) -> tuple[Disclosure, ...]:
    with no_quick_look():
        return find._find_disclosures_cached.__wrapped__(text, (), ())


@given(AROUND, TEXTS, AROUND)
@settings(max_examples=scale_examples(400))
@pytest.mark.whole_only
def test_the_quick_looks_lose_nothing(before: str, text: str, after: str) -> None:
    whole = f"{before}{text} {after}"
    assert find_disclosures(whole) == found_slowly(whole)


@pytest.mark.parametrize("text", ALONE)
def test_disclosures_are_the_same_without_quick_looks(text: str) -> None:
    assert find_disclosures(FILLER + text) == found_slowly(FILLER + text) != ()
