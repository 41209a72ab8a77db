"""Tokens with their number words: what the readers of numbers look things up in."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from monitors.facts.calendar_words import MONTHS
from monitors.facts.normalise import keys_of
from monitors.facts.number_words import NUMBER_WORDS, NumberWord, Part
from monitors.facts.numbers import EXACT
from monitors.facts.tokens import END, NUMERAL, SIGN, WORD, Token

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

_PUNCTUATION = frozenset(".,:;!?()[]{}\"'*_#|•।&@~")


class Lookup:
    """One text's tokens.

    ``units`` are the words before which a shy number word is a number, ``starts`` those that are no numbers and may
    begin a quantity.
    """

    def __init__(self, tokens: Sequence[Token], *, units: frozenset[str], starts: frozenset[str]) -> None:
        self._tokens = tokens
        self._starts = starts
        self._words = [NUMBER_WORDS.get(token.key) if token.kind == WORD else None for token in tokens]
        self._units = units
        self._size = len(tokens)
        self.has_months = any(token.key in MONTHS for token in tokens if token.kind == WORD)

    def is_plain_number(self, at: int) -> bool:
        """Whether digits stand here among ordinary words or punctuation: a number, whatever else could be tried."""
        token = self._tokens[at]
        if token.kind != NUMERAL or len(token.text) > _PLAIN_DIGITS or not token.text.isdecimal():
            return False
        following = self._tokens[at + 1] if at + 1 < self._size else END
        if following.kind == NUMERAL or (following.start == token.end != -1 and following.text not in _AFTER_PLAIN):
            return False
        if following.kind == SIGN:
            return following.text in _AFTER_PLAIN
        known = following.key in self._units or following.key in self._starts or following.key in _AFTER_NUMBER
        return not known and self._words[at + 1] is None

    def word(self, at: int) -> NumberWord | None:
        """The number word at a token, if it is one and may be one here."""
        if not 0 <= at < self._size:
            return None
        word = self._words[at]
        if word is not None and word.shy and not self._before_unit(at):
            return None
        return word

    def token(self, at: int) -> Token:
        """The token at ``at``, or an empty one beyond either end."""
        return self._tokens[at] if 0 <= at < self._size else END

    def _before_unit(self, at: int) -> bool:
        following = self.token(at + 1)
        if following.key in self._units:
            return True
        word = self._words[at + 1] if at + 1 < self._size else None
        if word is None:
            return False
        return word.part in {Part.HUNDRED, Part.SCALE} or (
            word.part is Part.SMALL and not word.shy and not word.english
        )

    def part(self, at: int) -> Part | None:
        """What the word at a token does in a number, if it is one."""
        word = self.word(at)
        return None if word is None else word.part

    @property
    def tokens(self) -> Sequence[Token]:
        """All tokens in order."""
        return self._tokens

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._size

    def interesting(self) -> list[int]:
        """The tokens where a quantity could begin: digits, number words, units, signs; the rest is passed over."""
        return [
            at
            for at, (token, word) in enumerate(zip(self._tokens, self._words, strict=True))
            if token.kind == NUMERAL
            or word is not None
            or (token.kind == WORD and token.key in self._starts)
            or (token.kind == SIGN and token.text not in _PUNCTUATION)
        ]


def vulgar(sign: str) -> Decimal:
    """The value of a vulgar fraction."""
    above, _, below = VULGAR[sign].partition("/")
    return EXACT.divide(Decimal(above), Decimal(below or 1))
