"""Compare two texts by their share of common character n-grams.

Near-duplicates are found without a comparison of all pairs. If two sets have a Jaccard index of at least ``t``,
they share at least one of the rarest ``n - ceil(t * n) + 1`` elements of each set, where ``n`` is the size of that
set. This is the prefix filter of Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins in data
cleaning" (2006).

The module has three stricter comparisons:

- Questions that may differ only by typos are compared word by word, because different questions can share most of
  their letters.
- A quote must have the same letters as the quoted part of the document. Spacing, hyphens and Unicode spellings may
  differ.
- A gold and its clause, and a text and its translation, must state the same quantities.
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

GRAM_LENGTH = 4
"""Length of an n-gram in characters. Different questions share few n-grams, and a typo changes only a few."""

_PUNCTUATION = str.maketrans(dict.fromkeys("?!.,;:।\"'`*_()[]", " "))


def fold_case_and_punctuation(text: str) -> str:
    """Return a text in one letter case, without punctuation, extra spaces and invisible characters."""
    return " ".join(normalise(text).text.lower().translate(_PUNCTUATION).split())


def build_character_ngrams(text: str) -> frozenset[str]:
    """Return the character n-grams of the folded text. One space is added at both ends of the text."""
    padded = f" {fold_case_and_punctuation(text)} "
    return frozenset(padded[at : at + GRAM_LENGTH] for at in range(max(1, len(padded) - GRAM_LENGTH + 1)))


def compute_jaccard_index(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the Jaccard index of two sets, from 0 (nothing in common) to 1 (equal)."""
    common = len(first & second)
    return common / (len(first) + len(second) - common) if common else 0.0


