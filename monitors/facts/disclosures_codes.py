"""Identities with letters in them: Indian tax, passport, voter, vehicle and licence numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_context import REACH, Context
from monitors.facts.disclosures_reading import Reading

_STATES = (
    "AN|AP|AR|AS|BH|BR|CG|CH|DD|DL|DN|GA|GJ|HP|HR|JH|JK|KA|KL|LA|LD|MH|ML|MN|MP|MZ|NL|OD|OR|PB|PY|RJ|SK|TN|TR|TS"
    "|TG|UK|UA|UP|WB"
)

_LETTER = re.compile("[A-Za-z]")
_SAYING = ("licen", "dl ", "passport", "लाइसेंस", "पासपोर्ट")
"""Words without which a form that says nothing itself is not looked for."""
_NEAR = 20
"""Reach of a word for a form that says nothing itself: "licence number is" and no more."""


class _Code(NamedTuple):
    """One form: how sure it is when nothing is said about it (``None``: not one), and behind its own word."""

    kind: DisclosureKind
    pattern: re.Pattern[str]
    context: Context
    bare: Callable[[str], Strength | None]
    alone: bool = False
    """Whether it counts where it is the whole text."""


def _always(strength: Strength) -> Callable[[str], Strength | None]:
    return lambda _code: strength


def _never(_code: str) -> Strength | None:
    return None


def _pan_alone(code: str) -> Strength | None:
    """The fourth letter of a PAN says what its holder is (Income Tax Department: A B C F G H J L P T, and K, E)."""
    return Strength.LIKELY if code[3].upper() in "ABCFGHJLPTKE" else None


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", re.IGNORECASE)


_CODES = (
    _Code(
        DisclosureKind.GSTIN,
        _form(r"(?:0[1-9]|[12]\d|3[0-7]|97|99)[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]"),
        Context.NONE,
        _always(Strength.CERTAIN),
    ),
    _Code(
        DisclosureKind.PAN,
        _form(r"[A-Z]{5}\d{4}[A-Z]|(?-i:[A-Z]{5}[ -]\d{4}[ -][A-Z])"),
        Context.PAN,
        _pan_alone,
        alone=True,
    ),
    _Code(
        DisclosureKind.PASSPORT, _form(r"[A-PR-WY][1-9]\d ?\d{4}[1-9]"), Context.PASSPORT, _always(Strength.WEAK)
    ),
    _Code(DisclosureKind.PASSPORT, _form(r"[A-Z]{0,2}\d{7,9}"), Context.PASSPORT, _never),
    _Code(DisclosureKind.VOTER_ID, _form(r"[A-Z]{3}[ /-]?\d{7}"), Context.VOTER, _always(Strength.WEAK)),
    _Code(
        DisclosureKind.DRIVING_LICENCE,
        _form(rf"(?:{_STATES})[ -]?\d{{2}}[ -]?(?:19|20)\d{{2}}[ -]?\d{{7}}"),
        Context.LICENCE,
        _always(Strength.LIKELY),
    ),
    _Code(
        DisclosureKind.DRIVING_LICENCE, _form(r"\d{3,4}-\d{2,3}-\d{4}|[A-Z]{0,2}\d{5,14}"), Context.LICENCE, _never
    ),
    _Code(
        DisclosureKind.VEHICLE,
        _form(
            rf"(?:{_STATES})[ -]?\d{{1,2}}[ -]?[A-Z]{{1,3}}[ -]?\d{{4}}|\d{{2}}[ -]?BH[ -]?\d{{4}}[ -]?[A-Z]{{1,2}}"
        ),
        Context.VEHICLE,
        _always(Strength.LIKELY),
    ),
    _Code(DisclosureKind.VEHICLE, _form(rf"(?:{_STATES})[ -]?\d{{4}}"), Context.VEHICLE, _never, alone=True),
)


def find_codes(reading: Reading) -> Iterator[Candidate]:
    """PAN, GSTIN, passport, voter id, driving licence, vehicle: by their form, surer behind their own words.

    Where a form alone says little (two letters and four digits) it counts behind its word, or where it is the
    whole text. The number of an order, a part or a clause is none of them.
    """
    alone = reading.text.strip(" \t\r\n.,;:\"'")
    if not _LETTER.search(reading.text):
        return
    said = reading.has(*_SAYING)
    for code in _CODES:
        if code.bare is _never and not code.alone and not said:
            continue
        for match in reading.near_digits(code.pattern):
            if strength := _strength(code, match, reading, alone):
                yield Candidate(code.kind, match.start(), match.end(), strength)


def _strength(code: _Code, match: re.Match[str], reading: Reading, alone: str) -> Strength | None:
    bare = code.bare(match[0])
    context = reading.words.before(match.start(), REACH if bare else _NEAR)
    if context is code.context is not Context.NONE:
        return max(bare or Strength.LIKELY, Strength.LIKELY)
    if context in (Context.ORDER, Context.VERSION) and bare is not Strength.CERTAIN:
        return None
    if bare is None and code.alone and match[0] == alone:
        return Strength.WEAK
    return bare
