"""Identify a text as English, Hindi, Hinglish (Hindi in Latin letters with English), German, French or Spanish.

The script of the letters decides first, then function words. Libraries for a hundred languages do not support
Hinglish. A table of function words supports it, and takes 0.05 ms for a thousand characters. The word lists are
part of Lookout: the most common function words of each language, in their usual spellings.

Hindi in Latin letters has no fixed spelling. Therefore, the lists contain the variants of chat messages (``nahi``,
``nahin``, ``nhi``). Hindi words that are also English (``me``, ``is``, ``to``, ``par``, ``main``, ``do``) do not
show the language. They are not in the list of Hindi words, but in a separate list or in none.
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
"""Hindi words in Latin letters that are not also English words."""
HINGLISH_OR_ENGLISH = frozenset(_TABLES["hinglish_or_english"].split())
"""Hindi words that are spelled like English words. They count as Hinglish only beside words that are only Hindi."""
ENGLISH = frozenset(_TABLES["english"].split())
"""The most common English words, and some words that are frequent in questions to assistants."""
OTHER: Final[dict[str, str]] = _TABLES["other"]
"""Function words of other languages, by language code."""
LANGUAGE_NAMES: Final[dict[str, str]] = _TABLES["names"]
"""The name of each language as messages show it, keyed by language code."""
_MORE_OTHER: Final[dict[str, str]] = _TABLES["more_other"]

_DEVANAGARI = re.compile(r"[\u0900-\u0963\u0966-\u097f]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_UNUSUAL = re.compile("[^\0-\x7f\u00c0-\u024f\u1e00-\u1eff\u0900-\u097f]+")
"""Characters outside ASCII, Latin and Devanagari: signs, and letters of other scripts."""
_WORD = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]+(?:'[a-z]+)?")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
# Parts that do not show the writer's language: addresses, citations, code.
_NOISE = re.compile(r"\[[^\[\]\n]{0,200}\]|https?://\S{1,300}|`[^`\n]{0,200}`")

HINDI_SHARE = 0.25
"""Minimum share of Devanagari words in a Hindi text.

It is low, because product names are often in Latin letters.
"""
_MAX_READ_LENGTH = 3_000
"""Maximum number of characters that are read. More text would not change the result."""
_HINGLISH_SHARE = 0.12
"""Minimum share of Hindi words in a Hinglish text in Latin letters: about one in eight."""

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
"""For each word, the lists that contain it, as a sum of bits (`_BITS`)."""
_CODES_OF = {
    word: tuple(code for code, lexicon in _LEXICONS.items() if word in lexicon)
    for word in frozenset[str]().union(*_LEXICONS.values())
}
"""For each word, the codes of the languages (except English and Hindi) whose word lists contain it.

