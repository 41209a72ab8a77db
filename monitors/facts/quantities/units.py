"""Define the units of quantities (time, percent, currencies) and the words that form or begin a quantity.

A unit of time or a percent sign follows an amount. A currency precedes or follows it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from monitors.facts.quantities.currencies import COUNTRIES, DOLLARS, MONEY_WORDS, NAMES, SIGNS
from monitors.facts.quantities.lexicon import MONTHS
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.numerals import EXACT
from monitors.facts.text import NUMERAL, WORD, normalise, split_into_word_keys, to_word_key

DAYS_PER_YEAR = Decimal(365)
DAYS_PER_MONTH = Decimal(30)
"""Days of a month, used only for `Fact.value`. Comparisons keep months and days separate."""


class TimeUnit(NamedTuple):
    """A unit of time, given as its number of months or its number of days."""

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

TIME_UNITS = {
    to_word_key(normalise(word).text): unit for unit, words in _SPELLINGS.items() for word in words.split()
}
"""The units of time, keyed by the lookup keys of the words for the unit."""

_RIGHT_BEHIND = {"h": _HOUR, "Y": _YEAR, "W": _WEEK, "D": _DAY, "y": _YEAR, "d": _DAY, "w": _WEEK}
"""Single letters that are a unit of time only directly after digits: 3h, 2W."""

BETWEEN = split_into_word_keys(
    "calendar working business continuous consecutive completed complete full policy more additional "
    "clear whole successive उपार्जित लगातार कैलेंडर और अतिरिक्त पूरे पूर्ण lagatar lagataar "
    "poore pure"
)
"""Words that may be between an amount and its unit: the "continuous" in "24 continuous months"."""

WHOLE = split_into_word_keys("all full whole entire पूरे पूरा पूरी pura poora pure poore puri")
"""Words that mean "one" before a unit of time: the "all" in "all day", the "पूरे" in "पूरे दिन"."""


def read_time_unit(reader: NumberReader, at: int) -> tuple[TimeUnit, int] | None:
    """Return the unit of time that follows an amount at token ``at``, and the token after the unit."""
    token, before = reader.token(at), reader.token(at - 1)
    glued = token.start == before.end and before.kind == NUMERAL
    if glued and token.text in _RIGHT_BEHIND:
        return _RIGHT_BEHIND[token.text], at + 1
    if token.text == "h" and before.kind == NUMERAL:
        return _HOUR, at + 1
    if token.key in {"yo", "y"} and before.kind == NUMERAL:
        return _read_years_old(reader, at)
    if token.text in {"-", "–"} or token.key in BETWEEN:
        at += 1
    if reader.token(at).key == "of" and reader.token(at + 1).key in TIME_UNITS:
        at += 1
    unit = TIME_UNITS.get(reader.token(at).key)
    return None if unit is None else (unit, at + 1)


def _read_years_old(reader: NumberReader, at: int) -> tuple[TimeUnit, int] | None:
    """Read an age in years: ``87 yo``, ``87 y/o``."""
    if reader.token(at).key == "yo":
        return _YEAR, at + 1
    if reader.token(at + 1).text == "/" and reader.token(at + 2).key == "o":
        return _YEAR, at + 3
    return None


PERCENT_WORDS = split_into_word_keys(
    "percent percents pct percentage प्रतिशत फीसदी फीसद परसेंट पर्सेंट pratishat pratisat fisadi feesadi parsent"
)


def skip_percent(reader: NumberReader, at: int) -> int:
    """Return the token after a percent sign or word at ``at``. Without one, return ``at``."""
    token = reader.token(at)
    if token.text in {"%", "٪"} or token.key in PERCENT_WORDS:
        return at + 1
    if token.key == "per" and reader.token(at + 1).key == "cent":
        return at + 2
    if token.text == "-" and reader.token(at + 1).key in PERCENT_WORDS:
        return at + 2
    return at


def is_after_leading_percent_of(reader: NumberReader, at: int) -> bool:
    """Return whether the text begins with "percent of" and token ``at`` directly follows these words.

    Elsewhere in a text, "percent of 500 people" is not 500 %.
    """
    words = [reader.token(place).key for place in range(at)]
    return words in (["percents", "of"], ["percent", "of"], ["per", "cent", "of"])


class Currency(NamedTuple):
    """A currency. ``code`` is an ISO 4217 code, or ``None`` for an unknown country. ``after`` is the next token."""

    code: str | None
    after: int
    first: int


_LOWER_CASE_TOO = frozenset({"rs", "inr", "usd", "eur", "gbp", "aud", "cad", "sgd", "rmb", "le", "aed"})
_MEGA = {f"M{code}": code for code in ("USD", "EUR", "GBP", "AUD", "CAD", "INR", "JPY", "CHF")}
MILLION_CODES = _MEGA
"""Currency codes with a prefix for a million: ``30 MUSD`` is thirty million dollars."""


def read_currency(reader: NumberReader, at: int) -> Currency | None:
    """Return the currency at token ``at``: ``₹``, ``Rs.``, ``US$``, ``c $``, ``INR``, ``Swiss francs``."""
    token = reader.token(at)
    if token.text in SIGNS:
        return _read_currency_sign(reader, at)
    if token.kind != WORD:
        return None
    following = reader.token(at + 1)
    if following.text == "$" and token.key in DOLLARS:
        return Currency(DOLLARS[token.key], at + 2, at)
    if token.key in NAMES and _has_currency_case(token.text, token.key):
        after = at + 1
        if following.text == "." and following.start == token.end:
            after += 1
        return Currency(NAMES[token.key], after, at)
    if token.key in COUNTRIES:
        return _read_country_currency(reader, at)
    if token.key in {"l", "u"} and following.text == ".":
        return _read_dotted_currency(reader, at)
    return None


def _read_currency_sign(reader: NumberReader, at: int) -> Currency:
    """Read a currency sign and the code next to it that names the country: ``$ SGD``."""
    code, after = SIGNS[reader.token(at).text], at + 1
    following = reader.token(after)
    if following.text == "ur" and reader.token(at).text == "€":
        return Currency("EUR", after + 1, at)
    if code is None and following.text.isupper() and NAMES.get(following.key):
        return Currency(NAMES[following.key], after + 1, at)
    return Currency(code, after, at)


def _has_currency_case(text: str, key: str) -> bool:
    """Return whether the name or code of a currency has an accepted letter case.

    Most codes must be in upper case. Names may be in any case.
    """
    return len(key) != 3 or not key.isascii() or key in _LOWER_CASE_TOO or text.isupper() or key == "yen"  # noqa: PLR2004 - a currency code has three letters


def _read_country_currency(reader: NumberReader, at: int) -> Currency | None:
    code, after = COUNTRIES[reader.token(at).key], at + 1
    if reader.token(after).key in {"states", "kong", "zealand", "islands"}:
        after += 1
    named = reader.token(after)
    return Currency(code, after + 1, at) if named.key in NAMES and named.key != "le" else None


def _read_dotted_currency(reader: NumberReader, at: int) -> Currency | None:
    """Read a currency with dots in its name: ``L.E``, ``U.S. $``."""
    second = reader.token(at + 2)
    if reader.token(at).key == "l" and second.key == "e":
        after = at + 4 if reader.token(at + 3).text == "." else at + 3
        return Currency("EGP", after, at)
    if second.key == "s":
        after = at + 4 if reader.token(at + 3).text == "." else at + 3
        if reader.token(after).text == "$":
            return Currency("USD", after + 1, at)
    return None


def is_backtick_rupee(reader: NumberReader, at: int) -> bool:
    """Return whether a backtick before digits is a rupee sign, which occurs in text extracted from some PDFs."""
    token, following = reader.token(at), reader.token(at + 1)
    if token.text != "`" or following.kind != NUMERAL:
        return False
    closing = reader.token(at + 2)
    return not (closing.text == "`" and closing.start == following.end)


def is_rupee_slash_dash(reader: NumberReader, at: int) -> bool:
    """Return whether ``/-`` follows digits. In India, ``5000/-`` is an amount in rupees."""
    return (
        reader.token(at).text == "/"
        and reader.token(at + 1).text == "-"
        and _is_directly_after_previous(reader, at)
    )


def _is_directly_after_previous(reader: NumberReader, at: int) -> bool:
    return reader.token(at).start == reader.token(at - 1).end


UNIT_KEYS = frozenset(TIME_UNITS) | PERCENT_WORDS | MONEY_WORDS
"""Lookup keys of words before which an ambiguous number word is a number: "do saal" means two years."""

_NAMED = frozenset(NAMES) | {"states", "kong", "zealand", "islands", "rupee", "rupees"}
_DAYS = {"today", "tomorrow", "yesterday", "tonight", "आज", "aaj"}
_ANYTHING = frozenset(MONTHS) | frozenset(NAMES) | {"fortnight", "last", *_DAYS}
_FORTNIGHTS = frozenset(word for word, unit in TIME_UNITS.items() if unit.name == "fortnight")

STARTS: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(COUNTRIES, _NAMED),
    **dict.fromkeys(WHOLE, frozenset(TIME_UNITS) | {"-"}),
    **dict.fromkeys(_ANYTHING | _FORTNIGHTS | {code.lower() for code in MILLION_CODES}),
    **{
        key: frozenset({"$"}) | (_NAMED if key in COUNTRIES else frozenset()) for key in DOLLARS if key not in NAMES
    },
    **dict.fromkeys([*SIGNS, "`"]),
    "l": frozenset({"."}),
    "u": frozenset({"."}),
}
"""Words, other than numbers, that may begin a quantity. Each is mapped to a set of words, one of which must follow.

``None`` means that any word may follow.
"""
