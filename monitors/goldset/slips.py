"""The same question but for slips of the finger: word by word, where common letters alone say too little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from monitors.goldset.overlap import alike_pairs, folded, grams

WORTH_A_LOOK: Final = 0.35
"""Overlap from which two questions are compared word by word: two slips in a short question leave about 0.5."""

SHORTEST: Final = 3
"""Letters below which a word tells two questions apart by accident only: "is", "of", "me"."""


def alike_but_for_slips(questions: Sequence[str]) -> Iterator[tuple[int, int]]:
    """All pairs of questions of which every word of the one is a word of the other, or one slip away from it."""
    words = [Counter(folded(question).replace("-", " ").split()) for question in questions]
    for one, other, _ in alike_pairs([grams(question) for question in questions], WORTH_A_LOOK):
        if _same_words(words[one] - words[other], words[other] - words[one]):
            yield one, other


def _same_words(own: Counter[str], others: Counter[str]) -> bool:
    """Whether the words that differ are each other's misspellings, but for small ones."""
    left = [word for word in others.elements() if len(word) >= SHORTEST]
    for word in own.elements():
        if len(word) < SHORTEST:
            continue
        twin = next((other for other in left if is_one_slip(word, other)), None)
        if twin is None:
            return False
        left.remove(twin)
    return not left


def is_one_slip(word: str, other: str) -> bool:
    """One letter left out, doubled, put in, exchanged for another, or two neighbours swapped; not the first one.

    People hardly ever miss the first letter, and it tells "maternity" from "paternity". Figures never slip.
    """
    if word[:1] != other[:1] or any(letter.isdigit() for letter in word + other):
        return False
    short, long = sorted((word, other), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((at for at in range(len(short)) if short[at] != long[at]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1]
    return short[at + 1 :] == long[at + 1 :] or (swapped and short[at + 2 :] == long[at + 2 :])
