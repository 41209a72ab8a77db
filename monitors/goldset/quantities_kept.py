"""Do two texts state the same quantities? For golds held against clauses, and for translations."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from monitors.facts.fact import FactKind
from monitors.facts.reading import Reading
from monitors.facts.scan import scan


class Stated(NamedTuple):
    """A quantity, however it was written. A duration is its months and days: two years are 24 months."""

    kind: FactKind
    value: Decimal
    unit: str
    days: Decimal = Decimal(0)
    date: str = ""


def stated(text: str) -> dict[Stated, str]:
    """The quantities of a text, each with the words that state it first.

    Left out are ordinals, digits that belong to a name ("H1N1"), and "one" in words, which Hindi uses for "a".
    """
    scanned = scan(text)
    found: dict[Stated, str] = {}
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
    """What a translation lost and what it added, in words; empty when both state the same quantities."""
    lost = (f"{words} is lost" for words in missing_from(original, translation))
    added = (f"{words} is added" for words in missing_from(translation, original))
    return (*lost, *added)


def _key(reading: Reading) -> Stated:
    if reading.kind is FactKind.DURATION:
        return Stated(reading.kind, reading.months, "", days=reading.days)
    return Stated(reading.kind, reading.value, reading.unit or "", date=reading.date)


def _is_an_article(reading: Reading) -> bool:
    return reading.kind is FactKind.NUMBER and reading.worded and reading.value == 1