def find_alike_pairs(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Yield ``(i, j, overlap)`` for all sets i < j whose overlap (Jaccard index) is at least ``threshold``.

    ``threshold`` must be above 0.
    """
    rarity = Counter(gram for gram_set in sets for gram in gram_set)
    sets_by_gram: dict[str, list[int]] = {}
    for at, gram_set in enumerate(sets):
        head = _select_rarest_grams(gram_set, rarity, threshold)
        for other in sorted({other for gram in head for other in sets_by_gram.get(gram, ())}):
            score = compute_jaccard_index(sets[other], gram_set)
            if score >= threshold:
                yield other, at, score
        for gram in head:
            sets_by_gram.setdefault(gram, []).append(at)


def _select_rarest_grams(gram_set: frozenset[str], rarity: Counter[str], threshold: float) -> list[str]:
    ordered = sorted(gram_set, key=lambda gram: (rarity[gram], gram))
    return ordered[: len(ordered) - math.ceil(threshold * len(ordered)) + 1]


MIN_COMPARED_OVERLAP: Final = 0.35
"""Two questions are compared word by word if their n-grams have at least this overlap.

For example, a short question and its copy with two typos have an overlap of 0.5.
"""

MIN_WORD_LENGTH: Final = 3
"""Only words with at least this many letters count as a difference between two questions.

Shorter words such as "is", "of" and "me" are ignored.
"""


def find_typo_pairs(questions: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the indexes of each pair of questions whose words are equal or differ by at most one typo per word."""
    words = [Counter(fold_case_and_punctuation(question).replace("-", " ").split()) for question in questions]
    for first, second, _ in find_alike_pairs(
        [build_character_ngrams(question) for question in questions], MIN_COMPARED_OVERLAP
    ):
        if _has_same_words_except_typos(words[first] - words[second], words[second] - words[first]):
            yield first, second


def _has_same_words_except_typos(own: Counter[str], others: Counter[str]) -> bool:
    """Return whether two questions differ only in typos. Words shorter than `MIN_WORD_LENGTH` are ignored."""
    left = [word for word in others.elements() if len(word) >= MIN_WORD_LENGTH]
    for word in own.elements():
        if len(word) < MIN_WORD_LENGTH:
            continue
        mutant = next((other for other in left if is_one_typo_apart(word, other)), None)
        if mutant is None:
            return False
        left.remove(mutant)
    return not left


def is_one_typo_apart(word: str, other: str) -> bool:
    """Return whether two words differ by one typo: a letter is missing, added or wrong, or two letters are swapped.

    The first letters must be equal, because people hardly ever mistype the first letter. Therefore, "maternity" and
    "paternity" are different words. Words that contain a digit are never one typo apart.
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
"""Only quotes with at least this many words are searched for. A shorter quote could be found in any document."""

_DASHES: Final = str.maketrans({"\u2013": "-", "\u2014": "-", "\u2015": "-"})
_QUOTES: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"'})
_INSIDE_A_WORD: Final = re.compile(r"(?<=[^\W\d_])-[ ]?(?=[^\W\d_])")
"""A pattern for a hyphen between letters. It is removed: "pre-existing" is another spelling of "preexisting".

A hyphen at the end of a line is removed too: "hospitali-⏎sation" is one word. A hyphen between digits is not
removed, because it shows a range.
"""


class FoldedDocument(NamedTuple):
    """A folded text that is searched for quotes. ``places[i]`` is the original position of character ``i``."""

    text: str
    places: tuple[int, ...]


@lru_cache(maxsize=8)
def fold_document(document: str) -> FoldedDocument:
    """Fold a text. Several white-space characters become one space. The function takes linear time."""
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
    """Return the span of a quote in ``document`` (code points, end exclusive), or ``None``.

    The quote must match whole words, letter by letter. A quote of fewer than three words is never found.
    """
    wanted = fold_document(quote).text.strip()
    if len(wanted.split()) < QUOTE_MIN_WORDS:
        return None
    here = fold_document(document)
    at = here.text.find(wanted)
    while at >= 0:
        after = at + len(wanted)
        if not (_is_inside_word(here.text, at) or _is_inside_word(here.text, after)):
            return here.places[at], here.places[after - 1] + 1
        at = here.text.find(wanted, at + 1)
    return None


def _is_inside_word(text: str, at: int) -> bool:
    """Return whether the characters on both sides of ``at`` belong to one word or number."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


class StatedQuantity(NamedTuple):
    """A quantity, in a form that does not depend on its notation.

    A duration is stored as months and days: two years are 24 months.
    """

    kind: FactKind
    value: Decimal
    unit: str
    days: Decimal = Decimal(0)
    date: str = ""


def collect_quantities(text: str, locale: Locale = PLAIN) -> dict[StatedQuantity, str]:
    """Return the quantities of a text. Each quantity is mapped to the words of its first occurrence.

    Ordinals and digits in names ("H1N1") are skipped. The word "one" is skipped too, because Hindi uses it for "a".
    """
    scanned = scan(text, locale=locale)
    quantities: dict[StatedQuantity, str] = {}
    for reading in scanned.readings:
        if reading.attached or reading.ordinal or _is_number_word_one(reading):
            continue
        start, end = scanned.normalised.find_original_span(reading.start, reading.end)
        quantities.setdefault(_build_quantity_key(reading), text[start:end])
    return quantities


def find_missing_quantities(wanted: str, text: str) -> tuple[str, ...]:
    """Return the quantities that are in ``wanted`` but not in ``text``, as they are written in ``wanted``."""
    there = collect_quantities(text)
    return tuple(words for quantity, words in collect_quantities(wanted).items() if quantity not in there)


def list_quantity_differences(original: str, translation: str) -> tuple[str, ...]:
    """Return a text for each quantity that a translation lost or added, such as "3 days is lost".

    The result is empty if the original and the translation have the same quantities.
    """
    dropped = (f"{words} is lost" for words in find_missing_quantities(original, translation))
    added = (f"{words} is added" for words in find_missing_quantities(translation, original))
    return (*dropped, *added)


def _build_quantity_key(reading: QuantityReading) -> StatedQuantity:
    if reading.kind is FactKind.DURATION:
        return StatedQuantity(reading.kind, reading.months, "", days=reading.days)
    return StatedQuantity(reading.kind, reading.value, reading.unit or "", date=reading.date)


def _is_number_word_one(reading: QuantityReading) -> bool:
    return reading.kind is FactKind.NUMBER and reading.worded and reading.value == 1
