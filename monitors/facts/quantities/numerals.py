"""Read numerals: digits with their separators, in all notations.

Supported are groups of Indian and Western notation (``1,50,000``, ``150,000``), continental European notation
(``1.234,56``) and thin spaces. The readers of numbers work on tokens and number words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import NamedTuple

from monitors.facts.quantities.lexicon import MONTHS, NUMBER_WORDS, NumberPart, NumberWord
from monitors.facts.text import END, NUMERAL, SIGN, Token, split_into_word_keys

EXACT = Context(prec=60)
"""The context for decimal arithmetic on quantities. It has 60 digits, so no number in a text is rounded."""

MAX_VALUE = Decimal("1e36")
"""The largest number that is read."""

_GROUP = 3
_MAX_DIGITS = 36
_MAX_PARTS = 40
"""Maximum number of commas and points in a numeral. A numeral with more of them is not read."""

_WESTERN_OR_INDIAN = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}")
_DOTTED_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+")


def parse_numeral(text: str) -> list[tuple[Decimal, int, int]]:
    """Return each number in a numeral with its start and end. A numeral has several numbers if dots separate them.

    ``1,50,000`` → 150000; ``33,90`` → 33.90; ``1.234,56`` → 1234.56; ``192.168.1.2`` → four numbers.
    """
    if text.isdecimal():
        return [(Decimal(text), 0, len(text))] if len(text) <= _MAX_DIGITS else []
    value = _parse_single_number(text)
    if value is not None:
        return [(value, 0, len(text))]
    if text.count(",") + text.count(".") > _MAX_PARTS:
        return []
    return [
        (Decimal(run.group()), run.start(), run.end())
        for run in re.finditer(r"\d+", text)
        if run.end() - run.start() <= _MAX_DIGITS
    ]


def _parse_single_number(text: str) -> Decimal | None:
    if len(text) > _MAX_DIGITS:
        return None
    commas, dots = text.count(","), text.count(".")
    if commas and dots:
        return _parse_mixed_separators(text)
    if commas:
        return _parse_with_commas(text, commas)
    if dots == 1:
        return Decimal(text)
    return Decimal(text.replace(".", "")) if _DOTTED_GROUPS.fullmatch(text) else None


def _parse_with_commas(text: str, commas: int) -> Decimal | None:
    if _WESTERN_OR_INDIAN.fullmatch(text):
        return Decimal(text.replace(",", ""))
    return Decimal(text.replace(",", ".")) if commas == 1 else None


def _parse_mixed_separators(text: str) -> Decimal | None:
    whole, mark, part = _split_at_last_separator(text)
    other = "." if mark == "," else ","
    groups = whole.split(other)
    grouped = len(groups) > 1 and mark not in whole and len(groups[-1]) == _GROUP
    if grouped and all(2 <= len(group) <= _GROUP for group in groups[1:]):  # noqa: PLR2004 - Indian groups have two
        return Decimal(f"{whole.replace(other, '')}.{part}")
    return None


def _split_at_last_separator(text: str) -> tuple[str, str, str]:
    at = max(text.rfind(","), text.rfind("."))
    return text[:at], text[at], text[at + 1 :]


def format_plain(value: Decimal) -> str:
    """Format a value as a plain decimal string: no exponent, no trailing zeros (``1500000``, ``0.25``)."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"", "-0"} else text


def is_multiple(value: Decimal, of: int) -> bool:
    """Return whether ``value`` is a whole multiple of ``of``. Return False for values above `MAX_VALUE`."""
    return abs(value) < MAX_VALUE and EXACT.remainder(value, Decimal(of)) == 0


VULGAR = {
    "½": "0.5", "¼": "0.25", "¾": "0.75", "⅓": "1/3", "⅔": "2/3", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625",
    "⅞": "0.875", "⅕": "0.2", "⅖": "0.4", "⅗": "0.6", "⅘": "0.8", "⅙": "1/6", "⅚": "5/6",
}  # fmt: skip
"""The value of each vulgar fraction in Unicode, such as ½."""

_LEADING = frozenset({*VULGAR, "-"})
"""Signs that may begin a number."""


class Group(NamedTuple):
    """The part of a number before its scale word, and the index of the token after this part.

    An example is ``two hundred`` in ``two hundred thousand``.
    """

    value: Decimal
    after: int
    numeral: bool = False
    year: bool = False


_MAX_PLAIN_DIGITS = 15
_AFTER_PLAIN = frozenset({",", ";", ":", "?", "!", ")", "]", "।", "|", '"', "'", "*", "", "="})
"""Punctuation that ends a number. After other signs, such as a full stop or a hyphen, the number may continue."""

_AFTER_NUMBER = split_into_word_keys(
    "calendar working business continuous consecutive completed complete more additional clear "
    "successive policy उपार्जित लगातार कैलेंडर और अतिरिक्त पूर्ण lagatar lagataar of per out में के का की "
    "me mein ke ka ki सही h yo y o दशक r e x g k century शताब्दी सदी sadi"
)
"""Words that may change the meaning of the digits before them, so that the digits are not a plain number."""


_ENGLISH_TOO = frozenset({"do", "sat", "tin", "char"})
_ENGLISH_UNITS = split_into_word_keys(
    "day days night nights hour hours month months year years week weeks minute minutes dollars rupees"
)
_HINGLISH = split_into_word_keys(
    "hai hain hoga hogi ka ki ke ko mein main se tak nahi nahin liye kya baad aur kar karo kare karen karein ya "
    "bhi toh"
)
"""Hinglish function words.

In a text with one of these words, "do" is the number two: "do months" means two months.
"""

