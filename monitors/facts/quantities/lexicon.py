"""Words that numbers and dates are made of, gathered from the languages' tables.

Names of months and weekdays are in English, Hindi and Hindi in Latin letters, by key.
"""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum
from typing import NamedTuple

from monitors.facts.quantities import english_numbers, hindi_numbers, hinglish_numbers
from monitors.facts.text import normalise, word_key

_MONTHS = {
    1: "january jan janvari january's जनवरी जन",
    2: "february feb farvari फरवरी फर",
    3: "march mar मार्च",
    4: "april apr aprail अप्रैल अप्रेल",
    5: "may मई",
    6: "june jun जून",
    7: "july jul julai जुलाई",
    8: "august aug agast अगस्त",
    9: "september sept sep sitambar सितंबर सितम्बर",
    10: "october oct aktubar अक्टूबर अक्तूबर",
    11: "november nov navambar नवंबर नवम्बर",
    12: "december dec disambar दिसंबर दिसम्बर दिस",
}
MONTHS = {word_key(normalise(word).text): month for month, words in _MONTHS.items() for word in words.split()}

AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar", "jan", "dec", "जन", "फर", "दिस", "jun", "sep"})
"""Also ordinary words or parts of them: months only with a day or a year beside them and a capital or a number."""

WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ("monday mon सोमवार", "tuesday tue tues मंगलवार", "wednesday wed बुधवार", "thursday thu thur thurs गुरुवार",
         "friday fri शुक्रवार", "saturday sat शनिवार", "sunday sun रविवार")
    )
    for name in names.split()
}  # fmt: skip
"""Monday is 0."""

IN_YEAR = frozenset({"में", "के", "की", "का", "me", "mein", "ke", "ki"})
"""What stands between a Hindi year and its day: 2020 में 28 जून."""


class NumberPart(IntEnum):
    """What a word does in a number."""

    SMALL = 1
    """0 to 99."""
    HUNDRED = 2
    SCALE = 3
    """A thousand and more."""
    DOZEN = 4
    """Multiplies whatever stands before it."""
    FRACTION = 5
    """A half, a quarter, three quarters."""
    QUARTERED = 6
    """सवा, साढ़े, पौने: shifts the number after it by a quarter or a half."""
    FIXED = 7
    """डेढ़ and ढाई: 1.5 and 2.5."""
    ORDINAL = 8
    POINT = 9
    AND = 10
    OVER = 11
    """The bar of a fraction."""
    MINUS = 12
    ARTICLE = 13
    SUFFIX_SCALE = 14
    """A scale that counts only right behind digits: 10k, 5 cr, 3L."""


class NumberWord(NamedTuple):
    """A word with its part and value. ``shy`` words are numbers only before a unit: "do saal", not "do you"."""

    part: NumberPart
    value: Decimal
    tens: bool = False
    shy: bool = False
    english: bool = False


_TABLES = (hinglish_numbers, hindi_numbers, english_numbers)
"""Later tables win where a spelling is in two."""


def _key(word: str) -> str:
    return word_key(normalise(word).text)


def _gather() -> dict[str, NumberWord]:
    words: dict[str, NumberWord] = {}
    for table in _TABLES:
        english = table is english_numbers
        for value, spellings in table.SMALL.items():
            round_tens = value >= 20 and value % 10 == 0  # noqa: PLR2004 - twenty, thirty, …
            for word in spellings.split():
                like_english = english or word in hindi_numbers.TRANSLITERATED
                tens = like_english and round_tens
                words[_key(word)] = NumberWord(NumberPart.SMALL, Decimal(value), tens=tens, english=like_english)
        for part, entries in (
            (NumberPart.HUNDRED, table.HUNDRED),
            (NumberPart.SCALE, table.SCALES),
            (NumberPart.DOZEN, table.DOZENS),
            (NumberPart.FRACTION, table.FRACTIONS),
            (NumberPart.QUARTERED, table.QUARTERED),
            (NumberPart.FIXED, table.FIXED),
            (NumberPart.ORDINAL, table.ORDINALS),
        ):
            for value, spellings in entries.items():
                for word in spellings.split():
                    words[_key(word)] = NumberWord(part, Decimal(value), english=english)
        for part, spellings in (
            (NumberPart.POINT, table.POINT),
            (NumberPart.AND, table.AND),
            (NumberPart.OVER, table.OVER),
            (NumberPart.MINUS, table.MINUS),
            (NumberPart.ARTICLE, table.ARTICLES),
        ):
            for word in spellings.split():
                words[_key(word)] = NumberWord(part, Decimal(0), english=english)
    return words


def _derived(words: dict[str, NumberWord]) -> dict[str, NumberWord]:
    """Written together (``twentyfive``, ``twentyfifth``) and Hindi ordinals (``बीसवां``)."""
    made: dict[str, NumberWord] = {}
    for tens, first in words.items():
        if not first.tens:
            continue
        for unit, second in words.items():
            if second.english and 0 < second.value < 10 and second.part in {NumberPart.SMALL, NumberPart.ORDINAL}:  # noqa: PLR2004
                made[tens + unit] = NumberWord(second.part, first.value + second.value, english=True)
    for stem, word in words.items():
        if word.part in {NumberPart.SMALL, NumberPart.HUNDRED, NumberPart.SCALE} and not stem.isascii():
            for ending in hindi_numbers.ORDINAL_ENDINGS:
                made[stem + _key(ending)] = NumberWord(NumberPart.ORDINAL, word.value)
    return made


def _all_words() -> dict[str, NumberWord]:
    words = _gather()
    words = _derived(words) | words
    for word in hinglish_numbers.SHY.split():
        words[word] = words[word]._replace(shy=True)
    for value, spellings in english_numbers.SUFFIX_SCALES.items():
        for word in spellings.split():
            words[word] = NumberWord(NumberPart.SUFFIX_SCALE, Decimal(value))
    return words


NUMBER_WORDS = _all_words()
"""Every number word by its key (`monitors.facts.text.word_key`)."""
