"""Tokens with their number words: what the readers of numbers look things up in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from monitors.facts.calendar_words import MONTHS
from monitors.facts.normalise import keys_of
from monitors.facts.number_words import NUMBER_WORDS, NumberWord, Part
from monitors.facts.numbers import EXACT
from monitors.facts.tokens import END, NUMERAL, SIGN, Token

VULGAR = {
    "½": "0.5", "¼": "0.25", "¾": "0.75", "⅓": "1/3", "⅔": "2/3", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625",
    "⅞": "0.875", "⅕": "0.2", "⅖": "0.4", "⅗": "0.6", "⅘": "0.8", "⅙": "1/6", "⅚": "5/6",
}  # fmt: skip
"""Vulgar fractions as Unicode has them."""


class Group(NamedTuple):
    """A part of a number below its scale word, with the index of the token after it."""

    value: Decimal
    after: int
    numeral: bool = False
    year: bool = False


_PLAIN_DIGITS = 15
_AFTER_PLAIN = frozenset({",", ";", ":", "?", "!", ")", "]", "।", "|", '"', "'", "*", "", "="})
"""Punctuation that ends a number; a full stop or hyphen may go on."""

_AFTER_NUMBER = keys_of(
    "calendar working business continuous consecutive completed complete more additional clear insurance "
    "successive policy उपार्जित लगातार कैलेंडर और अतिरिक्त पूर्ण lagatar lagataar of per out में के का की "
    "me mein ke ka ki सही h yo y o दशक r e x g k century शताब्दी सदी sadi"
)
"""Words that may make something else of the digits before them."""


_ENGLISH_TOO = frozenset({"do", "sat", "tin", "char"})
_ENGLISH_UNITS = keys_of(
    "day days night nights hour hours month months year years week weeks minute minutes dollars rupees"
)
_HINGLISH = keys_of(
    "hai hain hoga hogi ka ki ke ko mein main se tak nahi nahin liye kya baad aur kar karo kare karen karein ya "
    "bhi toh"
)
"""With one of these, "do months" is two of them; without, "How do months differ?" is a question."""

_MARGIN = 96
"""Empty tokens beyond the end: no reader looks further ahead or back in one step."""

_BEGINNINGS = frozenset(
    {Part.SMALL, Part.HUNDRED, Part.SCALE, Part.DOZEN, Part.FRACTION, Part.QUARTERED, Part.FIXED, Part.ORDINAL}
)
_LEADERS = frozenset({Part.ARTICLE, Part.MINUS, Part.POINT})
"""Words that begin a number only right before another part of it (or, an article, before a unit)."""


class Lookup:
    """One text's tokens.

    ``units`` are the words before which a shy number word is a number. ``starts`` are words that are no numbers and
    may begin a quantity, each with the words that must follow it (``None``: any).
    """

    token: Callable[[int], Token]
    """The token at a place, or an empty one beyond either end."""
    word: Callable[[int], NumberWord | None]
    """The number word at a place, if it is one and may be one here."""
    part: Callable[[int], Part | None]
    """What the word at a place does in a number."""

    def __init__(
        self, tokens: Sequence[Token], *, units: frozenset[str], starts: Mapping[str, frozenset[str] | None]
    ) -> None:
        self.tokens = tokens
        self.size = len(tokens)
        self._starts = starts
        self._units = units
        # Padded lists answer for places beyond either end (Python counts -1 from the back) without a comparison.
        padded = [*tokens, *[END] * _MARGIN]
        raw = [NUMBER_WORDS.get(token.key) for token in padded]
        words, parts = list(raw), list[Part | None]([None]) * len(raw)
        for at, word in enumerate(raw):
            if word is None:
                continue
            if word.shy and not self._before_unit(padded[at].key, padded[at + 1], raw[at + 1]):
                words[at] = None
            else:
                parts[at] = word.part
        self._raw = raw
        self.token = padded.__getitem__
        self.word = words.__getitem__
        self.part = parts.__getitem__
        self.has_months = not MONTHS.keys().isdisjoint([token.key for token in tokens])

    def _before_unit(self, key: str, following: Token, word: NumberWord | None) -> bool:
        if following.key in self._units:
            return not (key in _ENGLISH_TOO and following.key in _ENGLISH_UNITS) or self._is_hinglish()
        if word is None:
            return False
        scale = word.part is Part.HUNDRED or word.part is Part.SCALE
        return scale or (word.part is Part.SMALL and not word.shy and not word.english)

    def _is_hinglish(self) -> bool:
        """Whether any of the small words of Hindi in Latin letters stands in the text."""
        return not _HINGLISH.isdisjoint([token.key for token in self.tokens])

    def raw_word(self, at: int) -> NumberWord | None:
        """The number word at a place, shy or not: inside a number it is one."""
        return self._raw[at]

    def is_plain_number(self, at: int) -> bool:
        """Whether digits stand here among ordinary words or punctuation: a number, whatever else could be tried."""
        token, following = self.token(at), self.token(at + 1)
        if token.kind != NUMERAL or len(token.text) > _PLAIN_DIGITS or not token.text.isdecimal():
            return False
        if following.kind == NUMERAL or (following.start == token.end and following.text not in _AFTER_PLAIN):
            return False
        if following.kind == SIGN:
            return following.text in _AFTER_PLAIN
        known = following.key in self._units or following.key in self._starts or following.key in _AFTER_NUMBER
        return not known and self._raw[at + 1] is None

    def interesting(self) -> list[int]:
        """The tokens where a quantity could begin: digits, number words, units, signs; the rest is passed over."""
        raw, starts = self._raw, self._starts
        return [
            at
            for at, token in enumerate(self.tokens)
            if token.kind == NUMERAL
            or (token.kind == SIGN and self._is_leading_sign(at, token))
            or ((raw[at] is not None or token.key in starts) and self._may_begin(at, token))
        ]

    def _is_leading_sign(self, at: int, token: Token) -> bool:
        if token.text == "-":
            return self.token(at + 1).kind == NUMERAL
        return token.text in self._starts or token.text in VULGAR

    def _may_begin(self, at: int, token: Token) -> bool:
        part = self.part(at)
        if part in _BEGINNINGS:
            return True
        following = self.token(at + 1)
        if part in _LEADERS:
            more = self.part(at + 1) in _BEGINNINGS or following.kind == NUMERAL or following.text == "-"
            if more or following.key in self._units:
                return True
        if token.key not in self._starts:
            return False
        needed = self._starts[token.key]
        return needed is None or following.key in needed


def vulgar(sign: str) -> Decimal:
    """The value of a vulgar fraction."""
    above, _, below = VULGAR[sign].partition("/")
    return EXACT.divide(Decimal(above), Decimal(below or 1))
