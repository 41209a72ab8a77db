"""Quantities as a person reads them at night: ``up to ₹1,50,000``, ``24 months``, ``10 %``."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from monitors.facts.fact import Bound, FactKind
from monitors.graders.equality import EXACT, Reading

_SIGNS: Final = {"INR": "₹", "USD": "$", "EUR": "€", "GBP": "£"}
_LIMITS: Final = {Bound.AT_MOST: "up to ", Bound.AT_LEAST: "at least ", Bound.EXACT: ""}
_LAST_GROUP, _INDIAN_GROUP = 3, 2


def measured(reading: Reading) -> str:
    """A quantity in a few words, for a reason or a label. Money in rupees is grouped as India writes it."""
    if reading.kind is FactKind.DATE:
        return str(reading.date)
    value = EXACT.plus(reading.original_value if reading.original_value is not None else reading.value)
    unit = reading.original_unit or reading.unit or ""
    return f"{_LIMITS[reading.bound]}{_with_unit(reading.kind, value, unit)}"


def _with_unit(kind: FactKind, value: Decimal, unit: str) -> str:
    amount = _grouped(value, indian=unit == "INR")
    match kind:
        case FactKind.MONEY if unit in _SIGNS:
            return f"{_SIGNS[unit]}{amount}"
        case FactKind.PERCENT:
            return f"{amount} %"
        case FactKind.DURATION:
            return f"{amount} {unit}" if abs(value) == 1 else f"{amount} {unit}s"
        case _:
            return f"{amount} {unit}".strip()


def _grouped(value: Decimal, *, indian: bool) -> str:
    """Digits in groups; zeros behind the point that say nothing are left out."""
    text = format(value, "f")
    whole, _, part = text.partition(".")
    part = part.rstrip("0")
    sign, digits = whole[: whole.startswith("-")], whole.lstrip("-")
    head, tail = digits[:-_LAST_GROUP], digits[-_LAST_GROUP:]
    size = _INDIAN_GROUP if indian else _LAST_GROUP
    groups = [head[max(0, end - size) : end] for end in range(len(head), 0, -size)]
    return sign + ",".join([*reversed(groups), tail]) + (f".{part}" if part else "")
