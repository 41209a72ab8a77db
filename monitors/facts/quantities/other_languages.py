"""Texts in a language that is not read: digits, signs and codes are, words are not.

Spanish "once" is eleven and German "an" no article: the words of English and Hindi would make figures up. What
stays is what every language writes: numerals with their own separators, "%", currencies by sign, ISO code or name,
hours and minutes as ``h`` and ``min``, powers of ten. A word behind a number may be its scale or unit
("5 Millionen", "24 Monate"), so the number alone is no quantity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.facts.language import OTHER
from monitors.facts.quantities.currencies import DOLLARS, NAMES, SIGNS
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.numerals import Lookup
from monitors.facts.quantities.translations import terms_of, translated
from monitors.facts.quantities.units import MILLION_CODES
from monitors.facts.text import END, NUMERAL, SIGN, WORD, Token, keys_of, word_key

_OPAQUE: Final = "\0"
"""The mark behind a word that must be in no table; no text holds it as part of a word."""

_COMMON_TERMS = frozenset({"le", "lire", "peso", "buck", "bucks", "quid", "dram", "rm"})
"""Names of currencies that are ordinary words in other languages ("le 5", "peso 80 kg")."""

CURRENCY_KEYS: Final = frozenset(NAMES) - _COMMON_TERMS | {"cents"}
"""Names and codes of currencies that are read in any language."""

_SMALL_WORDS = frozenset(word_key(word) for words in OTHER.values() for word in words.split())
"""Function words of the languages that are recognized: none is a scale or a unit."""

_TIMES: Final = {"h": "h", "min": "minutes"}
_RANGES = frozenset("-–—/")
_MOST_STEPS = 6

_AMBIGUOUS_DATE = re.compile(r"(?<![\d./-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?![\d])")
_MONTHS_A_YEAR = 12
_FIRST_GROUP, _NEXT_GROUP = re.compile(r"[1-9]\d{0,2}"), re.compile(r"\d{3}(?:[.,]\d{1,2})?")


def as_international(tokens: Sequence[Token], text: str, language: str = "") -> list[Token]:
    """The tokens with words in no table, but for what all languages write; ``12 500`` is one numeral. Linear.

    Words of ``language`` that have a row in `languages.toml` are read as that row says.
    """
    tokens, words = _grouped(tokens, text), terms_of(language)
    if not words:
        tokens = _without_dates(tokens, text)
    return [
        token
        if token.kind != WORD
        else translated(token, words) or _word(token, tokens[at - 1] if at else END, _following(tokens, at))
        for at, token in enumerate(tokens)
    ]


def _following(tokens: Sequence[Token], at: int) -> Token:
    return tokens[at + 1] if at + 1 < len(tokens) else END


def _word(token: Token, before: Token, following: Token) -> Token:
    """A word as it is read in any language, else one that no table knows."""
    glued = following.start == token.end
    dollars = token.key in DOLLARS and token.text.isupper()
    if token.key in CURRENCY_KEYS or token.text in MILLION_CODES:
        return token
    if dollars and ((following.text == "$" and glued) or (token.key == "us" and following.key in CURRENCY_KEYS)):
        return token
    if before.kind == NUMERAL and token.text in _TIMES:
        return token._replace(key=_TIMES[token.text])
    power = before.kind == NUMERAL and before.end == token.start and glued
    if power and token.key in {"e", "x"} and (following.kind == NUMERAL or following.text in {"+", "-"}):
        return token
    return token._replace(key=token.key + _OPAQUE, text=token.text + _OPAQUE)


def as_written(key: str) -> str:
    """A word's key without the mark of a language that is not read."""
    return key.removesuffix(_OPAQUE)


