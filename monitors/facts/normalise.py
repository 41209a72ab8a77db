"""One spelling for what looks the same, with the way back to the text as it was given.

NFKC with care: compatibility forms are folded character by character (full-width digits, ligatures such as ﬁ),
but vulgar fractions and superscripts stay: NFKC would turn ``1½`` into ``11⁄2`` and ``m²`` into ``m2``.
Unicode spaces become a space, hyphens and the minus sign become ``-``, Devanagari and other digits become ASCII,
invisible and bidirectional characters go. Line ends stay.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple


class Normalised(NamedTuple):
    """A folded text. ``places[i]`` is the code point of the original where folded character ``i`` came from.

    ``places`` is ``None`` where nothing moved.
    """

    text: str
    places: list[int] | None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text behind ``[start, end)`` of the folded one; ``end`` is exclusive."""
        if self.places is None:
            return start, end
        if end <= start:
            at = self.places[start] if start < len(self.places) else (self.places[-1] + 1 if self.places else 0)
            return at, at
        return self.places[start], self.places[end - 1] + 1


_HYPHENS = "\u2010\u2011\u2012\u2212\ufe63\uff0d"
_DASHES = "\u2013\u2014\u2015"
"""En dash, em dash and bar: ranges and insertions; told apart from hyphens by their readers."""

_KEPT = frozenset("½¼¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞²³¹⁰⁴⁵⁶⁷⁸⁹…™℠№ªº" + _DASHES)


def _fold(character: str) -> str:
    if character in _KEPT:
        return character
    if character in _HYPHENS:
        return "-"
    category = unicodedata.category(character)
    if category in {"Cf", "Cs"} or character == "\ufe0f":
        # Zero-width, bidirectional, soft hyphen, byte-order mark; and halves of characters that stand alone.
        return ""
    if category == "Zs":
        return " "
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if character == "\u02bc" or character in "‘’′":
        return "'"
    return unicodedata.normalize("NFKC", character)


class _Folding(dict[int, str]):
    """A translation table that fills itself: each character of a text is looked at once per process."""

    def __missing__(self, code: int) -> str:
        folded = _fold(chr(code))
        self[code] = folded
        return folded


_FOLDING = _Folding()


def normalise(text: str) -> Normalised:
    """Fold ``text``; linear in its length. Lone surrogates are dropped like other invisible characters."""
    if text.isascii():
        return Normalised(text, None)
    changed = [
        (character, folded)
        for character in set(text)
        if character > "\x7f" and (folded := _FOLDING[ord(character)]) != character
    ]
    if all(len(folded) == 1 for _, folded in changed):
        return Normalised(_replaced(text, changed), None)
    parts: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        folded = _FOLDING[ord(character)]
        parts.append(folded)
        places.extend([place] * len(folded))
    return Normalised("".join(parts), places)


_FEW = 8


def _replaced(text: str, changed: list[tuple[str, str]]) -> str:
    """One character for one: a few are replaced one after the other, which is faster than a table for all."""
    if len(changed) > _FEW:
        return text.translate(_FOLDING)
    for character, folded in changed:
        text = text.replace(character, folded)
    return text


_NUKTA = "\u093c"
_WORD_FOLDING = str.maketrans({_NUKTA: None, "ँ": "ं", "’": "'"})


def word_key(word: str) -> str:
    """How a word is looked up: lower case, without nukta, candrabindu as anusvara (हज़ार = हजार, पाँच = पांच)."""
    if word.isascii():
        return word.lower()
    return word.lower().translate(_WORD_FOLDING)


def keys_of(words: str) -> frozenset[str]:
    """The keys of words that stand with spaces between them: how the readers keep their word lists."""
    return frozenset(word_key(normalise(word).text) for word in words.split())
