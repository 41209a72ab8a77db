"""Load the words of `words.toml` by language, with the roles that they may have in a sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from monitors.facts.text import Token, normalise, to_word_key, tokenise

_READ_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("en",),
    "de": ("de",),
    "hinglish": ("en", "hinglish"),
    "hi": ("en", "hinglish", "hi"),
}
"""Languages whose words are loaded together, because Hindi texts contain English words.

If a word is in two languages, the role of the later language counts.
"""

_TABLES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
)
_BITS: Final = {name: 1 << place for place, name in enumerate(_TABLES)}


def get_role_bit(name: str) -> int:
    """Return the bit of a role. Each table of `words.toml` is a role."""
    return _BITS[name]


_Phrases = dict[str, list[tuple[tuple[str, ...], int]]]
"""The phrases that begin with one word, keyed by their second word.

Each entry has the words after the first word, and the role of the phrase.
"""
_MAX_CACHED_WORDS: Final = 20_000


class Lexicon(dict[str, tuple[int, _Phrases]]):
    """A dictionary of the words of one language, with the roles of each word as bits.

    It also has the phrases that begin with each word. A word that is not listed is added on first use, with the
    roles of the stems that match it.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stems = list[tuple[str, int]]()
        phrases = dict[str, _Phrases]()
        single = dict[str, int]()
        for part in _READ_TOGETHER[language]:
            own = dict[str, int]()
            for name, bit in _BITS.items():
                for written in _TABLES[name].get(part, ()):
                    first, *rest = (
                        to_word_key(token.text) for token in tokenise(normalise(written.rstrip("*")).text)
                    )
                    if rest:
                        hyphened = tuple(key for word in rest for key in ("-", word))
                        for form in (tuple(rest), hyphened):
                            phrases.setdefault(first, {}).setdefault(form[0], []).append((form, bit))
                    elif written.endswith("*"):
                        self._stems.append((first, bit))
                    else:
                        own[first] = own.get(first, 0) | bit
            single |= own
        self.update((key, (single.get(key, 0), phrases.get(key, {}))) for key in (*single, *phrases))

    def __missing__(self, key: str) -> tuple[int, _Phrases]:
        entry = sum(bit for stem, bit in self._stems if key.startswith(stem)), _Phrases()
        if len(self) < _MAX_CACHED_WORDS:
            self[key] = entry
        return entry

    def find_roles(self, keys: Sequence[str]) -> list[int]:
        """Return the roles of each word, as bits. A phrase adds its role to all its words."""
        entries = [self[key] for key in keys]
        roles = [bits for bits, _ in entries]
        for at, phrases in [(at, phrases) for at, (_, phrases) in enumerate(entries[:-1]) if phrases]:
            following = keys[at + 1]
            if following in phrases:
                for rest, bit in phrases[following]:
                    end = at + 1 + len(rest)
                    if tuple(keys[at + 1 : end]) == rest:
                        for place in range(at, end):
                            roles[place] |= bit
        return roles


@cache
def load_lexicon(language: str) -> Lexicon:
    """Return the words of ``language``, which is ``en``, ``de``, ``hinglish`` or ``hi``."""
    return Lexicon(language)


_EVERYDAY: Final = {
    to_word_key(word): language for language, words in _TABLES["language"].items() for word in words
}
_MAX_GUESS_TOKENS: Final = 120


def guess_language(tokens: Sequence[Token]) -> str:
    """Return the language to which most of the everyday words among the first tokens belong.

    Return English if no word is known.
    """
    counts = dict.fromkeys(_READ_TOGETHER, 0)
    for token in tokens[:_MAX_GUESS_TOKENS]:
        key = token[1]
        if key in _EVERYDAY:
            counts[_EVERYDAY[key]] += 1
        if "\u0900" <= key[:1] <= "\u097f":
            return "hi"
    return max(counts, key=lambda language: counts[language])
