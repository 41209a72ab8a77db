"""A value that is found in a short text is also found in the middle of a long page."""

from __future__ import annotations

import pytest

from monitors.facts.disclosures.find import find_disclosures

ALONE = [
    "ABCPK1234F",
    "write to asha.rao@example.com",
    "call +91 98765 43210",
    "card 4111 1111 1111 1111",
    "IBAN DE89 3704 0044 0532 0130 00",
    "Aadhaar 2345 6789 0124",
    "GSTIN 27AAPFU0939F1ZV",
    "pay asha@okaxis by UPI",
    "passport M1234567",
    "voter id ABC1234567",
    "vehicle KA 01 AB 1234",
    "vehicle DL3CAB1234",
    "the server is 203.0.113.7",
    "SSN 536-90-4399",
    "policy number SH-99120034",
    "account number 002233445566",
    "born on 12 March 1981, date of birth 12/03/1981",
    "token ghp_abcdefghijklmnopqrstuvwxyz0123456789",
]
FILLER = "we have looked at the papers of the claim and will answer soon "


@pytest.mark.parametrize("text", ALONE)
@pytest.mark.parametrize(("before", "after"), [(40, 0), (0, 40), (40, 40)], ids=["end", "begin", "middle"])
def test_length_hides_nothing(text, before, after):
    alone = {found.kind for found in find_disclosures(text)}
    page = FILLER * before + text + " " + FILLER * after
    assert alone
    assert {found.kind for found in find_disclosures(page)} == alone
