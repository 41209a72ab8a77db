"""Numbers with a check digit or a fixed grouping: cards, Aadhaar, IBAN, the US social security number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import iban, verhoeff

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_context import THINGS, Context
from monitors.facts.disclosures_reading import Reading

# Each pattern looks ahead from the left end of a group of digits and has bounded repeats: every place is looked
# at a bounded number of times, and a number that begins inside a failed one is still found.
_GROUPED_CARD = re.compile(
    r"(?<!\d)(?=(\d{4}([ .\-/])(?:\d{4}\2\d{4}\2\d{1,4}(?:\2\d{1,3})?|\d{6}\2\d{4,5})(?!\d)))"
)  # 4-4-4-4, 4-4-4-2, 4-4-4-4-3, 4-6-5 (American Express), 4-6-4 (Diners)
_BARE_CARD = re.compile(r"(?<![\d.])(?=(\d{13,19}(?!\d)))")
_SPACED_CARD = re.compile(r"(?<!\d)(?=(\d(?:[ .\-/]{0,2}\d){11,18}(?![ .\-/]?\d)))")
# Issuer ranges of ISO/IEC 7812 in use: UATP 1 (15 digits), JCB 1800/2131 (15) and 35, Mastercard 2221-2720 and
# 51-55, Mir 2200-2204, Amex 34/37 (15), Diners 30/36/38/39 (14+), Visa 4 (13, 16, 19), Maestro 50/56-69,
# RuPay 60/65/81/82/508, Discover 6011/644-65, UnionPay 62.
_ISSUER = re.compile(
    r"(?:1\d{14}|2131\d{11}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720|20[0-4])\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11,16}|35\d{14,17}|4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|5[06-9]\d{10,17}"
    r"|6\d{12,18}|8[12]\d{14})"
)
_AADHAAR = re.compile(r"(?<!\d)(?=([2-9]\d{3}(?:([ .\-/:])\d{4}\2\d{4}|\d{8})(?!\d)))")
_SPACED_AADHAAR = re.compile(r"(?<!\d)(?=(\d(?:[ .\-/:,]{0,2}\d){11}(?![ .\-/]?\d)))")
_IBAN = re.compile(r"(?<![A-Za-z0-9])(?=([A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}))")
_SSN = re.compile(r"(?<![\d-])((?!000|666)\d{3}([ .-])(?!00)\d{2}\2(?!0000)\d{4})(?![\d-])")
_BROKEN_SSN = re.compile(
    r"(?<![\d-])((?!000|666)(?:\d{3}-(?!00)\d{2}(?!0000)\d{4}|\d{3}(?!00)\d{2}-(?!0000)\d{4}))(?![\d-])"
)

# Lengths of the national forms in the IBAN registry of SWIFT (release 99).
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20,
    "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19,
    "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29,
    "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24,
    "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
    "YE": 30,
}  # fmt: skip
_DOUBLED = str.maketrans("0123456789", "0246813579")
"""Each digit doubled, and its two digits added where there are two."""
_AIRLINE = "1"
"""First digit of the airlines' own cards (UATP): rare, and like any number of fifteen digits."""


def digits_of(text: str) -> str:
    """The ASCII digits of a text, in order."""
    return "".join(filter("0123456789".__contains__, text))


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of ISO/IEC 7812; five times as fast as a general library's."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, digits[-1::-2])) + sum(map(int, doubled))) % 10 == 0


def find_cards(reading: Reading) -> Iterator[Candidate]:
    """Payment cards: an issuer's range and the Luhn digit; in any spacing behind the word "card"."""
    for pattern in (_GROUPED_CARD, _BARE_CARD):
        for match in reading.near_digits(pattern):
            digits = match[1].replace(match[2], "") if pattern is _GROUPED_CARD else match[1]
            if not (_ISSUER.fullmatch(digits) and passes_luhn(digits)):
                continue
            glued = reading.around(*match.span(1))[0].isalpha()
            context = reading.words.before(match.start())
            doubtful = glued or context is Context.ORDER or (digits[0] == _AIRLINE and context is not Context.CARD)
            strength = Strength.WEAK if doubtful else Strength.CERTAIN
            yield Candidate(DisclosureKind.CARD, *match.span(1), strength)
    for match in reading.behind(Context.CARD, _SPACED_CARD):
        yield Candidate(DisclosureKind.CARD, *match.span(1), Strength.LIKELY)


