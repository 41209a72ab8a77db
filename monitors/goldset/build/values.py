"""Parse the value of a fact, and format a value as text in a language.

A value is an amount, a yes or no, a text, or missing. A formatted value is, for example, "24 months", "24 महीने",
"₹15,00,000" or "up to 20%".
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from monitors.facts.quantities.fact import Bound, FactKind
from monitors.facts.quantities.locales import Locale
from monitors.facts.similarity import StatedQuantity, collect_quantities
from monitors.goldset.build.sheets import Confidence, DurationUnit, FactField, FieldKind, GivenFact
from monitors.goldset.lines import format_value
from monitors.mutations.quantities import group_digits
from monitors.records.base import Language, Record


class AcceptPolicy(Record):
    """The rules that decide which facts may become gold cases.

    - ``confidence`` is the minimum confidence of a fact.
    - If ``unproven`` is true, an amount is accepted even if the quote does not state it.
    - If ``silence`` is true, a case that expects a refusal is built for a value that the document does not state.
    """

    confidence: Confidence = Confidence.UNRATED
    unproven: bool = False
    silence: bool = True


class Amount(NamedTuple):
    """A number with its unit.

    The unit is a currency, percent, a unit of time, or the name of the things that are counted.
    """

    kind: FieldKind
    number: Decimal
    unit: DurationUnit | None
    bound: Bound
    currency: str | None = None


class YesNo(NamedTuple):
    """A yes or no: whether something is covered, offered or allowed."""

    yes: bool


class ChoiceValue(NamedTuple):
    """One of the words that a field of the kind `CHOICE` allows."""

    word: str


class TextValue(NamedTuple):
    """A text that is used exactly as the source states it."""

    text: str


class Several(NamedTuple):
    """A list of amounts or words."""

    values: tuple[Amount | TextValue | ChoiceValue, ...]


class NotStated(NamedTuple):
    """A value that the document does not state."""


class UnusableFact(NamedTuple):
    """A fact that cannot become a gold case, with the reason."""

    reason: str


Single = Amount | YesNo | ChoiceValue | TextValue
Value = Single | Several | NotStated
_ORDER = tuple(Confidence)


def parse_usable_fact_value(fact: GivenFact, field: FactField, accept: AcceptPolicy) -> Value | UnusableFact:
    """Return the value of ``fact``. If the fact is unusable, return the reason."""
    if fact.silent:
        return (
            NotStated()
            if accept.silence
            else UnusableFact("the document has no value, and the template does not ask about missing values")
        )
    if fact.value is None:
        return UnusableFact("the fact has no value and is not marked as absent from the document")
    if _ORDER.index(fact.confidence) < _ORDER.index(accept.confidence):
        return UnusableFact(f"the confidence is {fact.confidence}; the minimum is {accept.confidence}")
    value = _parse_fact_value(fact, field)
    if isinstance(value, UnusableFact) or accept.unproven:
        return value
    return _verify_value_by_quote(value, fact)


def _parse_fact_value(fact: GivenFact, field: FactField) -> Single | Several | UnusableFact:
    if not isinstance(fact.value, list):
        return _parse_single_value(fact.value, fact, field)
    if not field.many:
        return UnusableFact("the value is a list; give one value")
    values = [_parse_single_value(raw_value, fact, field) for raw_value in fact.value]
    usable = tuple(raw_value for raw_value in values if isinstance(raw_value, Amount | TextValue | ChoiceValue))
    if len(usable) != len(values) or not usable:
        return UnusableFact(f"{format_value(fact.value)} is not a list of {field.kind} values")
    return usable[0] if len(usable) == 1 else Several(usable)


def _parse_single_value(raw: JsonValue, fact: GivenFact, field: FactField) -> Single | UnusableFact:
    unusable = UnusableFact(f"{format_value(raw)} is not a valid value for a field of kind {field.kind}")
    match field.kind:
        case FieldKind.COVER:
            return YesNo(raw) if isinstance(raw, bool) else unusable
        case FieldKind.CHOICE:
            return ChoiceValue(raw) if isinstance(raw, str) and raw in field.choices else unusable
        case FieldKind.TEXT:
            return TextValue(" ".join(raw.split())) if isinstance(raw, str) and raw.strip() else unusable
        case _:
            number = _parse_number(raw)
            return unusable if number is None else _build_amount(number, fact, field)


def _build_amount(number: Decimal, fact: GivenFact, field: FactField) -> Amount | UnusableFact:
    unit = field.unit
    if unit is not None and fact.unit is not None:
        if fact.unit not in tuple(DurationUnit):
            return UnusableFact(
                f"the unit {format_value(fact.unit)} is not valid; accepted: {', '.join(DurationUnit)}"
            )
        unit = DurationUnit(fact.unit)
    if field.kind is FieldKind.MONEY:
        currency = _find_currency(number, fact, field)
        if isinstance(currency, UnusableFact):
            return currency
        return Amount(field.kind, number, unit, fact.bound or field.bound, currency)
    return Amount(field.kind, number, unit, fact.bound or field.bound)


def _find_currency(number: Decimal, fact: GivenFact, field: FactField) -> str | UnusableFact:
    """Return the currency of the field. If the field has no currency, return the currency in the quote.

    Return an `UnusableFact` if the two currencies differ, or if no currency is known.
    """
    quoted = {
        quantity.unit
        for quantity in collect_quantities(fact.quote or "", Locale(currency=field.currency))
        if quantity.kind is FactKind.MONEY and quantity.value == number
    }
    if field.currency is not None and (not quoted or quoted & {field.currency, ""}):
        return field.currency
    currencies = sorted(quoted - {""})
    if field.currency is not None:
        return UnusableFact(f"the quote states {' and '.join(currencies)}, but the field is in {field.currency}")
    if len(currencies) == 1:
        return currencies[0]
    return UnusableFact("the currency is unknown; give the field of the schema a currency, such as INR or EUR")


def _parse_number(raw: JsonValue) -> Decimal | None:
    """Parse a JSON number or a string of digits.

    Return ``None`` for any other value, including negative numbers.
    """
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    written = raw if isinstance(raw, str) else repr(raw)
    if not written.replace(".", "", 1).isdecimal() or not written.isascii():
        return None
    number = Decimal(written).normalize()
    return number.quantize(Decimal(1)) if number == number.to_integral_value() else number


def _verify_value_by_quote(value: Single | Several, fact: GivenFact) -> Single | Several | UnusableFact:
    """Return ``value`` if the fact's quote states all amounts in the value. Otherwise, return an `UnusableFact`.

    If the value has no amounts, any quote is accepted, because a person can check it.
    """
    if not fact.quote:
        return UnusableFact("the fact has no quote, so its source cannot be checked")
    amounts = [
        amount
        for amount in (value.values if isinstance(value, Several) else (value,))
        if isinstance(amount, Amount)
    ]
    quantities = collect_quantities(fact.quote, Locale(currency=amounts[0].currency if amounts else None))
    if all(_is_amount_stated(amount, quantities) for amount in amounts):
        return value
    return UnusableFact("the quote does not contain the value")


def _is_amount_stated(amount: Amount, quantities: dict[StatedQuantity, str]) -> bool:
    """Return whether the quote states an amount.

    Zero always counts as stated, because quotes often state it without a number: "no fee".
    """
    return amount.number == 0 or any(_is_same_amount(quantity, amount) for quantity in quantities)


_MONTHS = {DurationUnit.MONTH: 1, DurationUnit.YEAR: 12}
_KINDS = {FieldKind.MONEY: FactKind.MONEY, FieldKind.PERCENT: FactKind.PERCENT, FieldKind.COUNT: FactKind.NUMBER}
_HOURS_PER_DAY = 24


def _is_same_amount(quantity: StatedQuantity, amount: Amount) -> bool:
    """Return whether a quantity in the quote equals an amount.

    A number without a unit also matches, because a table may have the unit in its heading.
    """
    if quantity.kind is FactKind.NUMBER:
        return quantity.value == amount.number
    if amount.unit is None:
        same_unit = amount.currency is None or quantity.unit in {"", amount.currency}
        return quantity.kind is _KINDS[amount.kind] and quantity.value == amount.number and same_unit
    if quantity.kind is not FactKind.DURATION:
        return False
    if amount.unit in _MONTHS:
        return quantity.value == amount.number * _MONTHS[amount.unit] and quantity.days == 0
    hours = amount.number * (_HOURS_PER_DAY if amount.unit is DurationUnit.DAY else 1)
    return quantity.value == 0 and abs(quantity.days * _HOURS_PER_DAY - hours) < Decimal("0.001")


_WORDS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "words.toml").read_text(encoding="utf-8")
)
"""The words for units (singular and plural), for bounds and for "and", in each language."""


def phrase_value(value: Single | Several, field: FactField, language: Language) -> str:
    """Format the value as text in a language.

    The result is empty for a yes or no, because the template contains the words for these values.
    """
    match value:
        case Amount():
            return _WORDS[language].get(value.bound, "{}").format(_format_number_with_unit(value, language))
        case ChoiceValue(word):
            return field.choices[word].get(language) or field.choices[word][Language.ENGLISH]
        case TextValue(text):
            return text
        case Several(values):
            words = [phrase_value(part, field, language) for part in values]
            return f"{', '.join(words[:-1])} {_WORDS[language]['and']} {words[-1]}"
        case _:
            return ""


def _format_number_with_unit(amount: Amount, language: Language) -> str:
    number = group_digits(amount.number, indian=amount.currency in {None, "INR"})
    if amount.currency is not None:
        sign = _SIGNS.get(amount.currency)
        return f"{sign}{number}" if sign else f"{amount.currency} {number}"
    if amount.kind is FieldKind.PERCENT:
        return f"{number}%"
    if amount.unit is None:
        return number
    singular, plural = _WORDS[language][amount.unit]
    return f"{number} {singular if amount.number == 1 else plural}"


_SIGNS = {"INR": "₹", "EUR": "€", "GBP": "£", "USD": "US$"}
"""Currency signs that only one currency uses. Other currencies are written by their code."""
