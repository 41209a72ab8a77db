"""Numbers spelled out digit by digit, as people dictate them: "nine eight seven …", "nau aath saat …"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import luhn, verhoeff

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_context import Context
from monitors.facts.disclosures_reading import Reading

_DIGITS = {
    "0": "zero oh shunya sifar शून्य ज़ीरो जीरो",
    "1": "one ek एक वन",
    "2": "two do दो टू",
    "3": "three teen तीन थ्री",
    "4": "four char chaar चार फोर",
    "5": "five paanch panch पांच पाँच फाइव",
    "6": "six chhe chah chhah छह छः छ सिक्स",
    "7": "seven saat सात सेवन",
    "8": "eight aath आठ एट",
    "9": "nine nau नौ नाइन",
}
_VALUE = {word: digit for digit, words in _DIGITS.items() for word in words.split()}
_TIMES = {"double": 2, "triple": 3, "डबल": 2, "ट्रिपल": 3}
_WORD = "|".join(sorted((*_VALUE, *_TIMES), key=len, reverse=True))
_GAPS = str.maketrans(",.-", "   ")
_SPLIT = re.compile(r"[ ,.\-\s]+")
_FEWEST = 7
_AADHAAR_DIGITS = 12
# Seven words is the shortest number worth hiding; a count ("one two three") has fewer.
_RUN = re.compile(rf"(?<!\w)(?:{_WORD})(?:[ ,.\-]{{1,3}}(?:{_WORD})(?!\w)){{5,40}}")


def find_spoken(reading: Reading) -> Iterator[Candidate]:
    """Dictated numbers of seven digits or more; the digits say which kind, else the words before them."""
    if not _is_counting(reading.lowered):
        return
    for match in _RUN.finditer(reading.lowered):
        digits = _digits(match[0])
        if len(digits) >= _FEWEST:
            kind = _kind(digits, reading.words.before(match.start()))
            yield Candidate(kind, match.start(), match.end(), Strength.LIKELY)


def _is_counting(lowered: str) -> bool:
    """Whether the text has digit words enough: a quick look that spares most texts the search."""
    words = lowered.translate(_GAPS).split() if lowered.isascii() else _SPLIT.split(lowered)
    return sum(map(_VALUE.__contains__, words)) >= _FEWEST - 2


def _digits(spoken: str) -> str:
    digits: list[str] = []
    times = 1
    for word in re.split(r"[ ,.\-]+", spoken):
        if word in _TIMES:
            times = _TIMES[word]
        else:
            digits.append(_VALUE.get(word, "") * times)
            times = 1
    return "".join(digits)


def _kind(digits: str, context: Context) -> DisclosureKind:
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
