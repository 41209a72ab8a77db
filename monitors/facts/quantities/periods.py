"""Read the period directly after an amount: ``€119 a year``, ``5 % p.a.``, ``119 € pro Jahr``.

``€10 per person and month`` has the period "month". "Person" is not a period.
"""

from __future__ import annotations

from typing import Final

from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.numerals import is_multiple
from monitors.facts.quantities.other_languages import remove_unread_mark
from monitors.facts.quantities.units import BETWEEN, TIME_UNITS
from monitors.facts.text import split_into_word_keys

_RATED: Final = frozenset({FactKind.MONEY, FactKind.PERCENT, FactKind.NUMBER})
_EACH: Final = split_into_word_keys("per a an each every / प्रति हर prati har")
_OF_PEOPLE: Final = split_into_word_keys(
    "person people head adult child traveller traveler passenger guest member user seat life family व्यक्ति vyakti"
)
_SAME_PERIOD: Final = {
    (12, "month"): "year",
    (4, "quarter"): "year",
    (3, "month"): "quarter",
    (7, "day"): "week",
    (24, "hour"): "day",
}
_WORDS_FOR_WHEN: Final = split_into_word_keys("ago later earlier before after back old")
"""Words after a period that make it a point in time: the "ago" in "He paid €50 a year ago"."""

_ADVERBS: Final = {
    **dict.fromkeys(split_into_word_keys("yearly annually annual वार्षिक सालाना salana jährlich annuels"), "year"),
    **dict.fromkeys(split_into_word_keys("monthly मासिक masik monatlich mensuel"), "month"),
    **dict.fromkeys(split_into_word_keys("weekly साप्ताहिक wöchentlich"), "week"),
    **dict.fromkeys(split_into_word_keys("daily nightly दैनिक täglich"), "day"),
    **dict.fromkeys(split_into_word_keys("hourly stündlich"), "hour"),
    **dict.fromkeys(split_into_word_keys("quarterly vierteljährlich"), "quarter"),
}
_QUARTERS: Final = {
    **dict.fromkeys(split_into_word_keys("quarter quarters तिमाही"), "quarter"),
    **dict.fromkeys(split_into_word_keys("annum"), "year"),
}
"""Words for a quarter or a year that are read as a period only after a word such as "per", "a" or "every"."""
_LED_ELSEWHERE: Final = split_into_word_keys("per pro im je par por al")
_ELSEWHERE: Final = {
    **dict.fromkeys(split_into_word_keys("jahr kalenderjahr an année año anno jaar ano"), "year"),
    **dict.fromkeys(split_into_word_keys("quartal trimestre"), "quarter"),
    **dict.fromkeys(split_into_word_keys("monat kalendermonat mois mes mese maand mês"), "month"),
    **dict.fromkeys(split_into_word_keys("woche semaine semana settimana"), "week"),
    **dict.fromkeys(split_into_word_keys("tag nacht jour nuit día giorno dag dia"), "day"),
    **dict.fromkeys(split_into_word_keys("stunde heure hora ora uur"), "hour"),
}
"""Periods in languages whose units are not read.

These periods count only after a word such as German "pro" or French "par".
"""
_SORTS: Final = BETWEEN | split_into_word_keys("insurance insured contract membership subscription billing")
"""Words that may be between "per" and the period: the "calendar" in "per calendar month"."""


def add_period(reader: NumberReader, reading: QuantityReading) -> QuantityReading:
    """Return the reading, with the period that directly follows the amount (if there is one)."""
    if reading.kind not in _RATED or reading.ordinal:
        return reading
    period = _find_period(reader, reading.last + 1)
    return reading._replace(per=period) if period else reading


def _find_period(reader: NumberReader, at: int) -> str:
    """Return the period at token ``at``, or an empty string."""
    if reader.token(at).key == "(":
        at += 1
    if reader.token(at).key in _EACH and reader.token(at + 1).key in _OF_PEOPLE:
        at += 2
        if reader.token(at).key == "and":
            return _find_named_period(reader, at + 1 + (reader.token(at + 1).key in _EACH), elsewhere=False)
    if reader.token(at).key == "for" and reader.token(at + 1).key in {"each", "every"}:
        at += 1
    key = remove_unread_mark(reader.token(at).key)
    if key in _ADVERBS:
        return _ADVERBS[key]
    if key == "pa" or [reader.token(at + step).key for step in range(3)] == ["p", ".", "a"]:
        return "year"
    if key in _EACH or key in _LED_ELSEWHERE:
        return _find_named_period(reader, at + 1, elsewhere=key in _LED_ELSEWHERE)
    return ""


def _find_period_of_several(reader: NumberReader, at: int) -> str | None:
    """Return the period of several units: ``2 years`` for "every two years" and "every other year".

    Twelve months are one year. Return ``None`` if there is no number, and an empty string if no unit of time
    follows the number.
    """
    if reader.token(at).key == "other":
        count, unit_at = 2, at + 1
    else:
        spans = reader.read_number_spans(at)
        if len(spans) != 1 or spans[0].ordinal or not is_multiple(spans[0].value, 1):
            return None
        count, unit_at = int(spans[0].value), spans[0].last + 1
    unit = TIME_UNITS.get(reader.token(unit_at).key)
    if unit is None:
        return ""
    if count == 1:
        return unit.name
    return _SAME_PERIOD.get((count, unit.name), f"{count} {unit.name}s")


def _find_named_period(reader: NumberReader, at: int, *, elsewhere: bool) -> str:
    several = _find_period_of_several(reader, at)
    if several is not None:
        return several
    if reader.token(at).key in _SORTS:
        at += 1
    key = remove_unread_mark(reader.token(at).key)
    if reader.token(at + 1).key in _WORDS_FOR_WHEN:
        return ""
    unit = TIME_UNITS.get(key)
    if unit is not None:
        return unit.name
    return _QUARTERS.get(key, "") or (_ELSEWHERE.get(key, "") if elsewhere else "")
