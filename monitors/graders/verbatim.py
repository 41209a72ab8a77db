"""A reply that states a gold word for word: that is right in any language, also in one whose words are not read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from monitors.facts.quantities.other_languages import DENIALS
from monitors.facts.text import keys_of, word_key

FEWEST_TOKENS: Final = 3
"""Fewest words of a gold that counts: of fewer a reply may hold as many by chance ("24", "Nein")."""

# A number with its separators is one word; a sign for money or a share must stand there too, and counts for none.
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’\u0900-\u0963][^\W\d_]*)*|[%₹$€£¥]")
_SENTENCE = re.compile(r"[^.!?;।\n]+(?:[.!?;।](?=\S)[^.!?;।\n]+)*")
_BEFORE, _BEHIND = 3, 3
"""Words before and behind a gold's among which a negation may be about them."""
_READ = 20_000
_NEGATIONS: Final = DENIALS | keys_of(
    "cannot isn wasn except excluding nahi nahin नहीं nein weder keinesfalls niemals neither nor"
)


class _Sentence(NamedTuple):
    tokens: tuple[str, ...]
    places: tuple[tuple[int, int], ...]


def find_word_for_word(golds: Sequence[str], reply: str, question: str) -> tuple[int, int] | None:
    """Where a reply states one of the golds (code points), up to case, accents' form, punctuation and white space.

    A gold of fewer than three words, and one that the question holds already, is no answer by standing there. A
    negation just before or behind it, in its sentence, that is not the gold's own may take it back.
    """
    wanted = [tokens for gold in golds if len(tokens := _tokens(gold)) and _counted(tokens) >= FEWEST_TOKENS]
    asked = _tokens(question)
    for tokens in wanted:
        if _starts(asked, tokens):
            continue
        found = [place for sentence in _sentences(reply[:_READ]) for place in _stated(sentence, tokens)]
        if found and None not in found:
            return found[0]
    return None


def _stated(sentence: _Sentence, tokens: tuple[str, ...]) -> list[tuple[int, int] | None]:
    """Each place of the words; ``None`` for one that is denied."""
    found: list[tuple[int, int] | None] = []
    for start in _starts(sentence.tokens, tokens):
        end = start + len(tokens)
        around = (*sentence.tokens[max(0, start - _BEFORE) : start], *sentence.tokens[end : end + _BEHIND])
        denied = any(word_key(word) in _NEGATIONS for word in around)
        found.append(None if denied else (sentence.places[start][0], sentence.places[end - 1][1]))
    return found


def _starts(text: tuple[str, ...], tokens: tuple[str, ...]) -> list[int]:
    first, size = tokens[0], len(tokens)
    return [at for at, word in enumerate(text) if word == first and text[at : at + size] == tokens]


def _counted(tokens: tuple[str, ...]) -> int:
    return sum(word[0].isalnum() for word in tokens)


@lru_cache(maxsize=256)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_folded(match[0]) for match in _WORD.finditer(text))


@lru_cache(maxsize=8)
def _sentences(text: str) -> tuple[_Sentence, ...]:
    found = ([*_WORD.finditer(text, *match.span())] for match in _SENTENCE.finditer(text))
    return tuple(
        _Sentence(tuple(_folded(word[0]) for word in tokens), tuple(word.span() for word in tokens))
        for tokens in found
    )


def _folded(word: str) -> str:
    return word.casefold() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()
