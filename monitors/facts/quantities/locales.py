"""How numbers and money are written where an application lives: its language, its decimal mark, its currency.

A number's own shape comes first ("1.234,56", "1,50,000", "12.50"). Of one mark before three digits ("6.000") the
place decides, and where no place is known both values stay possible. A currency that a text leaves open ("$",
"francs", "Rs") may be any of its family; a default currency only fills what is open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from monitors.facts.quantities.currencies import CODES, DOT_GROUPS, FAMILIES
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.text import NUMERAL, Token, keys_of
from monitors.records.base import Language


class DecimalMark(StrEnum):
    """What stands before the decimals."""

    POINT = "."
    COMMA = ","
    EITHER = ""
    """The locale leaves it open."""


class Writing(NamedTuple):
    """What of a locale decides which tokens a text has."""

    is_unread: bool
    """Whether the words of its language are not read."""
    comma: bool
    """Whether a comma stands before decimals."""
    speech: str = ""
    """The language whose words are read as `languages.toml` says."""


class Locale(NamedTuple):
    """How a text writes numbers. ``currency`` is ISO 4217, and only what an open amount is taken for."""

    language: Language = Language.ENGLISH
    mark: DecimalMark | None = None
    """`None` is what English and Hindi texts do: a comma groups digits, a point may do either."""
    currency: str | None = None
    speech: str = ""
    """The language (ISO 639-1) whose words are read as `languages.toml` says; empty for English and Hindi."""

    @property
    def is_unread(self) -> bool:
        """Whether the words of its language are not read."""
        return self.language is Language.OTHER and not self.speech

    @property
    def writing(self) -> Writing:
        """What it shares with other locales."""
        return Writing(self.is_unread, self.mark is DecimalMark.COMMA, self.speech)

    def spoken(self, speech: str) -> Locale:
        """This locale with words of ``speech``; a comma stands before decimals where nothing else is known."""
        mark = DecimalMark.COMMA if self.mark in {None, DecimalMark.EITHER} else self.mark
        return self._replace(language=Language.OTHER, speech=speech, mark=mark)


PLAIN: Final = Locale()
"""English and Hindi texts of nowhere in particular."""

_TAG = re.compile(r"([a-z]{2})(?:[-_]([A-Z]{2}))?")
_COMMA_LANGUAGES = keys_of("de fr es it pt nl da sv nb no fi pl cs sk hu ro bg el tr ru uk id vi hr sl sr ca")
_POINT_REGIONS = frozenset(["CH", "LI", "MX", "US", "GT", "HN", "SV", "NI", "PA", "PR", "DO", "PE"])
"""Regions that write a decimal point in a language that otherwise writes a comma."""
_COMMA_REGIONS = frozenset({"ZA"})

_EURO = "DE AT FR ES IT NL BE FI IE PT GR LU MT CY SK SI LT LV EE HR"
_CURRENCIES: Final[dict[str, str]] = {
    **dict.fromkeys(_EURO.split(), "EUR"),
    "IN": "INR", "US": "USD", "GB": "GBP", "CH": "CHF", "LI": "CHF", "JP": "JPY", "CN": "CNY", "AU": "AUD",
    "CA": "CAD", "NZ": "NZD", "SG": "SGD", "HK": "HKD", "AE": "AED", "SA": "SAR", "PK": "PKR", "LK": "LKR",
    "NP": "NPR", "BD": "BDT", "MX": "MXN", "BR": "BRL", "AR": "ARS", "CL": "CLP", "CO": "COP", "SE": "SEK",
    "NO": "NOK", "DK": "DKK", "PL": "PLN", "CZ": "CZK", "HU": "HUF", "RO": "RON", "BG": "BGN", "TR": "TRY",
    "ZA": "ZAR", "MY": "MYR", "TH": "THB", "ID": "IDR", "PH": "PHP", "VN": "VND", "KR": "KRW", "IL": "ILS",
}  # fmt: skip
"""Currencies by region (ISO 3166), for a locale that is configured without one."""


def checked_locale(tag: str) -> str:
    """A locale such as ``en-IN``, ``de-DE`` or ``fr``; raises `ValueError` that says what is accepted."""
    if not _TAG.fullmatch(tag):
        raise ValueError(f"{tag!r} is no locale; a language and a region are expected, as in en-IN, de-DE or fr-CH")
    return tag


def checked_currency(code: str) -> str:
    """An ISO 4217 code that the readers know; raises `ValueError` that says what is accepted."""
    if code.lower() not in CODES or code != code.upper() or code == "RMB":
        raise ValueError(f"{code!r} is no currency that is read; an ISO 4217 code is expected, as INR, EUR or USD")
    return code


def locale_of(language: Language | None, tag: str | None = None, currency: str | None = None) -> Locale:
    """How a text in ``language`` of an application at ``tag`` writes numbers.

    Where the language and the place disagree (English replies of a German application), either may be meant.
    """
    spoken = _read_as(language or Language.ENGLISH)
    if tag is None:
        return Locale(spoken, _OWN_MARK.get(spoken), currency)
    found = _TAG.fullmatch(checked_locale(tag))
    speech, region = (found[1], found[2] or "") if found else ("", "")
    comma = (speech in _COMMA_LANGUAGES and region not in _POINT_REGIONS) or region in _COMMA_REGIONS
    there = DecimalMark.COMMA if comma else DecimalMark.POINT
    at_home = language in {None, Language.OTHER} or speech == ("en" if speech == "hi" else spoken.value)
    own = _OWN_MARK.get(spoken, DecimalMark.POINT)
    mark = there if at_home or there is own or speech == "hi" else DecimalMark.EITHER
    return Locale(spoken, mark, currency or _CURRENCIES.get(region))


def _read_as(language: Language) -> Language:
    """English and both kinds of Hindi are read together."""
    return Language.ENGLISH if language in {Language.HINDI, Language.HINGLISH} else language


_OWN_MARK: Final = {Language.OTHER: DecimalMark.EITHER}
"""What a language writes before decimals where no place is known."""


# --- one mark before three digits -----------------------------------------------------------------------------

_ONE_MARK = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")


def as_marked(tokens: Sequence[Token], writing: Writing) -> list[Token]:
    """The tokens with numerals as an English text writes them, where a comma stands before decimals."""
    if not writing.comma:
        return list(tokens)
    return [_unmarked(token) if token.kind == NUMERAL and len(token.text) > _GROUP else token for token in tokens]


def _unmarked(token: Token) -> Token:
    """``6.000`` is six thousand and ``6,000`` six there; what else its shape says already is left."""
    text = token.text
    if _ONE_MARK.fullmatch(text):
        text = text.replace(".", "") if "." in text else text.replace(",", ".")
    return token._replace(text=text, key=text)


_GROUP: Final = 3
_THOUSAND: Final = Decimal(1000)


def settled(reader: NumberReader, reading: QuantityReading, locale: Locale) -> QuantityReading:
    """A number or an amount with what its place makes of it: value, other possible value, currency."""
    if reading.kind is FactKind.MONEY:
        reading = _with_currency(reader, reading, locale.currency)
    if reading.kind in {FactKind.MONEY, FactKind.NUMBER} and reading.scale == 1:
        return _with_other_value(reader, reading, locale)
    return reading


def _with_other_value(reader: NumberReader, reading: QuantityReading, locale: Locale) -> QuantityReading:
    numeral = _numeral(reader, reading)
    if numeral is None or not _ONE_MARK.fullmatch(numeral.text) or not _says(reading, numeral):
        return reading
    point = "." in numeral.text
    other = reading.value * _THOUSAND if point else reading.value / _THOUSAND
    money = reading.kind is FactKind.MONEY
    if point and money and reading.unit in DOT_GROUPS:
        return reading._replace(value=other, other_value=reading.value)
    open_point = point and (money or locale.mark is not DecimalMark.POINT)
    return reading._replace(other_value=other) if open_point or locale.mark is DecimalMark.EITHER else reading


def _says(reading: QuantityReading, numeral: Token) -> bool:
    """Whether the value is that of the digits alone, as an English text writes them."""
    plain = numeral.text.replace(",", "")
    return abs(reading.value) == Decimal(plain)


def _numeral(reader: NumberReader, reading: QuantityReading) -> Token | None:
    tokens = (reader.token(at) for at in range(reading.first, min(reading.last, reading.first + 4) + 1))
    return next((token for token in tokens if token.kind == NUMERAL), None)


# --- which currency -------------------------------------------------------------------------------------------


def _with_currency(reader: NumberReader, reading: QuantityReading, default: str | None) -> QuantityReading:
    """An open currency with its family, and as the default if that is one of them."""
    family = frozenset[str]()
    for at in {reading.first, reading.first + 1, reading.last - 1, reading.last}:
        token = reader.token(at)
        inside = reading.first <= at <= reading.last
        family = FAMILIES.get(token.key, family) if inside else family
    if not family or (reading.unit is not None and reading.unit not in family):
        return reading
    if reading.unit is not None and reading.unit != "INR":
        return reading
    if default in family:
        return reading._replace(unit=default)
    return reading._replace(may_be=family)