def _grouped(tokens: Sequence[Token], text: str) -> list[Token]:
    """Thousands with a space or an apostrophe between them as one numeral: ``12 500,00``, ``1'500``."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        mark = ""
        while token.kind == NUMERAL and _is_first_group(token, mark) and at < len(tokens):
            quote = tokens[at].text == "'" and at + 1 < len(tokens)
            group = tokens[at + 1] if quote else tokens[at]
            between = text[token.end : group.start]
            if between not in {" ", "'"} or between != (mark or between) or not _NEXT_GROUP.fullmatch(group.text):
                break
            joined = token.text + group.text
            token = Token(NUMERAL, joined, token.start, group.end, joined)
            at, mark = at + 1 + quote, between
        found.append(token)
    return found


def _is_first_group(token: Token, mark: str) -> bool:
    return token.text.isdecimal() if mark else _FIRST_GROUP.fullmatch(token.text) is not None


def _without_dates(tokens: Sequence[Token], text: str) -> list[Token]:
    """The text without the digits of dates that can be read in two ways: ``05/03/2024``, ``10-11-12``."""
    spans = [found.span() for found in _AMBIGUOUS_DATE.finditer(text) if _is_ambiguous(found)]
    left: list[Token] = []
    place = 0
    for token in tokens:
        while place < len(spans) and spans[place][1] <= token.start:
            place += 1
        inside = place < len(spans) and spans[place][0] <= token.start
        left.append(Token(SIGN, _OPAQUE, token.start, token.end, _OPAQUE) if inside else token)
    return left


def _is_ambiguous(found: re.Match[str]) -> bool:
    first, second = int(found[1]), int(found[3])
    if len(found[4]) == 2:  # noqa: PLR2004 - 25-12-24 may begin with its year
        return True
    return found[2] != "." and first != second and max(first, second) <= _MONTHS_A_YEAR


# --- what stands behind a number ------------------------------------------------------------------------------


def with_unread(found: Lookup, reading: QuantityReading) -> QuantityReading:
    """A number or amount, marked when a word that is not read may be its scale or its unit."""
    if reading.kind not in {FactKind.NUMBER, FactKind.MONEY}:
        return reading
    closed = reading.kind is FactKind.MONEY and not reading.prefixed
    unread = _went_before(found, reading.first) or (not closed and _goes_on(found, reading.last + 1))
    return reading._replace(unread=unread)


def _goes_on(found: Lookup, at: int) -> bool:
    """Whether a word of content follows: at once, behind a bracket or hyphen, or behind the end of a range."""
    for _ in range(_MOST_STEPS):
        token, following = found.token(at), found.token(at + 1)
        if token is END or found.is_broken(at - 1, at):
            return False
        small = _is_small(token)
        if _is_unread(token) and not small:
            return True
        if (small or token.text in _RANGES) and following.kind == NUMERAL:
            at += 2
        elif token.text in {")", "-"}:
            at += 1
        else:
            return False
    return False


def _went_before(found: Lookup, at: int) -> bool:
    """``2 mil 500 €``, ``3 Millionen 500.000 €``: the amount began with another number and its word."""
    if at < 2 or found.is_broken(at - 2, at):  # noqa: PLR2004 - a number and its word stand before
        return False
    word = found.token(at - 1)
    return _is_unread(word) and not _is_small(word) and found.token(at - 2).kind == NUMERAL


def _is_unread(token: Token) -> bool:
    """Whether a token is a word, or a letter of a script whose words are not split."""
    letter = token.kind == SIGN and token.text.isalpha() and token.text not in SIGNS
    return letter or (token.kind == WORD and token.key.endswith(_OPAQUE))


def _is_small(token: Token) -> bool:
    return token.kind == WORD and as_written(token.key) in _SMALL_WORDS


DENIALS = keys_of(
    "nicht kein keine keinen keiner keines nie ohne sondern ne pas jamais aucun aucune sans no ni nunca ningún "
    "ninguna sin sino não nem sem non mai nessun senza niet geen nooit bez nu fără değil không tidak bukan not "
    "never"
)
"""Words that may take an amount back, in languages that are recognized: they only stop a grader from passing."""