def find_aadhaar(reading: Reading) -> Iterator[Candidate]:
    """Aadhaar: twelve digits, the first 2 to 9, Verhoeff's check digit.

    One in ten numbers passes that check by chance, so that a number of an order, an amount or a clause is never
    one, and a bare number that nothing explains is a weak one. Behind the word itself the check digit is not
    asked for: a mistyped identity is still one.
    """
    for match in reading.near_digits(_AADHAAR):
        if found := _aadhaar(reading, match):
            yield found
    for match in reading.behind(Context.AADHAAR, _SPACED_AADHAAR):
        yield Candidate(DisclosureKind.AADHAAR, *match.span(1), Strength.CERTAIN)


def _aadhaar(reading: Reading, match: re.Match[str]) -> Candidate | None:
    context = reading.words.before(match.start())
    if context is Context.AADHAAR:
        return Candidate(DisclosureKind.AADHAAR, *match.span(1), Strength.CERTAIN)
    if context in THINGS:
        return None
    digits = match[1].replace(match[2], "") if match[2] else match[1]
    if not verhoeff.is_valid(digits) or _is_inside(reading, match):
        return None
    return Candidate(DisclosureKind.AADHAAR, *match.span(1), Strength.LIKELY if match[2] else Strength.WEAK)


def _is_inside(reading: Reading, match: re.Match[str]) -> bool:
    """Whether letters run into the number, or it is a part of a longer one with colons (an IPv6 address)."""
    before, after = reading.around(*match.span(1))
    return before.isalpha() or after.isalpha() or (match[2] == ":" and ":" in (before, after))


def find_ibans(reading: Reading) -> Iterator[Candidate]:
    """IBANs of every registered country by its length and the two check digits; behind the word, by length."""
    for match in reading.near_digits(_IBAN):
        length = _IBAN_LENGTHS.get(match[1][:2].upper())
        end = _end_after(match[1], length) if length else None
        if end is None or reading.around(0, match.start() + end)[1].isalnum():
            continue
        number = re.sub("[ -]", "", match[1][:end])
        if iban.is_valid(number, check_country=False):
            yield Candidate(DisclosureKind.IBAN, match.start(), match.start() + end, Strength.CERTAIN)
        elif reading.words.before(match.start()) is Context.IBAN:
            yield Candidate(DisclosureKind.IBAN, match.start(), match.start() + end, Strength.LIKELY)


def _end_after(text: str, count: int) -> int | None:
    """The index behind the ``count``-th letter or digit, or ``None`` where there are fewer."""
    places = [index for index, character in enumerate(text) if character.isalnum()]
    return places[count - 1] + 1 if len(places) >= count else None


def find_ssns(reading: Reading) -> Iterator[Candidate]:
    """US social security numbers in their grouping; with a hyphen lost, weakly (a ZIP+4 looks the same)."""
    for match in reading.near_digits(_SSN):
        named = reading.words.before(match.start())
        if named in THINGS:
            continue
        strength = Strength.CERTAIN if named is Context.SSN else Strength.LIKELY
        yield Candidate(DisclosureKind.US_SSN, *match.span(1), strength)
    for match in reading.near_digits(_BROKEN_SSN):
        named = reading.words.before(match.start())
        if named not in THINGS:
            strength = Strength.LIKELY if named is Context.SSN else Strength.WEAK
            yield Candidate(DisclosureKind.US_SSN, *match.span(1), strength)
