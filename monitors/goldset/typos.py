"""Slips of the finger in words that carry no figure, unit or name: the question stays what it was."""

from __future__ import annotations

import re

from monitors.goldset.pick import Pick
from monitors.goldset.wordings import is_kept, wordings
from monitors.records.base import Language

SHORTEST = 5
"""Letters: in a shorter word a slip may make another word."""
ONE_IN_CHARACTERS = 60
"""Of a question of so many characters one word is mistyped, of a longer one two."""

_LATIN = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])")
"""All in small letters and alone: no name, no abbreviation, no part of "34-year-old"."""
_DEVANAGARI = re.compile(r"(?<![\w\u0900-\u097f-])[\u0900-\u0963\u0970-\u097f]+(?![\w\u0900-\u097f-])")
_SLIPS = {"ि": "ी", "ी": "ि", "ु": "ू", "ू": "ु", "ँ": "ं", "ण": "न", "श": "ष"}
"""What people mix up in Devanagari: short and long vowel signs, nasal marks, sibilants."""
_TRAILING_DIGIT = re.compile(r"[\d०-९][\s-]*$")


def mistyped(question: str, language: Language, pick: Pick, names: frozenset[str]) -> str | None:
    """The question with a slip or two; ``None`` where no word may be touched. ``names`` are in small letters."""
    words = [
        match
        for match in _words(question, language)
        if match[0] not in names and _may_slip(question, match, language)
    ]
    if not words:
        return None
    count = 1 if len(question) <= ONE_IN_CHARACTERS else 2
    chosen = sorted(pick.mixed(words)[:count], key=lambda match: -match.start())
    for match in chosen:
        slipped = _devanagari_slip(match[0], pick) if language is Language.HINDI else _latin_slip(match[0], pick)
        question = f"{question[: match.start()]}{slipped}{question[match.end() :]}"
    return question


def _words(question: str, language: Language) -> list[re.Match[str]]:
    pattern = _DEVANAGARI if language is Language.HINDI else _LATIN
    return list(pattern.finditer(question))


def _may_slip(question: str, match: re.Match[str], language: Language) -> bool:
    """Whether the word carries no meaning that a slip could change; what stands behind a digit is a unit."""
    word = match[0]
    behind_digit = _TRAILING_DIGIT.search(question[: match.start()])
    if behind_digit or is_kept(word, language.value):
        return False
    if language is Language.HINDI:
        return word in wordings().slipping_hi and any(letter in _SLIPS for letter in word[1:])
    return len(word) >= SHORTEST


def _latin_slip(word: str, pick: Pick) -> str:
    """Two neighbours swapped, a letter left out, a letter doubled; first and last letter stay."""
    swaps = [at for at in range(1, len(word) - 2) if word[at] != word[at + 1]]
    at = pick.one(range(1, len(word) - 1))
    match pick.below(3):
        case 0 if swaps:
            at = pick.one(swaps)
            return f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}"
        case 1:
            return f"{word[:at]}{word[at + 1 :]}"
        case _:
            return f"{word[:at]}{word[at]}{word[at:]}"


def _devanagari_slip(word: str, pick: Pick) -> str:
    places = [at for at, letter in enumerate(word) if at and letter in _SLIPS]
    at = pick.one(places)
    return f"{word[:at]}{_SLIPS[word[at]]}{word[at + 1 :]}"
