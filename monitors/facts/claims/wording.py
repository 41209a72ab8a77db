"""Describe figures for the reasons of grades: ``up to ₹1,50,000``, ``24 months``, ``£34 per session``."""

from __future__ import annotations

from calendar import month_name
from decimal import Decimal
from typing import Final

from monitors.facts.claims.figures import Figure, FigureKind
from monitors.facts.quantities.fact import Bound, FactKind, QuantityReading
from monitors.facts.quantities.numerals import EXACT

_SIGNS: Final = {"INR": "₹", "USD": "$", "EUR": "€", "GBP": "£"}
_LIMITS: Final = {Bound.AT_MOST: "up to ", Bound.AT_LEAST: "at least ", Bound.EXACT: ""}
_LAST_GROUP, _INDIAN_GROUP = 3, 2


def describe_reading(reading: QuantityReading) -> str:
    """Describe a quantity in a few words. Money in rupees is grouped in the Indian system."""
    if reading.kind in {FactKind.DATE, FactKind.TIME}:
        return _describe_day(reading.date) if reading.date.startswith("--") else reading.date
    value = EXACT.plus(reading.original_value if reading.original_value is not None else reading.value)
    unit = reading.original_unit or reading.unit or ("$" if "USD" in reading.may_be else "")
    if reading.counts:
        return f"{_LIMITS[reading.bound]}{reading.counts} {value}"
    per = f" per {reading.per}" if reading.per else ""
    return f"{_LIMITS[reading.bound]}{_format_with_unit(reading.kind, value, unit)}{per}"


def _describe_day(date: str) -> str:
    month, day = date[2:].split("-")
    return f"{int(day)} {month_name[int(month)]}"


def _format_with_unit(kind: FactKind, value: Decimal, unit: str) -> str:
    amount = group_digits(value, indian=unit == "INR")
    match kind:
        case FactKind.MONEY if unit == "$":
            return f"${amount}, any dollars"
        case FactKind.MONEY if unit in _SIGNS:
            return f"{_SIGNS[unit]}{amount}"
        case FactKind.PERCENT:
            return f"{amount} %"
        case FactKind.DURATION:
            return f"{amount} {unit}" if abs(value) == 1 else f"{amount} {unit}s"
        case _:
            return f"{amount} {unit}".strip()


def group_digits(value: Decimal, *, indian: bool) -> str:
    """Format a number with commas, by thousands or by the Indian system. Trailing zeros of decimals are removed."""
    text = format(value, "f")
    whole, _, part = text.partition(".")
    part = part.rstrip("0")
    sign, digits = whole[: whole.startswith("-")], whole.lstrip("-")
    head, tail = digits[:-_LAST_GROUP], digits[-_LAST_GROUP:]
    size = _INDIAN_GROUP if indian else _LAST_GROUP
    groups = [head[max(0, end - size) : end] for end in range(len(head), 0, -size)]
    return sign + ",".join([*reversed(groups), tail]) + (f".{part}" if part else "")


def describe_figure(figure: Figure) -> str:
    """Describe a figure in a few words, with its range and rate."""
    if figure.code:
        return figure.code
    if figure.kind is FigureKind.UNLIMITED:
        return "unlimited"
    per = f" per {' and '.join(sorted(figure.per))}" if figure.per and not figure.low.per else ""
    high = f" to {describe_reading(figure.high)}" if figure.high is not None else ""
    return f"{describe_reading(figure.low)}{high}{per}"