"was" is English, but also German.
"""
_ROW_OF = {word: (_LISTS_OF.get(word, 0), _CODES_OF.get(word, ())) for word in _LISTS_OF.keys() | _CODES_OF}
_ROWS = sorted(set(_ROW_OF.values()))
_ROW_NUMBERS = {word: _ROWS.index(row) for word, row in _ROW_OF.items()}
"""For each word, the index of its row in `_ROWS`. A row contains the lists and the language codes of the word."""


_NAMED_LANGUAGES = frozenset({Language.GERMAN, Language.FRENCH, Language.SPANISH})


class LanguageEvidence(StrEnum):
    """What the words of a text show about its language."""

    READ = "read"
    UNREAD = "unread"
    """The words show a language other than English, Hindi and Hinglish."""
    NONE = "none"
    """The words do not show a language. Examples are a name, a number, and a word of two languages."""


class _WordCounts(NamedTuple):
    """The number of words of a text in each language. A word of several languages counts for each of them."""

    words: int
    hindi: int
    either: int
    english: int
    other_only: int
    """The number of words that belong only to other languages, and not to English or Hinglish."""
    foreign: int
    """The number of words in the most frequent language other than English, Hindi and Hinglish."""
    foreign_language: Language
    """The most frequent other language, if it is German, French or Spanish. Otherwise, it is `Language.OTHER`.

    If two other languages are equally frequent, it is also `Language.OTHER`.
    """

    @property
    def max_english_or_hindi(self) -> int:
        return max(self.english, self.hindi + (self.either if self.hindi else 0))

    @property
    def is_foreign(self) -> bool:
        min_words = min(2, self.words)
        if self.other_only > max(self.english, self.hindi) and self.other_only >= min_words:
            return True
        return self.other_only > 0 and self.foreign > self.max_english_or_hindi and self.foreign >= min_words


def identify_language(text: str) -> Language:
    """Return the language of a text, or `Language.ENGLISH` if the text has no letters or no known words.

    Words in citations in square brackets, in addresses and in code are not counted.
    """
    reading = _detect_script_or_count_words(text)
    return reading if isinstance(reading, Language) else _detect_latin_script_language(reading)


def classify_language_evidence(text: str) -> LanguageEvidence:
    """Return what the words of a text show about its language.

    `identify_language` returns English if the words show nothing.
    """
    reading = _detect_script_or_count_words(text)
    if isinstance(reading, Language):
        return LanguageEvidence.READ if reading.is_english_hindi_or_hinglish else LanguageEvidence.UNREAD
    if reading.is_foreign:
        return LanguageEvidence.UNREAD
    return LanguageEvidence.READ if reading.max_english_or_hindi > reading.foreign else LanguageEvidence.NONE


@lru_cache(maxsize=64)  # the same user questions recur, and several callers check the same reply
def _detect_script_or_count_words(text: str) -> Language | _WordCounts:
    """Return the language that the script shows. For Latin script, return the number of words in each language."""
    plain = _remove_citations_links_and_code(text)
    by_script = _detect_by_script(plain)
    return _count_words_by_language(plain.lower()) if by_script is None else by_script


@lru_cache(maxsize=64)
def find_foreign_language_code(text: str) -> str:
    """Return the code of the language, other than English and Hindi, with the most function words in a text.

    The result is empty if the text has no such words.
    """
    words = _WORD.findall(_remove_citations_links_and_code(text).lower())
    codes = Counter(code for word in words for code in _CODES_OF.get(word, ()))
    return max(codes, key=lambda code: codes[code]) if codes else ""


def identify_language_name(text: str) -> str:
    """Return the name of the language of a text, such as ``German``.

    If the language has no word list, return ``another language``.
    """
    language = identify_language(text)
    if language is not Language.OTHER:
        return LANGUAGE_NAMES[language]
    spoken = (
        ""
        if _detect_by_script(_remove_citations_links_and_code(text)) is Language.OTHER
        else find_foreign_language_code(text)
    )
    return LANGUAGE_NAMES.get(spoken, "another language")


def find_case_language(question: str, gold: str) -> Language:
    """Return the language of a case. If the question shows no language, the gold is also read."""
    if (
        classify_language_evidence(question) is not LanguageEvidence.READ
        and classify_language_evidence(f"{question}\n{gold}") is LanguageEvidence.UNREAD
    ):
        return identify_language(f"{question}\n{gold}")
    return identify_language(question)


def _remove_citations_links_and_code(text: str) -> str:
    return _NOISE.sub(" ", text[:_MAX_READ_LENGTH])


def _detect_by_script(plain: str) -> Language | None:
    """Return the language that the letters of a text show. Return ``None`` for Latin letters."""
    if plain.isascii():
        return None
    hindi = len(_DEVANAGARI.findall(plain))
    if hindi and hindi >= HINDI_SHARE * (hindi + len(_LATIN.findall(plain))):
        return Language.HINDI
    if _LETTERS.search("".join(_UNUSUAL.findall(plain))) and _is_mostly_other_script(plain):
        return Language.OTHER
    return None


def _is_mostly_other_script(text: str) -> bool:
    """Return whether most letters are neither Latin nor Devanagari."""
    latin, letters = (sum(map(len, runs.findall(text))) for runs in (_LATIN, _LETTERS))
    return latin < letters / 2


def _count_words_by_language(lowered: str) -> _WordCounts:
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


def _detect_latin_script_language(counts: _WordCounts) -> Language:
    if counts.is_foreign:
        return counts.foreign_language
    is_hinglish = _is_hinglish(counts.words, counts.hindi, counts.either, counts.english)
    return Language.HINGLISH if is_hinglish else Language.ENGLISH


def _is_hinglish(words: int, hindi: int, either: int, english: int) -> bool:
    if not hindi:
        return False
    hindi_weight = hindi + (either / 2 if hindi >= english / 2 else 0)
    return hindi_weight >= _HINGLISH_SHARE * words and hindi * 2 >= english - either
