"""Load the words for reading answers from `vocabulary.toml`: light words, marks, opposites, synonyms."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from monitors.facts.text import Token, normalise, to_word_key

_TABLES: Final[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "vocabulary.toml").read_text(encoding="utf-8")
)


class Mark(IntEnum):
    """The effect of a word or phrase on the clause that contains it."""

    NOTHING = 0
    PAST = 1
    PAST_WITH_VERB = 2
    PAST_VERB = 4
    NOW = 8
    HEDGE = 16
    APPROXIMATE = 32
    OTHER = 64
    RETRACT = 128
    CHANGE = 256
    INSTEAD = 512
    VAGUE = 1024
    TURN = 2048
    FREE = 4096
    UNLIMITED = 8192
    HALF = 16384
    NOT_FREE = 32768
    EXAMPLE = 65536


_MARKS: Final = {
    ("status", "past"): Mark.PAST,
    ("status", "past_with_verb"): Mark.PAST_WITH_VERB,
    ("status", "past_verbs"): Mark.PAST_VERB,
    ("status", "now"): Mark.NOW,
    ("status", "hedge"): Mark.HEDGE,
    ("status", "example"): Mark.EXAMPLE,
    ("status", "approximate"): Mark.APPROXIMATE,
    ("status", "other"): Mark.OTHER,
    ("status", "retract"): Mark.RETRACT,
    ("status", "change"): Mark.CHANGE,
    ("status", "instead"): Mark.INSTEAD,
    ("status", "vague"): Mark.VAGUE,
    ("status", "nothing"): Mark.NOTHING,
    ("turns", "limits"): Mark.TURN,
    ("turns", "compares"): Mark.TURN,
    ("values", "free"): Mark.FREE,
    ("values", "unlimited"): Mark.UNLIMITED,
    ("values", "half"): Mark.HALF,
    ("values", "not_free"): Mark.NOT_FREE,
}


def _to_key(word: str) -> str:
    return to_word_key(normalise(word).text)


def _to_keys(words: str) -> list[str]:
    return [_to_key(word) for word in words.split()]


def _load_marked_phrases() -> dict[str, list[tuple[tuple[str, ...], Mark]]]:
    """Load the marked phrases, keyed by their first word. The longest phrase comes first."""
    phrases: dict[str, list[tuple[tuple[str, ...], Mark]]] = {}
    for (table, name), mark in _MARKS.items():
        for phrase in _TABLES[table][name].split():
            keys = tuple(_to_key(word) for part in phrase.split("_") for word in part.replace("-", " - ").split())
            phrases.setdefault(keys[0], []).append((keys, mark))
    for listed in phrases.values():
        listed.sort(key=lambda entry: -len(entry[0]))
    return phrases


PHRASES: Final = _load_marked_phrases()
LIGHT: Final = frozenset(_to_keys(" ".join(_TABLES["light"].values())))
"""Function words and other words that do not describe the subject of a figure, such as "the" and "many"."""
PERIODS: Final = {key: name for name, words in _TABLES["periods"].items() for key in _to_keys(words)}
"""The period that each word means, keyed by the lookup key of the word: ``year`` for "annual"."""

COUNTED: Final = frozenset(_TABLES["per"]["counted"].split())
"""Stems of things that a rate can count, such as "person" in "per person" and "item" in "per item".

An amount per one of these things contradicts the same amount per another: "€5 per person" and "€5 per item".
"""

_SUFFIXES: Final = ("'s", "ied", "ies", "ing", "ed", "es", "s", "ly", "e")
_FOREIGN_SUFFIXES: Final = ("innen", "ern", "en", "er", "es", "em", "et", "e", "n", "s", "t")
_MATRAS: Final = "ािीुूेैोौंँ"
_MIN_STEM: Final = 3
_MAX_CACHE: Final = 50_000


class _Stems(dict[str, str]):
    """A cache that maps the lookup key of a word to its stem.

    A stem is computed on first use. The cache is cleared when it becomes too large.
    """

    def __missing__(self, key: str) -> str:
        if len(self) > _MAX_CACHE:
            self.clear()
        stem = self[key] = _SAME.get(key) or _compute_stem(key)
        return stem


def _compute_stem(key: str) -> str:
    word = key.removesuffix("\0")
    if word != key:
        for suffix in _FOREIGN_SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) > _MIN_STEM:
                return word.removesuffix(suffix)
        return word
    if not word.isascii():
        return word.rstrip(_MATRAS) or word
    if word.endswith("ings"):  # "evenings" has the stem of "evening"
        word = word.removesuffix("s")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM and not word.endswith(("ss", "us", "is")):
            stem = word.removesuffix(suffix)
            if suffix in {"ies", "ied"}:
                return f"{stem}y"
            if suffix in {"ing", "ed"} and stem[-1] == stem[-2] and stem[-1] not in "lsz":
                return stem[:-1]
            return stem.removesuffix("e") if len(stem) > _MIN_STEM else stem
    return word


_SAME: dict[str, str] = {}
for _group in _TABLES["same"]["groups"]:
    _first, *_rest = _to_keys(_group)
    _SAME.update({word: _compute_stem(_first) for word in (_first, *_rest)})

STEMS: Final[Mapping[str, str]] = _Stems()
"""The stem of each word, by the lookup key of the word. "Booked" and "booking" have the same stem."""


RISES: Final = frozenset(STEMS[key] for key in _to_keys(_TABLES["directions"]["up"]))
FALLS: Final = frozenset(STEMS[key] for key in _to_keys(_TABLES["directions"]["down"]))
"""Stems of words for an upward (`RISES`) or downward (`FALLS`) change or difference."""


def _load_opposites_and_sides() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    opposites: dict[str, set[str]] = {}
    sides: dict[str, set[str]] = {}
    for first, second in _TABLES["opposites"]["pairs"]:
        for words, against in ((first, second), (second, first)):
            for key in _to_keys(words):
                opposites.setdefault(STEMS[key], set()).update(STEMS[word] for word in _to_keys(against))
                sides.setdefault(STEMS[key], set()).update(STEMS[word] for word in _to_keys(words))
    return tuple({stem: frozenset(stems) for stem, stems in table.items()} for table in (opposites, sides))  # type: ignore[return-value] - pyright sees a tuple of unknown length


OPPOSITES, SIDES = _load_opposites_and_sides()
"""For each stem, its opposites and its synonyms: for example, "after" and "prior" for "before"."""


def find_opposite_pair(expected: Iterable[str], reply: frozenset[str]) -> tuple[str, str] | None:
    """Return a stem that only ``expected`` contains and its opposite that only ``reply`` contains.

    Return ``None`` if there is no such pair.
    """
    wanted = frozenset(expected)
    for stem in wanted - reply:
        against = OPPOSITES.get(stem)
        if against is not None and not SIDES[stem] & reply and (opposites := (against & reply) - wanted):
            return stem, min(opposites)
    return None


def find_marked_phrases(tokens: Sequence[Token]) -> list[tuple[int, int, Mark]]:
    """Return each marked word or phrase: its first token, the token after its last token, and its mark."""
    marks: list[tuple[int, int, Mark]] = []
    keys_in_text = tuple([token[1] for token in tokens])
    for at, key in enumerate(keys_in_text):
        for keys, mark in PHRASES.get(key, ()):
            after = at + len(keys)
            if after == at + 1 or keys_in_text[at:after] == keys:
                if mark:
                    marks.append((at, after, mark))
                break
    return marks
