"""The words of `words.toml`: what role each can have in a sentence, by language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from monitors.facts.text import Token, normalise, tokenise, word_key

_READ_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("en",),
    "de": ("de",),
    "hinglish": ("en", "hinglish"),
    "hi": ("en", "hinglish", "hi"),
}
"""Hindi is written with English words in it; where two languages have a word, the later one's role counts."""

_TABLES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
)
_BITS: Final = {name: 1 << place for place, name in enumerate(_TABLES)}


def role(name: str) -> int:
    """The bit of a table of `words.toml`."""
    return _BITS[name]


class Words(NamedTuple):
    """The roles of one language's words, as bits: ``phrases`` by their first word, ``stems`` end in a star."""

    single: dict[str, int]
    phrases: dict[str, list[tuple[tuple[str, ...], int]]]
    stems: tuple[tuple[str, int], ...]

    def roles(self, keys: Sequence[str]) -> list[int]:
        """The roles of each word of a clause; a phrase gives its own to all of its words."""
        roles = [self.single.get(key, 0) for key in keys]
        for at, key in enumerate(keys):
            for stem, bits in self.stems:
                if key.startswith(stem):
                    roles[at] |= bits
            for rest, bits in self.phrases.get(key, ()):
                end = at + 1 + len(rest)
                if tuple(keys[at + 1 : end]) == rest:
                    for place in range(at, end):
                        roles[place] |= bits
        return roles


@cache
def words_of(language: str) -> Words:
    """The words that are read in ``language``: ``en``, ``de``, ``hinglish`` or ``hi``."""
    single, phrases, stems = (
        dict[str, int](),
        dict[str, list[tuple[tuple[str, ...], int]]](),
        list[tuple[str, int]](),
    )
    for part in _READ_TOGETHER[language]:
        own = dict[str, int]()
        for name, bit in _BITS.items():
            for written in _TABLES[name].get(part, ()):
                first, *rest = (word_key(token.text) for token in tokenise(normalise(written.rstrip("*")).text))
                if rest:
                    phrases.setdefault(first, []).append((tuple(rest), bit))
                elif written.endswith("*"):
                    stems.append((first, bit))
                else:
                    own[first] = own.get(first, 0) | bit
        single |= own
    return Words(single, phrases, tuple(stems))


_EVERYDAY: Final = {word_key(word): language for language, words in _TABLES["language"].items() for word in words}
_MOST_LOOKED_AT: Final = 120


def language_of_words(tokens: Sequence[Token]) -> str:
    """Which language's words are read: that with the most everyday words among the first ones, English for none."""
    counts = dict.fromkeys(_READ_TOGETHER, 0)
    for token in tokens[:_MOST_LOOKED_AT]:
        if "\u0900" <= token.key[:1] <= "\u097f":
            return "hi"
        if token.key in _EVERYDAY:
            counts[_EVERYDAY[token.key]] += 1
    return max(counts, key=lambda language: counts[language])