_MARGIN = 96
"""Number of empty tokens beyond both ends of a text. No reader looks further ahead or back in one step."""

_BEGINNINGS = frozenset(
    {
        NumberPart.SMALL,
        NumberPart.HUNDRED,
        NumberPart.SCALE,
        NumberPart.DOZEN,
        NumberPart.FRACTION,
        NumberPart.QUARTERED,
        NumberPart.FIXED,
        NumberPart.ORDINAL,
    }
)
_LEADERS = frozenset({NumberPart.ARTICLE, NumberPart.MINUS, NumberPart.POINT})
"""Words that begin a number only if another part of the number directly follows.

An article also begins a number if a unit directly follows.
"""


class Lookup:
    """The tokens of a text, for the readers of numbers.

    - ``units`` are the words before which an ambiguous number word is a number: the "do" in "do saal" is two.
    - ``starts`` are words other than numbers that may begin a quantity. Each is mapped to a set of words, one of
      which must follow, or to ``None`` if any word may follow.
    - ``breaks`` are the indexes of the tokens after the end of a line or a tab.
    """

    token: Callable[[int], Token]
    """Returns the token with this index, or an empty token beyond either end."""
    word: Callable[[int], NumberWord | None]
    """Returns the number word at a token's index, or ``None`` if the token cannot be a number there."""
    part: Callable[[int], NumberPart | None]
    """Returns the role in a number of the word at a token's index, or ``None`` if it has no role there."""

    def __init__(
        self,
        tokens: Sequence[Token],
        *,
        units: frozenset[str],
        starts: Mapping[str, frozenset[str] | None],
        breaks: frozenset[int] = frozenset(),
    ) -> None:
        self.tokens = tokens
        self._breaks = breaks
        self.size = len(tokens)
        self._starts = starts
        self._units = units
        keys = [token.key for token in tokens]
        # The lists are padded. A place beyond either end needs no check (index -1 is the padding at the back).
        padded, beyond = [*tokens, *[END] * _MARGIN], [None] * _MARGIN
        raw: list[NumberWord | None] = [*map(NUMBER_WORDS.get, keys), *beyond]
        words, parts = list(raw), list[NumberPart | None]([None]) * len(raw)
        for at, word in enumerate(raw):
            if word is None:
                continue
            if word.shy and not self._is_number_by_next_word(padded[at].key, padded[at + 1], raw[at + 1]):
                words[at] = None
            else:
                parts[at] = word.part
        self._raw = raw
        self.token = padded.__getitem__
        self.word = words.__getitem__
        self.part = parts.__getitem__
        self.has_months = not MONTHS.keys().isdisjoint(keys)

    def _is_number_by_next_word(self, key: str, following: Token, word: NumberWord | None) -> bool:
        if following.key in self._units:
            return (
                not (key in _ENGLISH_TOO and following.key in _ENGLISH_UNITS) or self._has_hinglish_function_word()
            )
        if word is None:
            return False
        scale = word.part is NumberPart.HUNDRED or word.part is NumberPart.SCALE
        return scale or (word.part is NumberPart.SMALL and not word.shy and not word.english)

    def _has_hinglish_function_word(self) -> bool:
        """Return whether the text contains a Hinglish function word: a Hindi word in Latin letters."""
        return not _HINGLISH.isdisjoint([token.key for token in self.tokens])

    def find_possible_number_word(self, at: int) -> NumberWord | None:
        """Return the number word at token ``at``, or ``None``.

        Unlike `word`, this method also returns ambiguous words such as "do", which are number words inside a
        number.
        """
        return self._raw[at]

    def has_line_break_between(self, first: int, last: int) -> bool:
        """Return whether the end of a line or a tab is between token ``first`` and token ``last``."""
        return bool(self._breaks) and any(at in self._breaks for at in range(first + 1, last + 1))

    def is_plain_number(self, at: int) -> bool:
        """Return whether the digits at token ``at`` are a number without a unit.

        This is the case if an ordinary word or a punctuation mark follows them.
        """
        token, following = self.token(at), self.token(at + 1)
        if token.kind != NUMERAL or len(token.text) > _MAX_PLAIN_DIGITS or not token.text.isdecimal():
            return False
        if following.kind == NUMERAL or (following.start == token.end and following.text not in _AFTER_PLAIN):
            return False
        if following.kind == SIGN:
            return following.text in _AFTER_PLAIN
        may_continue = (
            following.key in self._units or following.key in self._starts or following.key in _AFTER_NUMBER
        )
        return not may_continue and self._raw[at + 1] is None

    def list_possible_quantity_starts(self) -> list[int]:
        """Return the tokens where a quantity could begin: digits, number words, units and signs."""
        raw, starts = self._raw, self._starts
        return [
            at
            for at, token in enumerate(self.tokens)
            if token[0] == NUMERAL
            or (
                (raw[at] is not None or token[1] in starts or token[1] in _LEADING)
                and self._is_quantity_start(at, token)
            )
        ]

    def _is_quantity_start(self, at: int, token: Token) -> bool:
        if token.kind == SIGN and self._is_leading_sign(at, token):
            return True
        return (self._raw[at] is not None or token.key in self._starts) and self._can_begin_quantity(at, token)

    def _is_leading_sign(self, at: int, token: Token) -> bool:
        if token.text == "-":
            return self.token(at + 1).kind == NUMERAL
        return token.text in self._starts or token.text in VULGAR

    def _can_begin_quantity(self, at: int, token: Token) -> bool:
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


def parse_vulgar_fraction(sign: str) -> Decimal:
    """Return the value of a vulgar fraction."""
    above, _, below = VULGAR[sign].partition("/")
    return EXACT.divide(Decimal(above), Decimal(below or 1))
