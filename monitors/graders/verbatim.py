"""Find a gold that a reply repeats word for word. The search works in any language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from monitors.facts.quantities.other_languages import DENIALS
from monitors.facts.text import split_into_word_keys, to_word_key

MIN_TOKENS: Final = 3
"""Only golds with at least this many words are searched for. A shorter gold ("24", "Nein") may occur by chance."""

# A number with its separators is one word. Signs for currencies and percent must match too, but are not counted.
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’\u0900-\u0963][^\W\d_]*)*|[%₹$€£¥]")
_SENTENCE = re.compile(r"[^.!?;।\n]+(?:[.!?;।](?=\S)[^.!?;।\n]+)*")
_BEFORE, _BEHIND = 3, 3
"""Maximum number of words between the gold and a negation: before the gold, and after the gold."""
_MAX_READ_CHARACTERS = 20_000
_NEGATIONS: Final = DENIALS | split_into_word_keys(
    "cannot isn wasn except excluding nahi nahin नहीं nein weder keinesfalls niemals neither nor"
)


class _Sentence(NamedTuple):
    tokens: tuple[str, ...]
    places: tuple[tuple[int, int], ...]


def find_gold_word_for_word(golds: Sequence[str], reply: str, question: str) -> tuple[int, int] | None:
    """Return the first span in a reply that repeats a gold, in code points. Return ``None`` if there is none.

    Letter case, the form of accents and punctuation are ignored. Golds of fewer than three words, and golds that
    are in the question, are skipped. A gold does not count if a negation is near one of its occurrences.
    """
    wanted = [
        tokens for gold in golds if len(tokens := _list_folded_words(gold)) and _count_words(tokens) >= MIN_TOKENS
    ]
    asked = _list_folded_words(question)
    for tokens in wanted:
        if _find_positions_of_words(asked, tokens):
            continue
        places = [
            place
            for sentence in _tokenise_sentences(reply[:_MAX_READ_CHARACTERS])
            for place in _find_spans_or_negations(sentence, tokens)
        ]
        if places and None not in places:
            return places[0]
    return None


def _find_spans_or_negations(sentence: _Sentence, tokens: tuple[str, ...]) -> list[tuple[int, int] | None]:
    """Return the span of each occurrence of the words in a sentence.

    For an occurrence beside a negation, the result has ``None``.
    """
    places: list[tuple[int, int] | None] = []
    for start in _find_positions_of_words(sentence.tokens, tokens):
        end = start + len(tokens)
        neighbours = (*sentence.tokens[max(0, start - _BEFORE) : start], *sentence.tokens[end : end + _BEHIND])
        denied = any(to_word_key(word) in _NEGATIONS for word in neighbours)
        places.append(None if denied else (sentence.places[start][0], sentence.places[end - 1][1]))
    return places


def _find_positions_of_words(text: tuple[str, ...], tokens: tuple[str, ...]) -> list[int]:
    first, size = tokens[0], len(tokens)
    return [at for at, word in enumerate(text) if word == first and text[at : at + size] == tokens]


def _count_words(tokens: tuple[str, ...]) -> int:
    return sum(word[0].isalnum() for word in tokens)


@lru_cache(maxsize=256)
def _list_folded_words(text: str) -> tuple[str, ...]:
    return tuple(_fold_case_and_form(match[0]) for match in _WORD.finditer(text))


@lru_cache(maxsize=8)
def _tokenise_sentences(text: str) -> tuple[_Sentence, ...]:
    matches = ([*_WORD.finditer(text, *match.span())] for match in _SENTENCE.finditer(text))
    return tuple(
        _Sentence(tuple(_fold_case_and_form(word[0]) for word in tokens), tuple(word.span() for word in tokens))
        for tokens in matches
    )


def _fold_case_and_form(word: str) -> str:
    return word.casefold() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()
