"""Which language a text is in: English, Hindi, Hinglish (Hindi in Latin letters, mixed with English), or another.

By script first, then by small words. A library for a hundred languages knows no Hinglish; a table of function words
does, and reads a thousand characters in a twentieth of a millisecond.
"""

from __future__ import annotations

import re

from monitors.facts.language_words import ENGLISH, HINGLISH, HINGLISH_OR_ENGLISH, OTHER
from monitors.records.base import Language

_DEVANAGARI = re.compile(r"[\u0900-\u0963\u0966-\u097f]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_FOREIGN = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u1e00-\u1eff\u0900-\u097f]")
_WORD = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]+(?:'[a-z]+)?")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
# What is not the writer's language: addresses, citations, code.
_NOISE = re.compile(r"\[[^\[\]\n]{0,200}\]|https?://\S{1,300}|`[^`\n]{0,200}`")

HINDI_SHARE = 0.25
"""Share of words in Devanagari from which a text is Hindi: names of policies and medical words stay Latin."""
_READ = 3_000
"""Characters read: more would not change the answer, and a hostile text of megabytes costs no more."""
_HINGLISH_SHARE = 0.12
"""Share of Hindi words among all words from which Latin text is Hinglish: one in eight."""

_OTHER = {word: code for code, words in OTHER.items() for word in words.split()}
_OTHER_ONLY = (
    frozenset(_OTHER)
    - ENGLISH
    - HINGLISH
    - HINGLISH_OR_ENGLISH
    - {"a", "o", "i", "is", "in", "no", "he", "die", "war"}
)


def identify(text: str) -> Language:
    """The language of a text. Without letters, or with nothing that tells, it is `Language.ENGLISH`.

    Citations in square brackets, addresses and code are not counted.
    """
    plain = _NOISE.sub(" ", text[:_READ])
    if plain.isascii():
        return _latin_language(plain.lower())
    hindi = len(_DEVANAGARI.findall(plain))
    if hindi and hindi >= HINDI_SHARE * (hindi + len(_LATIN.findall(plain))):
        return Language.HINDI
    if _FOREIGN.search(plain) and _is_foreign(plain):
        return Language.OTHER
    return _latin_language(plain.lower())


def _is_foreign(text: str) -> bool:
    """Whether most letters are of neither the Latin nor the Devanagari script."""
    latin, letters = (sum(map(len, runs.findall(text))) for runs in (_LATIN, _LETTERS))
    return latin < letters / 2


def _latin_language(lowered: str) -> Language:
    words = _WORD.findall(lowered)
    hindi, either, english, other = (
        sum(map(known.__contains__, words)) for known in (HINGLISH, HINGLISH_OR_ENGLISH, ENGLISH, _OTHER_ONLY)
    )
    if _ACCENTED.search(lowered):
        other += sum(_ACCENTED.search(word) is not None for word in words)
    if other > max(english, hindi) and other >= min(2, len(words)):
        return Language.OTHER
    return Language.HINGLISH if _is_hinglish(len(words), hindi, either, english) else Language.ENGLISH


def _is_hinglish(words: int, hindi: int, either: int, english: int) -> bool:
    if not hindi:
        return False
    said = hindi + (either / 2 if hindi >= english / 2 else 0)
    return said >= _HINGLISH_SHARE * words and hindi * 2 >= english - either
