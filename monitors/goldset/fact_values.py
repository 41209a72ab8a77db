"""A given fact as a value of its field's kind: an amount, a yes or no, words, silence; or why it cannot be used."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from pydantic import JsonValue

from monitors.facts.fact import Bound, FactKind
from monitors.goldset.fact_schema import FactField, FieldKind, TimeUnit
from monitors.goldset.fact_sheets import Confidence, GivenFact
from monitors.goldset.line_problems import shown
from monitors.goldset.quantities_kept import Stated, stated
from monitors.records.base import Record


class Accept(Record):
    """Which facts become gold. ``confidence`` is the least that is taken of a stated fact.

    ``unproven`` takes an amount also where the quote does not state it. ``silence`` makes an expected refusal of a
    fact that says that the document is silent.
    """

    confidence: Confidence = Confidence.UNRATED
    unproven: bool = False
    silence: bool = True


class Amount(NamedTuple):
    """A number in its unit: rupees, percent, a time unit, or things counted."""

    kind: FieldKind
    number: Decimal
    unit: TimeUnit | None
    bound: Bound


class YesNo(NamedTuple):
    """Whether something is covered, offered, allowed."""

    yes: bool


class Chosen(NamedTuple):
    """A word of the field's choices."""

    word: str


class FreeWords(NamedTuple):
    """Words as they stand in the source."""

    text: str


class Several(NamedTuple):
    """A list of amounts or words."""

    values: tuple[Amount | FreeWords | Chosen, ...]


class Silence(NamedTuple):
    """The document does not say."""


class LeftOut(NamedTuple):
    """Why a fact makes no gold."""

    reason: str


Single = Amount | YesNo | Chosen | FreeWords
Value = Single | Several | Silence
_ORDER = tuple(Confidence)
_NUMBERS = (FieldKind.DURATION, FieldKind.MONEY, FieldKind.PERCENT, FieldKind.COUNT)


def read_value(fact: GivenFact, field: FactField, accept: Accept) -> Value | LeftOut:
    """What ``fact`` says, or why it is left out. Pure."""
    if fact.silent:
        return Silence() if accept.silence else LeftOut("the document is silent, and silence is not asked for")
    if fact.value is None:
        return LeftOut("it has no value, and does not say that the document is silent")
    if _ORDER.index(fact.confidence) < _ORDER.index(accept.confidence):
        return LeftOut(f"its confidence is {fact.confidence}, below {accept.confidence}")
    value = _of_kind(fact, field)
    if isinstance(value, LeftOut) or accept.unproven:
        return value
    return _proven(value, fact)


def _of_kind(fact: GivenFact, field: FactField) -> Single | Several | LeftOut:
    if not isinstance(fact.value, list):
        return _single(fact.value, fact, field)
    if not field.many:
        return LeftOut("a list stands where one value is accepted")
    found = [_single(one, fact, field) for one in fact.value]
    usable = tuple(one for one in found if isinstance(one, Amount | FreeWords | Chosen))
    if len(usable) != len(found) or not usable:
        return LeftOut(f"{shown(fact.value)} is no list of {field.kind} values")
    return usable[0] if len(usable) == 1 else Several(usable)


def _single(raw: JsonValue, fact: GivenFact, field: FactField) -> Single | LeftOut:
    wrong = LeftOut(f"a {field.kind} cannot be read from {shown(raw)}")
    match field.kind:
        case FieldKind.COVER:
            return YesNo(raw) if isinstance(raw, bool) else wrong
        case FieldKind.CHOICE:
            return Chosen(raw) if isinstance(raw, str) and raw in field.choices else wrong
        case FieldKind.TEXT:
            return FreeWords(" ".join(raw.split())) if isinstance(raw, str) and raw.strip() else wrong
        case _:
            number = _number(raw)
            return wrong if number is None else _amount(number, fact, field)


def _amount(number: Decimal, fact: GivenFact, field: FactField) -> Amount | LeftOut:
    unit = field.unit
    if unit is not None and fact.unit is not None:
        if fact.unit not in tuple(TimeUnit):
            return LeftOut(f"its unit {shown(fact.unit)} is none of {', '.join(TimeUnit)}")
        unit = TimeUnit(fact.unit)
    return Amount(field.kind, number, unit, fact.bound or field.bound)


def _number(raw: JsonValue) -> Decimal | None:
    """A JSON number, or a text of digits alone; no booleans, nothing below zero."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    written = raw if isinstance(raw, str) else repr(raw)
    if not written.replace(".", "", 1).isdecimal() or not written.isascii():
        return None
    number = Decimal(written).normalize()
    return number.quantize(Decimal(1)) if number == number.to_integral_value() else number


# --- proof ----------------------------------------------------------------------------------------------------


def _proven(value: Single | Several, fact: GivenFact) -> Single | Several | LeftOut:
    """An amount must stand in the quote; anything else needs a quote that a person can hold it against."""
    if not fact.quote:
        return LeftOut("it has no quote, so nobody can trace it")
    amounts = [one for one in (value.values if isinstance(value, Several) else (value,)) if isinstance(one, Amount)]
    said = stated(fact.quote)
    if all(_is_stated(one, said) for one in amounts):
        return value
    return LeftOut("its quote does not state the value")


def _is_stated(amount: Amount, said: dict[Stated, str]) -> bool:
    """Zero is said in words ("no co-payment"), so it needs no digits."""
    return amount.number == 0 or any(_says(one, amount) for one in said)


_MONTHS = {TimeUnit.MONTH: 1, TimeUnit.YEAR: 12}
_KINDS = {FieldKind.MONEY: FactKind.MONEY, FieldKind.PERCENT: FactKind.PERCENT, FieldKind.COUNT: FactKind.NUMBER}
_HOURS_PER_DAY = 24


def _says(said: Stated, amount: Amount) -> bool:
    """The same quantity, or its bare number: tables give the unit in their head."""
    if said.kind is FactKind.NUMBER:
        return said.value == amount.number
    if amount.unit is None:
        return said.kind is _KINDS[amount.kind] and said.value == amount.number
    if said.kind is not FactKind.DURATION:
        return False
    if amount.unit in _MONTHS:
        return said.value == amount.number * _MONTHS[amount.unit] and said.days == 0
    hours = amount.number * (_HOURS_PER_DAY if amount.unit is TimeUnit.DAY else 1)
    return said.value == 0 and abs(said.days * _HOURS_PER_DAY - hours) < Decimal("0.001")
