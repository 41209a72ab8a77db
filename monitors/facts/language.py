"""Identify a text as English, Hindi, Hinglish (Hindi in Latin letters with English), German, French or Spanish.

By script first, then by small words. A library for a hundred languages does not support Hinglish. A table of
function words does, and reads a thousand characters in a twentieth of a millisecond. The lists are Lookout's own:
the commonest function words of each language, in their usual spellings.

Hindi in Latin letters has no fixed spelling; the variants are those of chat messages (``nahi``, ``nahin``,
``nhi``). Words that are also English (``me``, ``is``, ``to``, ``par``, ``main``, ``do``) are left out of both
lists or listed separately: alone they prove nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitors.records.base import Language

_TABLES: Final[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "language_words.toml").read_text(encoding="utf-8")
)
HINGLISH = frozenset(_TABLES["hinglish"].split())
"""Hindi in Latin letters, without words that are also English."""
HINGLISH_OR_ENGLISH = frozenset(_TABLES["hinglish_or_english"].split())
"""Hindi words with the spelling of English ones. They count for Hinglish only beside surer words."""
ENGLISH = frozenset(_TABLES["english"].split())
"""The commonest English words, and some words that people ask assistants."""
OTHER: Final[dict[str, str]] = _TABLES["other"]
"""Function words of other languages, by their code."""
LANGUAGE_NAMES: Final[dict[str, str]] = _TABLES["names"]
"""The name of a language in messages, by its code."""
_MORE_OTHER: Final[dict[str, str]] = _TABLES["more_other"]

_DEVANAGARI = re.compile(r"[\u0900-\u0963\u0966-\u097f]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_UNUSUAL = re.compile("[^\0-\x7f\u00c0-\u024f\u1e00-\u1eff\u0900-\u097f]+")
"""Characters outside ASCII, Latin and Devanagari: signs, and letters of other scripts."""
_WORD = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]+(?:'[a-z]+)?")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
# Not in the writer's language: addresses, citations, code.
_NOISE = re.compile(r"\[[^\[\]\n]{0,200}\]|https?://\S{1,300}|`[^`\n]{0,200}`")

HINDI_SHARE = 0.25
"""A text is Hindi from this share of words in Devanagari on. Product names often stay Latin."""
_MAX_READ_LENGTH = 3_000
"""Only this many characters are read. More would not change the result."""
_HINGLISH_SHARE = 0.12
"""A Latin text is Hinglish from this share of Hindi words on: one in eight."""

_LEXICONS = {code: frozenset(f"{lexicon} {_MORE_OTHER.get(code, '')}".split()) for code, lexicon in OTHER.items()}
_OTHER_ONLY = (
    frozenset[str]().union(*_LEXICONS.values())
    - ENGLISH
    - HINGLISH
    - HINGLISH_OR_ENGLISH
    - {"a", "o", "i", "is", "in", "no", "he", "die", "war"}
)


_BITS = (1, 2, 4, 8)
_LISTS = (HINGLISH, HINGLISH_OR_ENGLISH, ENGLISH, _OTHER_ONLY)
_LISTS_OF = {
    word: sum(bit for bit, lexicon in zip(_BITS, _LISTS, strict=True) if word in lexicon)
    for word in frozenset[str]().union(*_LISTS)
}
"""The lists that contain each word, as bits."""
_CODES_OF = {
    word: tuple(code for code, lexicon in _LEXICONS.items() if word in lexicon)
    for word in frozenset[str]().union(*_LEXICONS.values())
}
"""The other languages that have a word, even if English or Hinglish has it too: "was" is also German."""
_ROW_OF = {word: (_LISTS_OF.get(word, 0), _CODES_OF.get(word, ())) for word in _LISTS_OF.keys() | _CODES_OF}
_ROWS = sorted(set(_ROW_OF.values()))
_ROW_NUMBERS = {word: _ROWS.index(row) for word, row in _ROW_OF.items()}
"""The place of each word in `_ROWS`. Words are counted by their row, which has their lists and languages."""


_NAMED_LANGUAGES = frozenset({Language.GERMAN, Language.FRENCH, Language.SPANISH})


class LanguageEvidence(StrEnum):
    """Whether the words of a text show that it is in English, Hindi or Hinglish."""

    READ = "read"
    UNREAD = "unread"
    """The words show another language."""
    NONE = "none"
    """The words show no language: a name, a number, a word that two languages share."""


class _WordCounts(NamedTuple):
    """The number of words of a text in each language; a word of several languages counts for each."""

    words: int
    hindi: int
    either: int
    english: int
    other_only: int
    """Words of another language that neither English nor Hinglish has."""
    foreign: int
    """The number of words of the other language that has most of them."""
    foreign_language: Language
    """That language, if it is German, French or Spanish and no other has as many of these words."""

    @property
    def own(self) -> int:
        return max(self.english, self.hindi + (self.either if self.hindi else 0))

    @property
    def is_foreign(self) -> bool:
        min_words = min(2, self.words)
        if self.other_only > max(self.english, self.hindi) and self.other_only >= min_words:
            return True
        return self.other_only > 0 and self.foreign > self.own and self.foreign >= min_words


def identify_language(text: str) -> Language:
    """Return the language of a text; `Language.ENGLISH` without letters or known words.

    Citations in square brackets, addresses and code are not counted.
    """
    reading = _read_language(text)
    return reading if isinstance(reading, Language) else _detect_latin_language(reading)


def find_language_evidence(text: str) -> LanguageEvidence:
    """Return whether a text is in a language that the rules read; `identify_language` returns English in doubt."""
    reading = _read_language(text)
    if isinstance(reading, Language):
        return LanguageEvidence.READ if reading.is_english_or_hindi else LanguageEvidence.UNREAD
    if reading.is_foreign:
        return LanguageEvidence.UNREAD
    return LanguageEvidence.READ if reading.own > reading.foreign else LanguageEvidence.NONE


@lru_cache(maxsize=64)  # the same user questions recur, and several callers ask about one reply
def _read_language(text: str) -> Language | _WordCounts:
    """Return the language that the script of a text shows. For Latin text, return its word counts."""
    plain = _remove_noise(text)
    by_script = _detect_by_script(plain)
    return _count_words(plain.lower()) if by_script is None else by_script


@lru_cache(maxsize=64)
def find_spoken_language(text: str) -> str:
    """Return the language with most function words, without English and Hindi. Empty if there are none."""
    words = _WORD.findall(_remove_noise(text).lower())
    codes = Counter(code for word in words for code in _CODES_OF.get(word, ()))
    return max(codes, key=lambda code: codes[code]) if codes else ""


def name_language(text: str) -> str:
    """Return the name of the language of a text: ``German``; ``another language`` for one without word lists."""
    language = identify_language(text)
    if language is not Language.OTHER:
        return LANGUAGE_NAMES[language]
    spoken = "" if _detect_by_script(_remove_noise(text)) is Language.OTHER else find_spoken_language(text)
    return LANGUAGE_NAMES.get(spoken, "another language")


def find_case_language(question: str, gold: str) -> Language:
    """Return the language of a case from its question, and if that shows none, also from its gold."""
    if (
        find_language_evidence(question) is not LanguageEvidence.READ
        and find_language_evidence(f"{question}\n{gold}") is LanguageEvidence.UNREAD
    ):
        return identify_language(f"{question}\n{gold}")
    return identify_language(question)


def _remove_noise(text: str) -> str:
    return _NOISE.sub(" ", text[:_MAX_READ_LENGTH])


def _detect_by_script(plain: str) -> Language | None:
    """Return the language that the letters of a text show. ``None`` for Latin letters."""
    if plain.isascii():
        return None
    hindi = len(_DEVANAGARI.findall(plain))
    if hindi and hindi >= HINDI_SHARE * (hindi + len(_LATIN.findall(plain))):
        return Language.HINDI
    if _LETTERS.search("".join(_UNUSUAL.findall(plain))) and _is_foreign(plain):
        return Language.OTHER
    return None


def _is_foreign(text: str) -> bool:
    """Whether most letters are outside the Latin and the Devanagari script."""
    latin, letters = (sum(map(len, runs.findall(text))) for runs in (_LATIN, _LETTERS))
    return latin < letters / 2


def _count_words(lowered: str) -> _WordCounts:
    words = _WORD.findall(lowered)
    counts = Counter(map(_ROW_NUMBERS.get, words))
    rows = [(*_ROWS[number], count) for number, count in counts.items() if number is not None]
    hindi, either, english, other = (sum(count for lists, _, count in rows if bit & lists) for bit in _BITS)
    if _ACCENTED.search(lowered):
        other += sum(_ACCENTED.search(word) is not None for word in words)
    codes = Counter[str]()
    for _, row_codes, count in rows:
        codes.update(dict.fromkeys(row_codes, count))
    foreign = max(codes.values(), default=0)
    spoken = [code for code, count in codes.items() if count == foreign]
    is_named = len(spoken) == 1 and spoken[0] in _NAMED_LANGUAGES
    named = Language(spoken[0]) if is_named else Language.OTHER
    return _WordCounts(len(words), hindi, either, english, other, foreign, named)


def _detect_latin_language(counts: _WordCounts) -> Language:
    if counts.is_foreign:
        return counts.foreign_language
    is_hinglish = _is_hinglish(counts.words, counts.hindi, counts.either, counts.english)
    return Language.HINGLISH if is_hinglish else Language.ENGLISH


def _is_hinglish(words: int, hindi: int, either: int, english: int) -> bool:
    if not hindi:
        return False
    hindi_weight = hindi + (either / 2 if hindi >= english / 2 else 0)
    return hindi_weight >= _HINGLISH_SHARE * words and hindi * 2 >= english - either
