"""Read numbers that show a place in a sequence: ``the 28th week``, ``week 28``, ``day 4``, ``the third floor``."""

from __future__ import annotations

from typing import Final

from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.units import BETWEEN, TIME_UNITS
from monitors.facts.text import NUMERAL, WORD, split_into_word_keys

_TIMES: Final = frozenset({"day", "week", "month", "year"})
_NOUNS: Final = (
    {word: unit.name for word, unit in TIME_UNITS.items() if unit.name in _TIMES}
    | dict.fromkeys(split_into_word_keys("floor floors storey story मंजिल मंज़िल manzil"), "floor")
    | {word: word for word in split_into_word_keys("terminal gate platform room counter zone lane bay")}
)
_SORTS: Final = BETWEEN | split_into_word_keys("insurance contract membership pregnancy gestational")
"""Words that may be between an ordinal and its noun: the "pregnancy" in "the 28th pregnancy week"."""
_OPENERS: Final = split_into_word_keys(
    "a an per every each any this that last next one same all the first whole of हर har प्रति prati इस उस"
)
"""Words such as "every". After such a word and a noun, a number does not show a place in a sequence.

In "every day 20 people", the 20 is not the number of the day.
"""
_GOES_ON: Final = split_into_word_keys(
    "of on onwards onward and or to until till after before in is inclusive at from तक से के tak se ke"
)
_MAX_ORDINAL: Final = 400
"""The largest number after a noun that shows a place in a sequence. "Year 2020" is not the 2020th year."""


def add_numbered_noun(reader: NumberReader, reading: QuantityReading) -> QuantityReading:
    """Return the reading, with the noun that its number counts (such as "week") if there is one.

    The number is an ordinal before the noun ("the 28th week"), or digits after the noun ("week 28").
    """
    if reading.kind is not FactKind.NUMBER or not 0 < reading.value <= _MAX_ORDINAL or reading.scale != 1:
        return reading
    noun = (
        _find_noun_behind(reader, reading)
        if reading.ordinal
        else _find_noun_before(reader, reading)
        if reading.bare
        else ""
    )
    return reading._replace(counts=noun) if noun else reading


def _find_noun_behind(reader: NumberReader, reading: QuantityReading) -> str:
    at = reading.last + 1
    if reader.token(at).text == "-" or reader.token(at).key in _SORTS:
        at += 1
    return _NOUNS.get(reader.token(at).key, "")


def _find_noun_before(reader: NumberReader, reading: QuantityReading) -> str:
    noun = _NOUNS.get(reader.token(reading.first - 1).key, "")
    opener, following = reader.token(reading.first - 2), reader.token(reading.last + 1)
    if not noun or opener.kind == NUMERAL or opener.key in _OPENERS or reader.word(reading.first - 2) is not None:
        return ""
    return "" if following.kind == WORD and following.key not in _GOES_ON else noun
