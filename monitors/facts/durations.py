"""Durations: units of time and how they follow an amount."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from monitors.facts.normalise import keys_of, normalise, word_key
from monitors.facts.numbers import EXACT
from monitors.facts.tokens import NUMERAL
from monitors.facts.words import Reader

DAYS_PER_YEAR = Decimal(365)
DAYS_PER_MONTH = Decimal(30)
"""Calendar units in days, for `Fact.value` alone; comparisons keep months and days apart."""


class TimeUnit(NamedTuple):
    """A unit of time: so many months, or so many days."""

    name: str
    months: Decimal = Decimal(0)
    days: Decimal = Decimal(0)


_YEAR = TimeUnit("year", months=Decimal(12))
_MONTH = TimeUnit("month", months=Decimal(1))
_WEEK = TimeUnit("week", days=Decimal(7))
_FORTNIGHT = TimeUnit("fortnight", days=Decimal(14))
_DAY = TimeUnit("day", days=Decimal(1))
_HOUR = TimeUnit("hour", days=EXACT.divide(Decimal(1), Decimal(24)))
_MINUTE = TimeUnit("minute", days=EXACT.divide(Decimal(1), Decimal(1440)))
_SECOND = TimeUnit("second", days=EXACT.divide(Decimal(1), Decimal(86400)))

_SPELLINGS = {
    _YEAR: "year years yr yrs saal saalon sal salon varsh varshon baras साल सालों वर्ष वर्षों बरस इयर यर्स ईयर",
    TimeUnit("decade", months=Decimal(120)): "decade decades दशक दशकों",
    TimeUnit("century", months=Decimal(1200)): "century centuries",
    _MONTH: "month months mth mths mo mos mahina mahine mahino mahinon maheena maheene mahiney maah maheeno "
    "महीना महीने महीनों माह मास मंथ मंथ्स",
    _WEEK: "week weeks wk wks hafta hafte hafton hafto haftey saptah haftaa सप्ताह सप्ताहों हफ्ता हफ्ते हफ्तों वीक वीक्स",
    _FORTNIGHT: "fortnight fortnights पखवाड़ा पखवाड़े पखवाडा pakhwada",
    _DAY: "day days din dino dinon dinn night nights दिन दिनों दिवस दिवसों रात रातों डेज",
    _HOUR: "hour hours hr hrs ghanta ghante ghanton ghanto ghantey ghantaa घंटा घंटे घंटों घण्टा घण्टे घण्टों घं आर्स आवर आवर्स",
    _MINUTE: "minute minutes min mins mintue mintues minuts minuet minuton minat mint minto मिनट मिनटों मि मिनिट",
    _SECOND: "second seconds sec secs सेकंड सेकेंड सेकण्ड सेकेण्ड सेकंडों",
}

TIME_UNITS = {word_key(normalise(word).text): unit for unit, words in _SPELLINGS.items() for word in words.split()}
"""Every word for a unit of time, by its key."""

_RIGHT_BEHIND = {"h": _HOUR, "Y": _YEAR, "W": _WEEK, "D": _DAY, "y": _YEAR, "d": _DAY, "w": _WEEK}
"""Single letters that are a unit only right behind digits: 3h, 2W."""

_BETWEEN = keys_of(
    "calendar working business continuous consecutive completed complete full policy more additional "
    "clear whole insurance successive उपार्जित लगातार कैलेंडर और अतिरिक्त पूरे पूर्ण lagatar lagataar "
    "poore pure"
)
"""Words that may stand between an amount and its unit: 24 continuous months."""

WHOLE = keys_of("all full whole entire पूरे पूरा पूरी pura poora pure poore puri")
"""All day, पूरे दिन: one unit."""


def unit_after(reader: Reader, at: int) -> tuple[TimeUnit, int] | None:
    """The unit of time that follows an amount at token ``at``, and the token after it."""
    token, before = reader.token(at), reader.token(at - 1)
    glued = token.start == before.end and before.kind == NUMERAL
    if glued and token.text in _RIGHT_BEHIND:
        return _RIGHT_BEHIND[token.text], at + 1
    if token.text == "h" and before.kind == NUMERAL:
        return _HOUR, at + 1
    if token.key in {"yo", "y"} and before.kind == NUMERAL:
        return _years_old(reader, at)
    if token.text in {"-", "–"} or token.key in _BETWEEN:
        at += 1
    if reader.token(at).key == "of" and reader.token(at + 1).key in TIME_UNITS:
        at += 1
    unit = TIME_UNITS.get(reader.token(at).key)
    return None if unit is None else (unit, at + 1)


def _years_old(reader: Reader, at: int) -> tuple[TimeUnit, int] | None:
    """``87 yo``, ``87 y/o``."""
    if reader.token(at).key == "yo":
        return _YEAR, at + 1
    if reader.token(at + 1).text == "/" and reader.token(at + 2).key == "o":
        return _YEAR, at + 3
    return None
