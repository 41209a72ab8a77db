"""What a gold text is made of: quantities, or words in which a number is but a part of a name ("Apollo 11")."""

from __future__ import annotations

from functools import lru_cache

from monitors.facts.fact import FactKind
from monitors.facts.normalise import keys_of
from monitors.facts.reading import Reading
from monitors.facts.scan import Scan
from monitors.facts.tokens import NUMERAL, SIGN
from monitors.graders.roles import is_reference
from monitors.graders.scanned import of_substance, scanned_gold

_SMALL_WORDS = keys_of(
    "the a an of in on at to from for and or until till by about around circa approximately early late "
    "mid total only between through during since after before is are was were it has have than more less "
    "up least most c ad bc को में से तक और का के की me mein se tak ka ke ki hai है"
)
_LONGEST_NAME = 8
"""Words; what is longer is a sentence, and a number in it is a quantity."""


def quantities_of(gold: Scan) -> list[Reading]:
    """The quantities that a reply must state: each once, without references to sections, without "first"."""
    stated = [reading for reading in gold.readings if not is_reference(gold.reader, reading)]
    wanted: list[Reading] = []
    seen: set[tuple[object, ...]] = set()
    for reading in of_substance(stated):
        key = (reading.kind, reading.value, reading.unit, reading.months, reading.days, reading.date)
        if key not in seen:
            seen.add(key)
            wanted.append(reading)
    return wanted


@lru_cache(maxsize=256)
def is_measured(text: str) -> bool:
    """Whether a gold text stands or falls with its quantities.

    It does when one has a unit or is a date, when numbers are half of its words or more, or when it is a sentence.
    """
    gold = scanned_gold(text)
    wanted = quantities_of(gold)
    if not wanted:
        return False
    if any(reading.kind is not FactKind.NUMBER and not reading.ordinal for reading in wanted):
        return True
    inside = {at for reading in wanted for at in range(reading.first, reading.last + 1)}
    words = [
        at
        for at in range(gold.reader.size)
        if at not in inside and gold.reader.token(at).kind != SIGN and gold.reader.token(at).key not in _SMALL_WORDS
    ]
    if all(reading.ordinal for reading in wanted):
        return not words
    digits = any(gold.reader.token(at).kind == NUMERAL for at in words)
    if digits or any(reading.attached for reading in wanted):
        return False
    return len(words) > _LONGEST_NAME or len(words) <= len(wanted)
