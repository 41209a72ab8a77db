"""Define how numbers and money are written in an application's locale: language, decimal mark and currency.

If the format of a number is clear ("1.234,56", "1,50,000", "12.50"), the format decides. If there is one comma or
point, and three digits follow it ("6.000"), the locale decides. Without a known locale, both values are possible.

A currency in a text is open if several countries use its sign or name ("$", "francs", "Rs"). These currencies are a
family, and an open currency may be any of them. A default currency applies only to open currencies.
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
from monitors.facts.text import NUMERAL, Token, split_into_word_keys
from monitors.records.base import Language


class DecimalMark(StrEnum):
    """The sign between the integer part and the decimals of a number."""

    POINT = "."
    COMMA = ","
    EITHER = ""
    """Both signs are possible."""


class Writing(NamedTuple):
    """The part of a locale that determines how a text is split into tokens."""

    is_unread: bool
    """Whether the language is unsupported. In such a language, only numbers and signs are read."""
    comma: bool
    """Whether the decimal mark is a comma and not a point."""
    speech: str = ""
    """The language (ISO 639-1) of the text, if its words are in `languages.toml`; otherwise empty."""


class Locale(NamedTuple):
    """The number format of a text.

    ``currency`` is the ISO 4217 code for amounts whose sign or name does not show the country ("$").
    """

    language: Language = Language.ENGLISH
    mark: DecimalMark | None = None
    """The decimal mark. ``None`` means the notation of English and Hindi.

    In this notation, a comma separates groups of digits. A point is the decimal mark, or it separates groups.
    """
    currency: str | None = None
    speech: str = ""
    """The language (ISO 639-1) whose words are in `languages.toml`; empty for English and Hindi."""

    @property
    def is_unread(self) -> bool:
        """Return whether the language is unsupported.

        In an unsupported language, only numbers and signs are read.
        """
        return self.language is Language.OTHER and not self.speech

    @property
    def writing(self) -> Writing:
        """Return the part of the locale that determines how a text is split into tokens."""
        return Writing(self.is_unread, self.mark is DecimalMark.COMMA, self.speech)

    def copy_for_foreign_language(self, speech: str) -> Locale:
        """Return this locale for a text in the language ``speech``. An unknown decimal mark becomes a comma."""
        mark = DecimalMark.COMMA if self.mark in {None, DecimalMark.EITHER} else self.mark
        return self._replace(language=Language.OTHER, speech=speech, mark=mark)


PLAIN: Final = Locale()
"""The locale of English and Hindi texts if the country of the application is unknown."""

_TAG = re.compile(r"([a-z]{2})(?:[-_]([A-Z]{2}))?")
_COMMA_LANGUAGES = split_into_word_keys(
    "de fr es it pt nl da sv nb no fi pl cs sk hu ro bg el tr ru uk id vi hr sl sr ca"
)
_POINT_REGIONS = frozenset(["CH", "LI", "MX", "US", "GT", "HN", "SV", "NI", "PA", "PR", "DO", "PE"])
"""Regions whose texts have a decimal point, although the language otherwise has a decimal comma."""
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
"""The currency of each region (ISO 3166). It applies if no currency is configured."""


def validate_locale(tag: str) -> str:
    """Return a valid locale (``en-IN``, ``de-DE``, ``fr``) unchanged. Raise `ValueError` for any other string."""
    if not _TAG.fullmatch(tag):
        raise ValueError(f"a language and a region, such as en-IN, de-DE or fr-CH, not {tag!r}")
    return tag


def validate_currency(code: str) -> str:
    """Return a supported ISO 4217 code unchanged. Raise `ValueError` for any other string."""
    if code.lower() not in CODES or code != code.upper() or code == "RMB":
        raise ValueError(f"a supported currency code (ISO 4217), such as INR, EUR or USD, not {code!r}")
    return code


def build_locale(language: Language | None, tag: str | None = None, currency: str | None = None) -> Locale:
    """Return the number format of a text in ``language`` for an application with locale ``tag``.

    If the language and the locale disagree (English replies of a German application), both formats are possible.
    """
    is_english_hindi_or_hinglish = (
        language is None or language.is_english_hindi_or_hinglish
    )  # the three languages are read together
    spoken = Language.ENGLISH if is_english_hindi_or_hinglish else Language.OTHER
    if tag is None:
        return Locale(spoken, _OWN_MARK.get(spoken), currency)
    match = _TAG.fullmatch(validate_locale(tag))
    speech, region = (match[1], match[2] or "") if match else ("", "")
    comma = (speech in _COMMA_LANGUAGES and region not in _POINT_REGIONS) or region in _COMMA_REGIONS
    there = DecimalMark.COMMA if comma else DecimalMark.POINT
    at_home = language is None or spoken is Language.OTHER or speech == ("en" if speech == "hi" else spoken.value)
    own = _OWN_MARK.get(spoken, DecimalMark.POINT)
    mark = there if at_home or there is own or speech == "hi" else DecimalMark.EITHER
    return Locale(spoken, mark, currency or _CURRENCIES.get(region))


_OWN_MARK: Final = {Language.OTHER: DecimalMark.EITHER}
"""The decimal mark of each language. It applies if the locale is unknown."""


# --- one mark before three digits -----------------------------------------------------------------------------

_ONE_MARK = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")


def convert_decimal_commas(tokens: Sequence[Token], writing: Writing) -> list[Token]:
    """Convert numerals that have a decimal comma to English notation."""
    if not writing.comma:
        return list(tokens)
    return [
        _convert_decimal_comma(token) if token.kind == NUMERAL and len(token.text) > _GROUP else token
        for token in tokens
    ]


def _convert_decimal_comma(token: Token) -> Token:
    """Convert a numeral to English notation: ``6.000`` becomes ``6000``, and ``6,000`` becomes ``6.000``."""
    text = token.text
    if _ONE_MARK.fullmatch(text):
        text = text.replace(".", "") if "." in text else text.replace(",", ".")
    return token._replace(text=text, key=text)


_GROUP: Final = 3
_THOUSAND: Final = Decimal(1000)


def resolve_reading_by_locale(reader: NumberReader, reading: QuantityReading, locale: Locale) -> QuantityReading:
    """Return the reading with its value, its other possible value and its currency resolved by the locale."""
    if reading.kind is FactKind.MONEY:
        reading = _resolve_currency(reader, reading, locale.currency)
    if reading.kind in {FactKind.MONEY, FactKind.NUMBER} and reading.scale == 1:
        return _resolve_decimal_mark(reader, reading, locale)
    return reading


def _resolve_decimal_mark(reader: NumberReader, reading: QuantityReading, locale: Locale) -> QuantityReading:
    numeral = _find_numeral(reader, reading)
    if numeral is None or not _ONE_MARK.fullmatch(numeral.text) or not _is_value_of_digits(reading, numeral):
        return reading
    point = "." in numeral.text
    other = reading.value * _THOUSAND if point else reading.value / _THOUSAND
    money = reading.kind is FactKind.MONEY
    if point and money and reading.unit in DOT_GROUPS:
        return reading._replace(value=other, other_value=reading.value)
    open_point = point and (money or locale.mark is not DecimalMark.POINT)
    return reading._replace(other_value=other) if open_point or locale.mark is DecimalMark.EITHER else reading


def _is_value_of_digits(reading: QuantityReading, numeral: Token) -> bool:
    """Return whether the value of a reading is the number that its digits form in English notation."""
    plain = numeral.text.replace(",", "")
    return abs(reading.value) == Decimal(plain)


def _find_numeral(reader: NumberReader, reading: QuantityReading) -> Token | None:
    tokens = (reader.token(at) for at in range(reading.first, min(reading.last, reading.first + 4) + 1))
    return next((token for token in tokens if token.kind == NUMERAL), None)


# --- the currency -----------------------------------------------------------------------------------------------


def _resolve_currency(reader: NumberReader, reading: QuantityReading, default: str | None) -> QuantityReading:
    """Set an open currency to ``default`` if its family contains ``default``. Otherwise, store the whole family."""
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
