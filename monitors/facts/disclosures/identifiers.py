"""Find identity numbers by their check digit, their form, or the words before them.

Cards, Aadhaar, IBAN and the US social security number have a check digit or a fixed grouping. Indian tax, passport,
voter, vehicle and licence numbers contain letters. The form of account, policy and customer numbers is not
distinctive; the words before them decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from stdnum import iban, verhoeff

from monitors.facts.disclosures.candidates import (
    REACH,
    THINGS,
    Context,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
)

# Each pattern is a lookahead that starts at the left end of a group of digits, with bounded repeats. Every place is
# tried a bounded number of times, and a number that begins inside a failed match is still found.
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
_IBAN_START = re.compile(r"\d(?<=[A-Za-z]{2}\d)\d")
"""A quick search for the start of an IBAN. It searches for digits, because most texts have few digits."""
_SSN = re.compile(r"(?<![\d-])((?!000|666)\d{3}([ .-])(?!00)\d{2}\2(?!0000)\d{4})(?![\d-])")
_BROKEN_SSN = re.compile(
    r"(?<![\d-])((?!000|666)(?:\d{3}-(?!00)\d{2}(?!0000)\d{4}|\d{3}(?!00)\d{2}-(?!0000)\d{4}))(?![\d-])"
)
# Minimum number of digits in a number of each form.
_CARD_DIGITS, _SPACED_DIGITS, _AADHAAR_DIGITS, _IBAN_DIGITS, _SSN_DIGITS = 13, 12, 12, 2, 9

# Lengths of the national forms in the IBAN registry of SWIFT (release 99).
IBAN_LENGTHS = {
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
"""Maps each digit to its double for the Luhn check.

The digits of a two-digit result are added: 7 becomes 1+4 = 5.
"""
_AIRLINE = "1"
"""The first digit of the numbers of airline cards (UATP).

Such cards are rare, and their numbers look like any number of fifteen digits.
"""


def extract_digits(text: str) -> str:
    """Return the ASCII digits of a text, in order."""
    return "".join(filter("0123456789".__contains__, text))


def passes_luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of ISO/IEC 7812 (Luhn).

    This function is five times as fast as a general library.
    """
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, digits[-1::-2])) + sum(map(int, doubled))) % 10 == 0


