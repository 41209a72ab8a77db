"""Telephone numbers: by their form where it is unmistakable, by the words before them where it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_context import THINGS, Context
from monitors.facts.disclosures_numbers import digits_of
from monitors.facts.disclosures_reading import Reading

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
# What may be a number where the words say that it is one: seven to fifteen digits in groups.
_GROUPED = re.compile(
    r"(?<![\d])(?=((?:\(\d{1,5}\) ?)?\d(?:[ .\-/]{0,2}\(?\d\)?){5,14}(?![\d])" + _EXTENSION + "))"
)
# "My US number is 020 7946 018", "here is Tara's number: …": someone's number, unless a word says of what.
_MINE = re.compile(
    r"(?:\b(?:[Mm]y|[Yy]our|[Hh]is|[Hh]er|[Tt]heir|\w{2,20}'s)"
    r"(?: [A-Z][A-Za-z]{1,14}| new| old| home| work| other| own)? number"
    r"|\b[Mm]er[aie] (?:naya |purana )?(?:number|no)|मे(?:रा|री|रे) (?:नया |पुराना )?(?:नंबर|नम्बर))"
    r"(?: is| to| at| hai| है)?[ :]{1,3}(\d(?:[ .\-/]{0,2}\d){6,12})(?!\d)"
)
_TOLL_FREE = re.compile(r"(?:91)?0?18[06]0\d{4,7}|(?:00)?1?8(?:00|33|44|55|66|77|88)\d{7}|(?:0044)?0?80[08]\d{6,7}")
_DATE = re.compile(r"(?:19|20)\d\d[ .\-/]\d{1,2}[ .\-/]\d{1,2}|\d{1,2}[ .\-/]\d{1,2}[ .\-/](?:19|20)\d\d")
_LENGTHS = range(7, 20)
"""Digits of a number behind a word for one: the shortest local numbers have seven; E.164 15, and an "
"extension four."""
_OWN_LENGTHS = range(7, 14)
"""Digits of "my … number": fewer or more are as likely something else."""

_OPEN = frozenset({Context.NONE, Context.PHONE})


def find_phones(reading: Reading) -> Iterator[Candidate]:
    """Telephone numbers of any country behind a word for one; else the international, Indian and American forms.

    A toll-free line (India 1800 and 1860, America 800 to 888, Britain 0800) is a public contact: weak.
    """
    for match in reading.near_digits(_INTERNATIONAL):
        yield _candidate(match, Strength.CERTAIN)
    for match in reading.near_digits(_NORTH_AMERICAN):
        if reading.words.linked(match.start()) not in THINGS:
            yield _candidate(match, Strength.LIKELY)
    for match in reading.near_digits(_INDIAN_MOBILE):
        context = reading.words.before(match.start())
        if reading.words.linked(match.start()) not in THINGS and not reading.is_glued(*match.span(1)):
            yield _candidate(match, Strength.CERTAIN if context is Context.PHONE else Strength.LIKELY)
    yield from _said_to_be(reading)


def _said_to_be(reading: Reading) -> Iterator[Candidate]:
    for match in reading.behind(Context.PHONE, _GROUPED):
        if len(digits_of(match[1])) in _LENGTHS and not _DATE.fullmatch(match[1]):
            yield _candidate(match, Strength.LIKELY)
    if not reading.has(" number", "mer", "मे"):
        return
    for match in reading.near_digits(_MINE):
        if len(digits_of(match[1])) in _OWN_LENGTHS and reading.words.before(match.start(1)) in _OPEN:
            yield _candidate(match, Strength.LIKELY)


def _candidate(match: re.Match[str], strength: Strength) -> Candidate:
    digits = digits_of(match[1])
    if _TOLL_FREE.fullmatch(digits):
        strength = Strength.WEAK
    return Candidate(DisclosureKind.PHONE, *match.span(1), strength)
