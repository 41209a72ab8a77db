"""How alike two texts are: the share of their character n-grams that they have in common.

Near-duplicates are found without comparing all pairs. Of two sets whose Jaccard index is at least ``t``, each has
at least one common element among its rarest ``n - ceil(t * n) + 1``: the prefix filter of Chaudhuri, Ganti and
Kaushik, "A primitive operator for similarity joins in data cleaning" (2006).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from monitors.facts.normalise import normalise

GRAM = 4
"""Characters of an n-gram: long enough that two questions about two things share few, short enough for a typo."""

_KEPT = str.maketrans(dict.fromkeys("?!.,;:।\"'`*_()[]", " "))


def folded(text: str) -> str:
    """Letter case, punctuation, spacing and invisible characters aside."""
    return " ".join(normalise(text).text.lower().translate(_KEPT).split())


def grams(text: str) -> frozenset[str]:
    """The character n-grams of a folded text, with a space at either end; a short text is one gram."""
    padded = f" {folded(text)} "
    return frozenset(padded[at : at + GRAM] for at in range(max(1, len(padded) - GRAM + 1)))


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """The Jaccard index, from 0 (nothing in common) to 1 (the same)."""
    common = len(first & second)
    return common / (len(first) + len(second) - common) if common else 0.0


def alike_pairs(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int, float]]:
    """All pairs ``(i, j, overlap)`` with i < j whose overlap is at least ``threshold`` (above 0)."""
    rarity = Counter(gram for one in sets for gram in one)
    seen: dict[str, list[int]] = {}
    for at, one in enumerate(sets):
        head = _rarest(one, rarity, threshold)
        for other in sorted({other for gram in head for other in seen.get(gram, ())}):
            found = overlap(sets[other], one)
            if found >= threshold:
                yield other, at, found
        for gram in head:
            seen.setdefault(gram, []).append(at)


def _rarest(one: frozenset[str], rarity: Counter[str], threshold: float) -> list[str]:
    ordered = sorted(one, key=lambda gram: (rarity[gram], gram))
    return ordered[: len(ordered) - math.ceil(threshold * len(ordered)) + 1]