def find_cards(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find payment cards by the issuer's range and the Luhn digit.

    After the word "card", a number with any spacing is found, and these checks are not required.
    """
    for pattern in (_GROUPED_CARD, _BARE_CARD):
        for match in reading.iterate_matches_near_digits(pattern, _CARD_DIGITS):
            digits = match[1].replace(match[2], "") if pattern is _GROUPED_CARD else match[1]
            if not (_ISSUER.fullmatch(digits) and passes_luhn(digits)):
                continue
            glued = reading.find_adjacent_characters(*match.span(1))[0].isalpha()
            context = reading.words.find_context_before(match.start())
            doubtful = glued or context is Context.ORDER or (digits[0] == _AIRLINE and context is not Context.CARD)
            strength = Strength.WEAK if doubtful else Strength.CERTAIN
            yield DisclosureCandidate(DisclosureKind.CARD, *match.span(1), strength)
    for match in reading.iterate_matches_after_context(Context.CARD, _SPACED_CARD, _SPACED_DIGITS):
        yield DisclosureCandidate(DisclosureKind.CARD, *match.span(1), Strength.LIKELY)


def find_aadhaar(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find Aadhaar numbers: twelve digits, of which the first is 2 to 9 and the last is Verhoeff's check digit.

    One in ten numbers passes that check by chance. Therefore, the number of an order, an amount or a clause is
    never an Aadhaar number, and a number without spaces and context is only weak evidence. After the word "Aadhaar"
    the check digit is not required, because a mistyped identity is still personal data.
    """
    for match in reading.iterate_matches_near_digits(_AADHAAR, _AADHAAR_DIGITS):
        if candidate := _build_aadhaar_candidate(reading, match):
            yield candidate
    for match in reading.iterate_matches_after_context(Context.AADHAAR, _SPACED_AADHAAR, _AADHAAR_DIGITS):
        yield DisclosureCandidate(DisclosureKind.AADHAAR, *match.span(1), Strength.CERTAIN)


def _build_aadhaar_candidate(reading: DisclosureText, match: re.Match[str]) -> DisclosureCandidate | None:
    context = reading.words.find_context_before(match.start())
    if context is Context.AADHAAR:
        return DisclosureCandidate(DisclosureKind.AADHAAR, *match.span(1), Strength.CERTAIN)
    if context in THINGS:
        return None
    digits = match[1].replace(match[2], "") if match[2] else match[1]
    if not verhoeff.is_valid(digits) or _is_part_of_longer_number(reading, match):
        return None
    return DisclosureCandidate(
        DisclosureKind.AADHAAR, *match.span(1), Strength.LIKELY if match[2] else Strength.WEAK
    )


def _is_part_of_longer_number(reading: DisclosureText, match: re.Match[str]) -> bool:
    """Return whether the match is only a part of a longer number.

    In this case, a letter is next to the match, or a colon as in an IPv6 address.
    """
    before, after = reading.find_adjacent_characters(*match.span(1))
    return before.isalpha() or after.isalpha() or (match[2] == ":" and ":" in (before, after))


def find_ibans(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find IBANs by the check digits and the length of the country's IBANs.

    After the word "IBAN", the length alone is sufficient.
    """
    for match in (
        reading.iterate_matches_near_digits(_IBAN, _IBAN_DIGITS) if _IBAN_START.search(reading.text) else ()
    ):
        length = IBAN_LENGTHS.get(match[1][:2].upper())
        end = _find_place_after_alphanumerics(match[1], length) if length else None
        if end is None or reading.find_adjacent_characters(0, match.start() + end)[1].isalnum():
            continue
        number = re.sub("[ -]", "", match[1][:end])
        if iban.is_valid(number, check_country=False):
            yield DisclosureCandidate(DisclosureKind.IBAN, match.start(), match.start() + end, Strength.CERTAIN)
        elif reading.words.find_context_before(match.start()) is Context.IBAN:
            yield DisclosureCandidate(DisclosureKind.IBAN, match.start(), match.start() + end, Strength.LIKELY)


def _find_place_after_alphanumerics(text: str, count: int) -> int | None:
    """Return the offset after the first ``count`` letters and digits of ``text``.

    Return ``None`` if the text has fewer letters and digits.
    """
    places = [index for index, character in enumerate(text) if character.isalnum()]
    return places[count - 1] + 1 if len(places) >= count else None


def find_ssns(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find US social security numbers. A number with only one hyphen is weak evidence: a ZIP+4 looks the same."""
    for match in reading.iterate_matches_near_digits(_SSN, _SSN_DIGITS):
        named = reading.words.find_context_before(match.start())
        if named in THINGS:
            continue
        strength = Strength.CERTAIN if named is Context.SSN else Strength.LIKELY
        yield DisclosureCandidate(DisclosureKind.US_SSN, *match.span(1), strength)
    for match in reading.iterate_matches_near_digits(_BROKEN_SSN, _SSN_DIGITS):
        named = reading.words.find_context_before(match.start())
        if named not in THINGS:
            strength = Strength.LIKELY if named is Context.SSN else Strength.WEAK
            yield DisclosureCandidate(DisclosureKind.US_SSN, *match.span(1), strength)


_STATES = (
    "AN|AP|AR|AS|BH|BR|CG|CH|DD|DL|DN|GA|GJ|HP|HR|JH|JK|KA|KL|LA|LD|MH|ML|MN|MP|MZ|NL|OD|OR|PB|PY|RJ|SK|TN|TR|TS"
    "|TG|UK|UA|UP|WB"
)
_STATE = rf"(?=[A-Z]{{2}}[ -]?\d)(?:{_STATES})"
"""A pattern for the two letters of an Indian state before a digit.

The lookahead makes the search seven times faster.
"""

_LETTER = re.compile("[A-Za-z]")
_SAYING = ("licen", "dl ", "passport", "लाइसेंस", "पासपोर्ट")
"""Parts of words for licences and passports.

Codes whose form is not distinctive are searched for only in a text with one of these words. A vehicle number is
also found if it is the whole text.
"""
_BARE_FORM_REACH = 20
"""Maximum number of characters between a context word and a code whose form is not distinctive.

In "licence number is AB12345", these characters are " number is ".
"""


class _Code(NamedTuple):
    """The form of an identity code, such as a PAN.

    ``bare`` returns the strength of a match without a context word. If it returns ``None``, the match is rejected.
    """

    kind: DisclosureKind
    pattern: re.Pattern[str]
    digits: int
    """Minimum number of digits in a code of this form."""
    context: Context
    bare: Callable[[str], Strength | None]
    alone: bool = False
    """Whether a code without a context word counts as a disclosure if it is the whole text."""


def _build_constant_rater(strength: Strength) -> Callable[[str], Strength | None]:
    return lambda _code: strength


def _rate_as_no_disclosure(_code: str) -> Strength | None:
    return None


def _rate_bare_pan(code: str) -> Strength | None:
    """Rate a PAN by its fourth letter, the type of the holder: one of ABCFGHJLPTKE (Income Tax Department)."""
    return Strength.LIKELY if code[3].upper() in "ABCFGHJLPTKE" else None


def _compile_whole_word_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", re.IGNORECASE)


_CODES = (
    _Code(
        DisclosureKind.GSTIN,
        _compile_whole_word_pattern(r"(?:0[1-9]|[12]\d|3[0-7]|97|99)[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]"),
        6,
        Context.NONE,
        _build_constant_rater(Strength.CERTAIN),
    ),
    _Code(
        DisclosureKind.PAN,
        _compile_whole_word_pattern(r"[A-Z]{5}\d{4}[A-Z]|(?-i:[A-Z]{5}[ -]\d{4}[ -][A-Z])"),
        4,
        Context.PAN,
        _rate_bare_pan,
        alone=True,
    ),
    _Code(
        DisclosureKind.PASSPORT,
        _compile_whole_word_pattern(r"[A-PR-WY][1-9]\d ?\d{4}[1-9]"),
        7,
        Context.PASSPORT,
        _build_constant_rater(Strength.WEAK),
    ),
    _Code(
        DisclosureKind.PASSPORT,
        _compile_whole_word_pattern(r"[A-Z]{0,2}\d{7,9}"),
        7,
        Context.PASSPORT,
        _rate_as_no_disclosure,
    ),
    _Code(
        DisclosureKind.VOTER_ID,
        _compile_whole_word_pattern(r"[A-Z]{3}[ /-]?\d{7}"),
        7,
        Context.VOTER,
        _build_constant_rater(Strength.WEAK),
    ),
    _Code(
        DisclosureKind.DRIVING_LICENCE,
        _compile_whole_word_pattern(rf"{_STATE}[ -]?\d{{2}}[ -]?(?:19|20)\d{{2}}[ -]?\d{{7}}"),
        13,
        Context.LICENCE,
        _build_constant_rater(Strength.LIKELY),
    ),
    _Code(
        DisclosureKind.DRIVING_LICENCE,
        _compile_whole_word_pattern(r"\d{3,4}-\d{2,3}-\d{4}|[A-Z]{0,2}\d{5,14}"),
        5,
        Context.LICENCE,
        _rate_as_no_disclosure,
    ),
    _Code(
        DisclosureKind.VEHICLE,
        _compile_whole_word_pattern(
            rf"{_STATE}[ -]?\d{{1,2}}[ -]?[A-Z]{{1,3}}[ -]?\d{{4}}|\d{{2}}[ -]?BH[ -]?\d{{4}}[ -]?[A-Z]{{1,2}}"
        ),
        5,
        Context.VEHICLE,
        _build_constant_rater(Strength.LIKELY),
    ),
    _Code(
        DisclosureKind.VEHICLE,
        _compile_whole_word_pattern(rf"{_STATE}[ -]?\d{{4}}"),
        4,
        Context.VEHICLE,
        _rate_as_no_disclosure,
        alone=True,
    ),
)


def find_official_id_numbers(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find PAN, GSTIN, passport, voter id, driving licence and vehicle numbers by form and context.

    A code whose form is not distinctive (two letters and four digits) counts only after a word that names such a
    code, or if the code is the whole text. Only the most distinctive forms count after a word for an order or a
    clause.
    """
    alone = reading.text.strip(" \t\r\n.,;:\"'")
    if not _LETTER.search(reading.text):
        return
    has_saying_word = reading.contains_any(*_SAYING)
    for code in _CODES:
        if (
            code.bare is _rate_as_no_disclosure
            and not has_saying_word
            and not (code.alone and code.pattern.fullmatch(alone))
        ):
            continue
        for match in reading.iterate_matches_near_digits(code.pattern, code.digits):
            if strength := _rate_official_id(code, match, reading, alone):
                yield DisclosureCandidate(code.kind, match.start(), match.end(), strength)


def _rate_official_id(code: _Code, match: re.Match[str], reading: DisclosureText, alone: str) -> Strength | None:
    bare = code.bare(match[0])
    context = reading.words.find_context_before(match.start(), REACH if bare else _BARE_FORM_REACH)
    if context is code.context is not Context.NONE:
        return max(bare or Strength.LIKELY, Strength.LIKELY)
    if context in (Context.ORDER, Context.VERSION) and bare is not Strength.CERTAIN:
        return None
    if bare is None and code.alone and match[0] == alone:
        return Strength.WEAK
    return bare


_MIN_DIGITS = 5
"""Minimum number of digits of an account, policy or customer number.

Shorter numbers are counts, years or the last digits of a masked number.
"""

_MIN_DIGITS_ALONE = 8
"""Minimum number of digits of an account number that has no "number", verb or colon before it.

In "account for 10000 claims", the 10000 is not an account number.
"""

# Between the label and the number: "no.", "number", a verb, a colon.
_NUMBER_WORD = r"(?:no\.?|num(?:ber)?|nos\.?|id|code|#|नंबर|नम्बर|संख्या)"
_VERB = r"(?:[ \t]{1,3}(?:is|was|hai|h|ka|of)\b|[ \t]{0,3}(?:है|:|=|-|#))?[\s:\"'(]{0,4}"
# Letters may lead ("SBIN 0001234567"). Groups with digits may have separators between them.
_ID = (
    r"((?:(?-i:[A-Z]{1,8})[ /-]?)?[A-Za-z0-9]{0,6}\d(?:[A-Za-z0-9]"
    r"|[/.\- ](?=[A-Za-z0-9]{0,6}\d)){3,28})(?![A-Za-z0-9])"
)
_ACCOUNT = re.compile(
    r"(?:\b(?:a/c|acct?|account|accounts|khaa?ta)\b\.?|खाता|खाते|\b(?:uhid|cif|crn)\b"
    r"|\b(?:customer|member|client|subscriber|patient|claim|folio|loan)(?= ?(?:id|no|num|number|#|code)\b))"
    rf"(?P<said>[ \t]{{0,3}}{_NUMBER_WORD}?{_VERB}){_ID}",
    re.IGNORECASE,
)
_POLICY = re.compile(
    rf"(?:\bpolicy|पॉलिसी|पालिसी)(?: certificate)?[ \t]{{0,3}}(?P<said>{_NUMBER_WORD}{_VERB}){_ID}", re.IGNORECASE
)
# "Policy LIC 123456789": an insurer's short name in capitals, then seven digits or more.
_CODED_POLICY = re.compile(
    r"\b[Pp]olicy(?P<said>[ \t:#-]{1,3})((?:[A-Z]{2,8}[ /-])?[A-Z]{0,4}\d{7,16}|[A-Z]{1,6}[/-]?\d[\dA-Z/\-]{5,24})"
    r"(?![A-Za-z0-9])"
)
_POLICY_WORDS = ("policy", "पॉलिसी", "पालिसी")
_ACCOUNT_WORDS = (
    *("a/c", "acc", "khata", "khaata", "खाता", "खाते", "uhid", "cif", "crn"),
    *("customer", "member", "client", "subscriber", "patient", "claim", "folio", "loan"),
)
_FORMS = (
    (DisclosureKind.POLICY_NUMBER, _POLICY, _POLICY_WORDS),
    (DisclosureKind.POLICY_NUMBER, _CODED_POLICY, _POLICY_WORDS),
    (DisclosureKind.ACCOUNT_NUMBER, _ACCOUNT, _ACCOUNT_WORDS),
)
"""For each form of number, its kind, its pattern and its label words.

The pattern matches the label and the number, and is searched only if the text contains one of the label words.
"""
# "account number of the other customer is 0012 3456 7890": with words in between, the number has at least 8 digits.
_FAR_ACCOUNT = re.compile(r"(?<![\w.])(?=(\d(?:[ -]?\d){7,19}(?![\w])))")
_DIGIT = re.compile(r"\d")


def find_account_and_policy_numbers(
    reading: DisclosureText, account_patterns: Sequence[re.Pattern[str]]
) -> Iterator[DisclosureCandidate]:
    """Find numbers of accounts, policies, customers, members and claims by the label before the number.

    A number has at least five digits. ``account_patterns`` are the target's own patterns: every match is an account
    number, regardless of the words before it.
    """
    for kind, pattern, words in _FORMS:
        for match in (
            reading.iterate_matches_near_digits(pattern, _MIN_DIGITS) if reading.contains_any(*words) else ()
        ):
            min_digits = (
                _MIN_DIGITS if match["said"].strip() or kind is DisclosureKind.POLICY_NUMBER else _MIN_DIGITS_ALONE
            )
            if len(_DIGIT.findall(match[2])) >= min_digits:
                yield DisclosureCandidate(kind, *match.span(2), Strength.LIKELY)
    for match in reading.iterate_matches_after_context(Context.ACCOUNT, _FAR_ACCOUNT, _MIN_DIGITS_ALONE):
        yield DisclosureCandidate(DisclosureKind.ACCOUNT_NUMBER, *match.span(1), Strength.LIKELY)
    for pattern in account_patterns:
        for match in pattern.finditer(reading.text):
            if match.end() > match.start():
                yield DisclosureCandidate(DisclosureKind.ACCOUNT_NUMBER, *match.span(), Strength.CERTAIN)
