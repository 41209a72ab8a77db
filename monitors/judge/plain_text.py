"""Text as a reader would see it, for a judge: nothing invisible, nothing turned round, no borrowed letters.

Meaning is left alone: Devanagari and its joiners, emoji, superscripts, fractions and every line stay. What was
changed is told by flags, because an answer that hides things from people is worth knowing of.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from monitors.judge.lookalikes import BIDIRECTIONAL, INVISIBLE, LOOKALIKES, TAGS


class HostileFlag(StrEnum):
    """Something about a text that no honest answer needs."""

    INVISIBLE = "invisible"
    BIDIRECTIONAL = "bidirectional"
    TAG_CHARACTERS = "tag_characters"
    CONTROL = "control"
    STYLED_LETTERS = "styled_letters"
    HOMOGLYPHS = "homoglyphs"
    FORGED_FENCE = "forged_fence"
    CHAT_MARKUP = "chat_markup"
    CUT = "cut"


class PlainText(NamedTuple):
    """A text without tricks, and which tricks were found."""

    text: str
    flags: frozenset[HostileFlag]


_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_TAGS = re.compile(f"[{TAGS}]")
_BIDIRECTIONAL = re.compile(f"[{BIDIRECTIONAL}]")
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
_GREEK = "Greek"
_ALPHABETS = ((_GREEK, "\u0370", "\u03ff"), ("Cyrillic", "\u0400", "\u052f"), ("Armenian", "\u0530", "\u058f"))
_TO_LATIN = str.maketrans(LOOKALIKES)
_WORD = re.compile(r"[^\W\d_]+")
_FOLDED_FORMS = ("<font>", "<wide>", "<circle>", "<square>")
"""Kinds of compatibility letters that are read as the letter itself; superscripts, fractions and ligatures stay."""


def plain_text(text: str) -> PlainText:
    """Normalise ``text``; linear in its length, and doing it twice changes nothing more."""
    flags: set[HostileFlag] = set()
    text = _LINE_ENDS.sub("\n", text)
    if text.isascii() and _CONTROL.search(text) is None:
        return PlainText(text, frozenset())
    for pattern, flag, instead in (
        (_CONTROL, HostileFlag.CONTROL, "\ufffd"),
        (_TAGS, HostileFlag.TAG_CHARACTERS, ""),
        (_BIDIRECTIONAL, HostileFlag.BIDIRECTIONAL, ""),
    ):
        text, count = pattern.subn(instead, text)
        if count:
            flags.add(flag)
    text = _folded_styles(text, flags)
    text = _without_invisible(text, flags)
    text = _without_lookalikes(text, flags)
    return PlainText(text, frozenset(flags))


def _folded_styles(text: str, flags: set[HostileFlag]) -> str:
    folded = {character: letter for character in set(text) if (letter := _unstyled(character)) != character}
    if not folded:
        return text
    if any(letter.isascii() and letter.isalnum() for letter in folded.values()):
        flags.add(HostileFlag.STYLED_LETTERS)
    return text.translate({ord(character): letter for character, letter in folded.items()})


@lru_cache(maxsize=4096)
def _unstyled(character: str) -> str:
    if character.isascii() or not unicodedata.decomposition(character).startswith(_FOLDED_FORMS):
        return character
    return unicodedata.normalize("NFKC", character)


def _without_invisible(text: str, flags: set[HostileFlag]) -> str:
    """Drop what nobody sees, but for a joiner inside a script that needs it and a selector after a symbol."""
    if INVISIBLE.isdisjoint(text):
        return text
    kept: list[str] = []
    before = ""
    for place, character in enumerate(text):
        if character in INVISIBLE and not _is_needed(character, before, text[place + 1 : place + 2]):
            flags.add(HostileFlag.INVISIBLE)
            continue
        kept.append(character)
        before = character
    return "".join(kept)


def _is_needed(character: str, before: str, after: str) -> bool:
    if not before:
        return False
    symbol = unicodedata.category(before) in {"So", "Sk", "Sm"}
    if character in _SELECTORS:
        return symbol or after == _KEYCAP
    if character in _JOINERS:
        return symbol or before == "\ufe0f" or "\u0600" <= before <= "\u06ff" or "\u0900" <= before <= "\u0dff"
    return False


def _without_lookalikes(text: str, flags: set[HostileFlag]) -> str:
    """Latin letters for those that pose as such.

    That is so in a word that has Latin letters too, and in a word made of nothing else when its alphabet has no
    honest letter in the whole text. A single Greek letter is a symbol.
    """
    characters = set(text)
    if LOOKALIKES.keys().isdisjoint(characters):
        return text
    honest = {_alphabet(c) for c in characters if c not in LOOKALIKES and c.isalpha()}

    def latin(match: re.Match[str]) -> str:
        word = match[0]
        posing = {_alphabet(c) for c in word if c in LOOKALIKES}
        mixed = any(c.isascii() for c in word)
        alone = len(word) == 1 and posing == {_GREEK}
        if not posing or alone or not (mixed or posing.isdisjoint(honest)):
            return word
        flags.add(HostileFlag.HOMOGLYPHS)
        return word.translate(_TO_LATIN)

    return _WORD.sub(latin, text)


def _alphabet(letter: str) -> str:
    for name, first, last in _ALPHABETS:
        if first <= letter <= last:
            return name
    return ""
