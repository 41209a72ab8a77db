"""Load the words for numbers and dates in English, Hindi, and Hindi in Latin letters.

The keys of all tables are the lookup keys of the words.
"""

from __future__ import annotations

import tomllib
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from monitors.facts.text import normalise, split_into_word_keys, to_word_key

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
MONTHS = {to_word_key(normalise(word).text): month for month, words in _MONTHS.items() for word in words.split()}

AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar", "jan", "dec", "जन", "फर", "दिस", "jun", "sep"})
"""Names of months that are also ordinary words or parts of words, such as "may".

Such a word counts as a month only in two cases: it has a capital letter, or a number beside it is the day or the
year.
"""

WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ("monday mon सोमवार somvaar somvar somwar somwaar", "tuesday tue tues मंगलवार mangalvaar mangalwar",
         "wednesday wed बुधवार budhvaar budhvar budhwar budhwaar", "thursday thu thur thurs गुरुवार guruvaar guruwar",
         "friday fri शुक्रवार shukravaar shukravar shukrawar", "saturday sat शनिवार shanivaar shanivar shaniwar",
         "sunday sun रविवार ravivaar ravivar raviwar itvaar itwaar")
    )
    for name in names.split()
}  # fmt: skip
"""The number of each weekday (Monday is 0), keyed by the name of the weekday."""

IN_YEAR = frozenset({"में", "के", "की", "का", "me", "mein", "ke", "ki"})
"""Hindi words between a year and the day after it: the में in 2020 में 28 जून."""


class NumberPart(IntEnum):
    """The role of a word in a number, such as a scale or a fraction."""

    SMALL = 1
    """A number from 0 to 99."""
    HUNDRED = 2
    SCALE = 3
    """A scale of a thousand or more."""
    DOZEN = 4
    """A word such as "dozen", which multiplies the number before it."""
    FRACTION = 5
    """A fraction: a half, a quarter, or three quarters."""
    QUARTERED = 6
    """A word that adds a quarter or a half to the next number, or subtracts a quarter: सवा, साढ़े, पौने."""
    FIXED = 7
    """डेढ़ and ढाई: 1.5 and 2.5."""
    ORDINAL = 8
    POINT = 9
    AND = 10
    OVER = 11
    """A word or sign for the bar of a fraction, such as "over"."""
    MINUS = 12
    ARTICLE = 13
    SUFFIX_SCALE = 14
    """A scale that is read only directly after digits: 10k, 5 cr, 3L."""


class NumberWord(NamedTuple):
    """A number word with its part and value.

    A ``shy`` word is also an ordinary word. It is a number only before a unit or certain number words: the "do" in
    "do saal" (two years) is a number, but the "do" in "do you" is not.
    """

    part: NumberPart
    value: Decimal
    tens: bool = False
    shy: bool = False
    english: bool = False


_DATA: dict[str, Any] = tomllib.loads((Path(__file__).parent / "numbers.toml").read_text(encoding="utf-8"))
_EXTRA: dict[str, Any] = _DATA.pop("extra")
_TABLES: dict[str, dict[str, dict[str, str]]] = _DATA
"""Number words by language and section. If two tables contain the same word, the later table wins."""
_TRANSLITERATED = split_into_word_keys(_EXTRA["transliterated"])
DIGIT_ORDINAL_ENDINGS = frozenset(_EXTRA["digit_ordinal_endings"].split())
"""Endings that turn the digits before them into an ordinal: 2रा, 90वी."""
_SECTIONS = {
    "small": NumberPart.SMALL, "hundred": NumberPart.HUNDRED, "scales": NumberPart.SCALE,
    "dozens": NumberPart.DOZEN, "fractions": NumberPart.FRACTION,
    "quartered": NumberPart.QUARTERED, "fixed": NumberPart.FIXED,
    "ordinals": NumberPart.ORDINAL, "point": NumberPart.POINT, "and": NumberPart.AND, "over": NumberPart.OVER,
    "minus": NumberPart.MINUS, "articles": NumberPart.ARTICLE,
}  # fmt: skip


def _to_key(word: str) -> str:
    return to_word_key(normalise(word).text)


def _load_words() -> dict[str, NumberWord]:
    words: dict[str, NumberWord] = {}
    for language, table in _TABLES.items():
        for section, part in _SECTIONS.items():
            for value, spellings in table[section].items():
                for word in spellings.split():
                    small = part is NumberPart.SMALL
                    english = language == "english" or (small and word in _TRANSLITERATED)
                    amount = Decimal(value)
                    tens = small and english and amount >= 20 and amount % 10 == 0  # noqa: PLR2004 - twenty, thirty, …
                    words[_to_key(word)] = NumberWord(part, amount, tens=tens, english=english)
    return words


def _derive_compounds_and_ordinals(words: dict[str, NumberWord]) -> dict[str, NumberWord]:
    """Build the compounds (``twentyfive``, ``twentyfifth``) and the Hindi ordinals (``बीसवां``)."""
    made: dict[str, NumberWord] = {}
    for tens, first in words.items():
        if not first.tens:
            continue
        for unit, second in words.items():
            if second.english and 0 < second.value < 10 and second.part in {NumberPart.SMALL, NumberPart.ORDINAL}:  # noqa: PLR2004 - a unit has one digit
                made[tens + unit] = NumberWord(second.part, first.value + second.value, english=True)
    for stem, word in words.items():
        if word.part in {NumberPart.SMALL, NumberPart.HUNDRED, NumberPart.SCALE} and not stem.isascii():
            for ending in _EXTRA["ordinal_endings"].split():
                made[stem + _to_key(ending)] = NumberWord(NumberPart.ORDINAL, word.value)
    return made


def _build_number_words() -> dict[str, NumberWord]:
    words = _load_words()
    words = _derive_compounds_and_ordinals(words) | words
    for word in _EXTRA["shy"].split():
        words[word] = words[word]._replace(shy=True)
    for value, spellings in _EXTRA["suffix_scales"].items():
        for word in spellings.split():
            words[word] = NumberWord(NumberPart.SUFFIX_SCALE, Decimal(value))
    return words


NUMBER_WORDS = _build_number_words()
"""All number words, keyed by their lookup key (`monitors.facts.text.to_word_key`)."""
