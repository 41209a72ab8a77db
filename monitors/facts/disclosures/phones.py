"""Find telephone numbers, and numbers of any kind that are dictated digit by digit.

Telephone numbers are found by their form. If a form is not distinctive, the words before the number decide. A
number may be dictated digit by digit: "nine eight seven …", "nau aath saat …".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import luhn, verhoeff

from monitors.facts.disclosures.candidates import (
    THINGS,
    Context,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
)
from monitors.facts.disclosures.identifiers import extract_digits
from monitors.facts.disclosures.labelled import SPOKEN_DIGITS, SPOKEN_TIMES, read_spoken_digits

_EXTENSION = r"(?: ?(?:x|ext\.?|extn\.?) ?\d{1,5})?"
# +91 98765 43210, +41 (0)96 471 07 95, (+91) 98765.43210; E.164 allows 15 digits.
_INTERNATIONAL = re.compile(
    r"(?<![\d+])(?=(\(?\+\d{1,3}\)?(?:[ .\-/]{0,2}\(?\d\)?){6,13}(?!\d)" + _EXTENSION + "))"
)
# 98765 43210, 9876543210, 987 654 3210, with 0, 91 or 0091 before; Indian mobile numbers begin with 6 to 9.
_INDIAN_MOBILE = re.compile(
    r"(?<![\d.])(?=((?:(?:0091|91|0)[ .\-/]?)?"
    r"[6-9](?:\d{4}[ .\-/]?\d{5}|\d{2}[ .\-/]\d{3}[ .\-/]\d{4}|\d{3}[ .\-/]\d{3}[ .\-/]\d{3})(?!\d)))"
)
# (415) 555-0132, 415-555-0132, 1-415-555-0132, 001-253-366-9781, 259.735.7502x459
_NORTH_AMERICAN = re.compile(
    r"(?<!\d)(?<!\d[.\-])(?=((?:\+?\d{1,3}[ .\-]|00\d{1,3}[ .\-])?(?:\([2-9]\d{2}\) ?"
    r"|[2-9]\d{2}[.\-])\d{3}[ .\-]\d{4}"
    r"(?![\d]|[.\-]\d)" + _EXTENSION + "))"
)
# 0049 176 48213377: equal to +49, with the code of an existing country. 004917648213377 may be any number.
_COUNTRY = (
    r"(?:1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|2[1-69]\d|3[578]\d|42\d|5[09]\d|6[79]\d"
    r"|8[0578]\d|9[679]\d)"
)
_DIALLED_INTERNATIONAL = re.compile(
    rf"(?<![\d.,])(?=((?:\(?00 ?{_COUNTRY}\)?[ .\-/]{{1,2}}|00{_COUNTRY}(?=\d))"
    r"(?:[ .\-/]{0,2}\(?\d\)?){7,12}(?!\d)))"
)
# 0176 48213377, 0221/4567890, 0221 - 4567890; 06 12 34 56 78. The form alone is not distinctive.
_NATIONAL = re.compile(
    r"(?<![\d.,/\-])(?=(\(?0[1-9]\d{1,3}\)?(?: ?[/\-] ?| )(?:\d{5,9}|\d{2,4}(?: \d{2,5}){1,3})(?![\d]|[.,/\- ]\d)"
    r"|0[1-9](?:[ .]\d\d){4}(?!\d|[ .,/\-]\d)))"
)
# All digits after a word for a telephone in other languages: 030 / 123 456 78, 612 34 56 78.
_EUROPEAN = re.compile(
    r"(?<!\d)(?<!\d[ .,:\-/])(?=(\(?[036789]\d{0,4}\)?(?:[ .\-/]{0,3}\d){6,14}(?!\d|[ .,:\-/]{1,2}\d)))"
)
_EUROPEAN_LENGTHS = range(9, 14)
_NATIONAL_LENGTHS = range(10, 13)
_WHEN = re.compile(r"\d{1,2}[./\-]\d{1,2}[./\-](?:19|20)\d\d|\d{1,2}\.\d\d ?-")
"""Dates and hours that look like a telephone number: "vom 01.05.2026", "9.00-12.30"."""
# Possible numbers after words for a number: seven to fifteen digits in groups.
_GROUPED = re.compile(
    r"(?<![\d])(?=((?:\(\d{1,5}\) ?)?\d(?:[ .\-/]{0,2}\(?\d\)?){5,14}(?![\d])" + _EXTENSION + "))"
)
# "My US number is 020 7946 018", "here is Tara's number: …": a telephone number, unless a word names a thing.
_MINE = re.compile(
    r"(?:\b(?:[Mm]y|[Yy]our|[Hh]is|[Hh]er|[Tt]heir|\w{2,20}'s)"
    r"(?: [A-Z][A-Za-z]{1,14}| new| old| home| work| other| own)? number"
    r"|\b[Mm]er[aie] (?:naya |purana )?(?:number|no)|मे(?:रा|री|रे) (?:नया |पुराना )?(?:नंबर|नम्बर))"
    r"(?: is| to| at| hai| है)?[ :]{1,3}(\d(?:[ .\-/]{0,2}\d){6,12})(?!\d)"
)
_TOLL_FREE = re.compile(
    r"(?:91)?0?18[06]0\d{4,7}|(?:00)?1?8(?:00|33|44|55|66|77|88)\d{7}|(?:0044)?0?80[08]\d{6,7}"
    r"|(?:0033)?0?80[05]\d{6}|(?:0034|34)?90[0-2]\d{6}"
)
_BRITISH_COMPANY = re.compile(r"(?:\+44 ?|0)(?:3\d\d|84\d|87\d) \d{3} \d{4}")
"""British numbers of organisations: 0345 600 1180.

