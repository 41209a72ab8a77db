"""How alike two texts are: the share of their character n-grams that they have in common.

Near-duplicates are found without comparing all pairs. Of two sets whose Jaccard index is at least ``t``, each has
at least one common element among its rarest ``n - ceil(t * n) + 1``: the prefix filter of Chaudhuri, Ganti and
Kaushik, "A primitive operator for similarity joins in data cleaning" (2006).

Three stricter comparisons stand beside it. The same question but for typos is decided word by word, where common
letters alone say too little. A quote is found in its document up to spacing, hyphens and Unicode spellings, never
up to letters. Golds and clauses, and texts and their translations, must state the same quantities.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.locales import PLAIN, Locale
from monitors.facts.quantities.scan import scan
from monitors.facts.text import normalise

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


WORTH_A_LOOK: Final = 0.35
"""Overlap from which two questions are compared word by word: two slips in a short question leave about 0.5."""

SHORTEST: Final = 3
"""Letters below which a word distinguishes two questions by accident only: "is", "of", "me"."""


def alike_but_for_slips(questions: Sequence[str]) -> Iterator[tuple[int, int]]:
    """All pairs of questions in which every word of the one is a word of the other, or one typo away from it."""
    words = [Counter(folded(question).replace("-", " ").split()) for question in questions]
    for one, other, _ in alike_pairs([grams(question) for question in questions], WORTH_A_LOOK):
        if _same_words(words[one] - words[other], words[other] - words[one]):
            yield one, other


def _same_words(own: Counter[str], others: Counter[str]) -> bool:
    """Whether the words that differ are each other's misspellings, small words aside."""
    left = [word for word in others.elements() if len(word) >= SHORTEST]
    for word in own.elements():
        if len(word) < SHORTEST:
            continue
        mutant = next((other for other in left if is_one_slip(word, other)), None)
        if mutant is None:
            return False
        left.remove(mutant)
    return not left


def is_one_slip(word: str, other: str) -> bool:
    """One letter left out, doubled, put in, exchanged for another, or two neighbours swapped; not the first one.

    People hardly ever miss the first letter, and it distinguishes "maternity" from "paternity". Figures have no
    typos.
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


QUOTE_MIN_WORDS: Final = 3
"""A quote of one or two words stands in every document and shows nothing."""

_DASHES: Final = str.maketrans({"\u2013": "-", "\u2014": "-", "\u2015": "-"})
_QUOTES: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"'})
_INSIDE_A_WORD: Final = re.compile(r"(?<=[^\W\d_])-[ ]?(?=[^\W\d_])")
"""A hyphen between letters, also one at the end of a line: "hospitali-⏎sation" is one word, "pre-existing" another
spelling of "preexisting". Between digits a hyphen stays: it is a range."""


class FoldedDocument(NamedTuple):
    """A text to find quotes in. ``places[i]`` is where folded character ``i`` stands in the text as given."""

    text: str
    places: tuple[int, ...]


@lru_cache(maxsize=8)
def folded_document(document: str) -> FoldedDocument:
    """Fold a text, linear in its length: runs of white space become one space."""
    plain = normalise(document)
    text = plain.text.translate(_DASHES).translate(_QUOTES)
    spots = [at for at in range(len(text)) if not (text[at].isspace() and (at == 0 or text[at - 1].isspace()))]
    spaced = "".join(" " if text[at].isspace() else text[at] for at in spots)
    gone = {at for match in _INSIDE_A_WORD.finditer(spaced) for at in range(*match.span())}
    left = [at for at in range(len(spaced)) if at not in gone]
    where = plain.places
    places = tuple(spots[at] if where is None else where[spots[at]] for at in left)
    return FoldedDocument("".join(spaced[at] for at in left), places)


def find_quote(quote: str, document: str) -> tuple[int, int] | None:
    """The span of a quote in ``document`` as given (code points, end exclusive); ``None`` where it does not stand.

    It must stand there as whole words, letter by letter. A quote of fewer than three words is found nowhere.
    """
    wanted = folded_document(quote).text.strip()
    if len(wanted.split()) < QUOTE_MIN_WORDS:
        return None
    here = folded_document(document)
    at = here.text.find(wanted)
    while at >= 0:
        after = at + len(wanted)
        if not (_joined(here.text, at) or _joined(here.text, after)):
            return here.places[at], here.places[after - 1] + 1
        at = here.text.find(wanted, at + 1)
    return None


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of ``at`` belong to one word or number."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


class StatedQuantity(NamedTuple):
    """A quantity, however it was written. A duration is its months and days: two years are 24 months."""

    kind: FactKind
    value: Decimal
    unit: str
    days: Decimal = Decimal(0)
    date: str = ""


def stated(text: str, locale: Locale = PLAIN) -> dict[StatedQuantity, str]:
    """The quantities of a text, each with the words that state it first.

    Left out are ordinals, digits that belong to a name ("H1N1"), and "one" in words, which Hindi uses for "a".
    """
    scanned = scan(text, locale=locale)
    found: dict[StatedQuantity, str] = {}
    for reading in scanned.readings:
        if reading.attached or reading.ordinal or _is_an_article(reading):
            continue
        start, end = scanned.normalised.original_span(reading.start, reading.end)
        found.setdefault(_key(reading), text[start:end])
    return found


def missing_from(wanted: str, text: str) -> tuple[str, ...]:
    """Quantities of ``wanted``, in its words, that ``text`` does not state."""
    there = stated(text)
    return tuple(words for quantity, words in stated(wanted).items() if quantity not in there)


def differences(original: str, translation: str) -> tuple[str, ...]:
    """What a translation left out and what it added, in words; empty when both state the same quantities."""
    dropped = (f"{words} is lost" for words in missing_from(original, translation))
    added = (f"{words} is added" for words in missing_from(translation, original))
    return (*dropped, *added)


def _key(reading: QuantityReading) -> StatedQuantity:
    if reading.kind is FactKind.DURATION:
        return StatedQuantity(reading.kind, reading.months, "", days=reading.days)
    return StatedQuantity(reading.kind, reading.value, reading.unit or "", date=reading.date)


def _is_an_article(reading: QuantityReading) -> bool:
    return reading.kind is FactKind.NUMBER and reading.worded and reading.value == 1
