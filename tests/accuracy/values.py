"""Comparing facts that were read with facts that were labelled."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from monitors.facts.fact import Fact

CALENDAR = Decimal("0.016")
"""How much a duration in years or months may differ: 365 days a year against 30 days a month."""

ROUNDING = Decimal("1e-6")
"""Labels have a limited number of digits: thirds and hours are rounded there."""


def same(fact: Fact, expected: dict[str, Any]) -> bool:
    """Whether a fact says what a label says: value and, where the label has one, currency."""
    if fact.kind.value == "date":
        return fact.value == expected["value"]
    if fact.kind.value == "money" and expected.get("unit") and fact.unit not in {expected["unit"]}:
        return False
    try:
        wanted, said = Decimal(expected["value"]), fact.number
    except InvalidOperation:
        return False
    calendar = fact.kind.value == "duration" and (fact.original_unit in {"month", "year"} or expected.get("calendar"))
    slack = CALENDAR if calendar else ROUNDING
    return abs(said - wanted) <= slack * max(abs(wanted), Decimal("1e-9"))


def match(facts: list[Fact], expected: list[dict[str, Any]]) -> tuple[int, list[Fact], list[dict[str, Any]]]:
    """How many agree one to one, what was made up, and what was missed."""
    left, missed, found = list(facts), [], 0
    for label in expected:
        hit = next((fact for fact in left if same(fact, label)), None)
        if hit is None:
            missed.append(label)
        else:
            left.remove(hit)
            found += 1
    return found, left, missed