The numbers must have British spacing, because 0345 is also the code of Halle in Germany.
"""
_YEAR_AND_NUMBER = re.compile(r"(?:19|20)\d\d/\d{2,6}")
"""A year and a number with a slash between them, as in a shelf mark: 2026/114. It is not a telephone number."""
_MOBILE = re.compile(r"0(?:1[567]\d[ /\-]?|[67](?=[ .]\d\d[ .]))")
"""The first digits of a German or French mobile number. No other numbers begin with these digits."""
_DATE = re.compile(r"(?:19|20)\d\d[ .\-/]\d{1,2}[ .\-/]\d{1,2}|\d{1,2}[ .\-/]\d{1,2}[ .\-/](?:19|20)\d\d")
_LENGTHS = range(7, 20)
"""The possible numbers of digits in a telephone number after a word such as "phone".

The shortest local numbers have 7 digits. The longest have 19: 15 by E.164, and an extension of 4.
"""
_OWN_LENGTHS = range(7, 14)
"""The possible numbers of digits in a telephone number after "my … number".

Numbers with more or fewer digits are often not telephone numbers.
"""

_WITH_AREA = 10
"""Minimum number of digits of an Indian or American number with its area code."""
_TELEPHONES = frozenset({Context.PHONE, Context.EUROPEAN_PHONE})
_OPEN = frozenset({Context.NONE, Context.PHONE, Context.EUROPEAN_PHONE})


def find_phones(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find telephone numbers.

    After a word such as "phone", numbers of any country are found. Without such a word, international, Indian and
    American numbers are found. Two kinds of numbers send no alert:

    - national European numbers without such a word (0176 48213377), which are weak evidence;
    - toll-free lines (India 1800 and 1860, America 800 to 888, Britain 0800), which are contacts of companies.
    """
    for match in reading.iterate_matches_near_digits(_INTERNATIONAL, _LENGTHS.start):
        yield _build_candidate(match, Strength.CERTAIN)
    yield from _find_european_numbers(reading)
    for match in reading.iterate_matches_near_digits(_NORTH_AMERICAN, _WITH_AREA):
        if reading.words.find_context_linked_to(match.start()) not in THINGS:
            yield _build_candidate(match, Strength.LIKELY)
    for match in reading.iterate_matches_near_digits(_INDIAN_MOBILE, _WITH_AREA):
        context = reading.words.find_context_before(match.start())
        if reading.words.find_context_linked_to(match.start()) not in THINGS and not reading.has_letter_beside(
            *match.span(1)
        ):
            yield _build_candidate(match, Strength.CERTAIN if context in _TELEPHONES else Strength.LIKELY)
    yield from _find_labelled_numbers(reading)


