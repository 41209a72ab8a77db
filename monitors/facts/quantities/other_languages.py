"""Read texts in an unsupported language: only digits, signs and codes, but no words.

The words of English and Hindi would produce false figures: Spanish "once" is eleven, and German "an" is not an
article. Only international notation is read: numerals with their own separators, "%", currencies by sign, ISO code
or name, hours and minutes as ``h`` and ``min``, powers of ten. A number before an unknown word is not read as a
quantity, because the word may be its scale or unit ("5 Millionen", "24 Monate").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.facts.language import OTHER
from monitors.facts.quantities.currencies import DOLLARS, NAMES, SIGNS
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.numerals import Lookup
from monitors.facts.quantities.translations import join_and_translate_phrases, load_translations, translate_token
from monitors.facts.quantities.units import MILLION_CODES
from monitors.facts.text import END, NUMERAL, SIGN, WORD, Token, split_into_word_keys, to_word_key

_OPAQUE: Final = "\0"
"""The character that is added to the key of an unread word. No text and no table contains this character."""

_COMMON_TERMS = frozenset({"le", "lire", "peso", "buck", "bucks", "quid", "dram", "rm"})
"""Names of currencies that are ordinary words in other languages: "le" in "le 5", "peso" in "peso 80 kg"."""

CURRENCY_KEYS: Final = frozenset(NAMES) - _COMMON_TERMS | {"cents"}
"""Names and codes of currencies that are read in any language."""

_SMALL_WORDS = frozenset(to_word_key(word) for words in OTHER.values() for word in words.split())
"""Function words of the recognised languages. None of them is a scale or a unit."""

_TIMES: Final = {"h": "h", "min": "minutes"}
_RANGES = frozenset("-–—/")
_MAX_STEPS = 6

_AMBIGUOUS_DATE = re.compile(r"(?<![\d./-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?![\d])")
_MONTHS_A_YEAR = 12
_FIRST_GROUP, _NEXT_GROUP = re.compile(r"[1-9]\d{0,2}"), re.compile(r"\d{3}(?:[.,]\d{1,2})?")


def translate_or_hide_words(tokens: Sequence[Token], text: str, language: str = "") -> list[Token]:
    """Return the tokens of a text in another language. The function takes linear time.

    - Words and phrases of ``language`` that are in `languages.toml` are translated.
    - Other words are marked as unread, except international words such as currencies.
    - The parts of a number with spaces are joined: ``12 500`` is one numeral.
    """
    tokens, words = (
        join_and_translate_phrases(_join_thousands(tokens, text), text, language),
        load_translations(language),
    )
    if not words:
        tokens = _hide_ambiguous_dates(tokens, text)
    return [
        token
        if token.kind != WORD
        else (token if " " in token.text else translate_token(token, words))
        or _mark_unread_if_not_international(token, tokens[at - 1] if at else END, _get_next_token(tokens, at))
        for at, token in enumerate(tokens)
    ]


def _get_next_token(tokens: Sequence[Token], at: int) -> Token:
    return tokens[at + 1] if at + 1 < len(tokens) else END


def _mark_unread_if_not_international(token: Token, before: Token, following: Token) -> Token:
    """Return an international word (a currency, a unit) unchanged; mark all other words as unread."""
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


def remove_unread_mark(key: str) -> str:
    """Return the key of a word without the mark that shows an unread word."""
    return key.removesuffix(_OPAQUE)


def _join_thousands(tokens: Sequence[Token], text: str) -> list[Token]:
    """Join the parts of a number that has a space or an apostrophe between thousands: ``12 500,00``, ``1'500``."""
    joined_tokens: list[Token] = []
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
        joined_tokens.append(token)
    return joined_tokens


def _is_first_group(token: Token, mark: str) -> bool:
    return token.text.isdecimal() if mark else _FIRST_GROUP.fullmatch(token.text) is not None


def _hide_ambiguous_dates(tokens: Sequence[Token], text: str) -> list[Token]:
    """Remove the digits of dates that can be read in two ways: ``05/03/2024``, ``10-11-12``."""
    spans = [match.span() for match in _AMBIGUOUS_DATE.finditer(text) if _is_ambiguous_date(match)]
    left: list[Token] = []
    place = 0
    for token in tokens:
        while place < len(spans) and spans[place][1] <= token.start:
            place += 1
        inside = place < len(spans) and spans[place][0] <= token.start
        left.append(Token(SIGN, _OPAQUE, token.start, token.end, _OPAQUE) if inside else token)
    return left


def _is_ambiguous_date(match: re.Match[str]) -> bool:
    first, second = int(match[1]), int(match[3])
    if len(match[4]) == 2:  # noqa: PLR2004 - 25-12-24 may begin with its year
        return True
    return match[2] != "." and first != second and max(first, second) <= _MONTHS_A_YEAR


# --- text after a number --------------------------------------------------------------------------------------


def mark_unread_beside_unknown_word(lookup: Lookup, reading: QuantityReading) -> QuantityReading:
    """Return a number or amount, marked as unread if an unread word may be its scale or its unit."""
    if reading.kind not in {FactKind.NUMBER, FactKind.MONEY}:
        return reading
    closed = reading.kind is FactKind.MONEY and not reading.prefixed
    unread = _is_preceded_by_unread_word(lookup, reading.first) or (
        not closed and _is_followed_by_unread_word(lookup, reading.last + 1)
    )
    return reading._replace(unread=unread)


def _is_followed_by_unread_word(lookup: Lookup, at: int) -> bool:
    """Return whether a content word follows: directly, after a bracket or hyphen, or after the end of a range."""
    for _ in range(_MAX_STEPS):
        token, following = lookup.token(at), lookup.token(at + 1)
        if token is END or lookup.has_line_break_between(at - 1, at):
            return False
        small = _is_function_word(token)
        if _is_unread_word(token) and not small:
            return True
        if (small or token.text in _RANGES) and following.kind == NUMERAL:
            at += 2
        elif token.text in {")", "-"}:
            at += 1
        else:
            return False
    return False


def _is_preceded_by_unread_word(lookup: Lookup, at: int) -> bool:
    """Return whether an unread scale word precedes the number, so that the number is only the end of an amount.

    An example is the 500 in ``2 mil 500 €``.
    """
    if at < 2 or lookup.has_line_break_between(at - 2, at):  # noqa: PLR2004 - a number and its word come before
        return False
    word = lookup.token(at - 1)
    return _is_unread_word(word) and not _is_function_word(word) and lookup.token(at - 2).kind == NUMERAL


def _is_unread_word(token: Token) -> bool:
    """Return whether a token is an unread word, or a character of a script without spaces between words."""
    letter = token.kind == SIGN and token.text.isalpha() and token.text not in SIGNS
    return letter or (token.kind == WORD and token.key.endswith(_OPAQUE))


def _is_function_word(token: Token) -> bool:
    return token.kind == WORD and remove_unread_mark(token.key) in _SMALL_WORDS


DENIALS = split_into_word_keys(
    "nicht kein keine keinen keiner keines nie ohne sondern ne pas jamais aucun aucune sans no ni nunca ningún "
    "ninguna sin sino não nem sem non mai nessun senza niet geen nooit bez nu fără değil không tidak bukan not "
    "never"
)
"""Words that may deny an amount, in the languages that are recognised.

They have only one effect: a grader does not pass a reply with such a word.
"""