def _find_european_numbers(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find numbers in European dialling form: 0049 …, 0176 ….

    National numbers without a word such as "telefon", and international numbers without groups, are weak evidence.
    """
    for match in reading.iterate_matches_near_digits(_DIALLED_INTERNATIONAL, _EUROPEAN_LENGTHS.start):
        if not _is_number_of_object(reading, match):
            yield _build_candidate(match, Strength.WEAK if match[1].isdigit() else Strength.LIKELY)
    for match in reading.iterate_matches_near_digits(_NATIONAL, _NATIONAL_LENGTHS.start):
        if len(extract_digits(match[1])) in _NATIONAL_LENGTHS and not _is_number_of_object(reading, match):
            yield _build_candidate(match, Strength.WEAK)
    for match in reading.iterate_matches_after_context(Context.EUROPEAN_PHONE, _EUROPEAN, _EUROPEAN_LENGTHS.start):
        if len(extract_digits(match[1])) in _EUROPEAN_LENGTHS and not _WHEN.search(match[1]):
            yield _build_candidate(match, Strength.LIKELY)


def _is_number_of_object(reading: DisclosureText, match: re.Match[str]) -> bool:
    words = reading.words
    context = (
        words.find_context_linked_to(match.start())
        if _MOBILE.match(match[1])
        else words.find_context_before(match.start())
    )
    return context in THINGS or reading.has_letter_beside(*match.span(1))


def _find_labelled_numbers(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    for match in reading.iterate_matches_after_context(Context.PHONE, _GROUPED, _LENGTHS.start):
        if len(extract_digits(match[1])) in _LENGTHS and not (
            _DATE.fullmatch(match[1]) or _YEAR_AND_NUMBER.fullmatch(match[1])
        ):
            yield _build_candidate(match, Strength.LIKELY)
    if not reading.contains_any(" number", "mer", "मे"):
        return
    for match in reading.iterate_matches_near_digits(_MINE, _OWN_LENGTHS.start):
        if (
            len(extract_digits(match[1])) in _OWN_LENGTHS
            and reading.words.find_context_before(match.start(1)) in _OPEN
        ):
            yield _build_candidate(match, Strength.LIKELY)


def _build_candidate(match: re.Match[str], strength: Strength) -> DisclosureCandidate:
    digits = extract_digits(match[1])
    if _TOLL_FREE.fullmatch(digits) or _BRITISH_COMPANY.fullmatch(match[1]):
        strength = Strength.CONTACT
    return DisclosureCandidate(DisclosureKind.PHONE, *match.span(1), strength)


_WORD = "|".join(sorted((*SPOKEN_DIGITS, *SPOKEN_TIMES), key=len, reverse=True))
_MIN_SPOKEN_DIGITS = 7
_AADHAAR_DIGITS = 12
# Numbers in fewer than seven words are not masked. A person who counts ("one two three") says fewer words.
_RUN = re.compile(rf"(?<!\w)(?:{_WORD})(?:[ ,.\-]{{1,3}}(?:{_WORD})(?!\w)){{5,40}}")


_DIGIT_BY_DIGIT = re.compile(r"(?<!\w)(?:[A-Z][ .-]{1,3}){0,2}(?:\d[ .-]{1,3}){9,33}\d(?!\w)")
_MIN_SPACED_DIGITS = 10
_COUNTING = "0123456789012345678909876543210"


def find_dictated_numbers(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find numbers that are dictated: at least seven digits in words, or at least ten separate digits.

    The words before a number, or its check digit, decide its kind.
    """
    for match in reading.iterate_matches_near_digits(_DIGIT_BY_DIGIT, _MIN_SPACED_DIGITS):
        characters = "".join(filter(str.isalnum, match[0])).upper()
        digits = extract_digits(characters)
        context = reading.words.find_context_before(match.start())
        if len(digits) >= _MIN_SPACED_DIGITS and digits not in _COUNTING and context not in THINGS:
            kind = DisclosureKind.IBAN if characters[0].isalpha() else _classify_dictated_number(digits, context)
            yield DisclosureCandidate(kind, match.start(), match.end(), Strength.LIKELY)
    if sum(map(SPOKEN_DIGITS.__contains__, reading.words_of_text.words)) < _MIN_SPOKEN_DIGITS - 2:
        return
    for match in _RUN.finditer(reading.lowered):
        digits = read_spoken_digits(re.split(r"[ ,.\-]+", match[0]))
        if len(digits) >= _MIN_SPOKEN_DIGITS:
            kind = _classify_dictated_number(digits, reading.words.find_context_before(match.start()))
            yield DisclosureCandidate(kind, match.start(), match.end(), Strength.LIKELY)


def _classify_dictated_number(digits: str, context: Context) -> DisclosureKind:
    match context:
        case Context.AADHAAR:
            return DisclosureKind.AADHAAR
        case Context.CARD:
            return DisclosureKind.CARD
        case Context.ACCOUNT:
            return DisclosureKind.ACCOUNT_NUMBER
        case Context.POLICY:
            return DisclosureKind.POLICY_NUMBER
        case _ if len(digits) == _AADHAAR_DIGITS and verhoeff.is_valid(digits):
            return DisclosureKind.AADHAAR
        case _ if len(digits) > _AADHAAR_DIGITS and luhn.is_valid(digits):
            return DisclosureKind.CARD
        case _:
            return DisclosureKind.PHONE
