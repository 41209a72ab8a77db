"""Compares facts that Lookout read with labelled facts."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from monitors.facts.claims.equality import Match, compare_readings
from monitors.facts.quantities.fact import Fact, FactKind, QuantityReading
from monitors.facts.quantities.scan import scan

CALENDAR = Decimal("0.016")
"""Relative tolerance for a duration in years or months, because 12 months of 30 days are less than 365 days."""

ROUNDING = Decimal("1e-6")
"""Relative tolerance for rounding, because labels state values such as a third with a limited number of digits."""


def is_same_value(fact: Fact, expected: dict[str, Any]) -> bool:
    """Return whether a fact has the same value as the label and, if the label has a currency, the same currency."""
    if fact.kind.value == "date":
        return fact.value == expected["value"]
    if fact.kind.value == "money" and expected.get("unit") and fact.unit != expected["unit"]:
        return False
    try:
        wanted, stated = Decimal(expected["value"]), fact.number
    except InvalidOperation:
        return False
    calendar = fact.kind.value == "duration" and (
        fact.original_unit in {"month", "year"} or expected.get("calendar")
    )
    slack = CALENDAR if calendar else ROUNDING
    return abs(stated - wanted) <= slack * max(abs(wanted), Decimal("1e-9"))


def match_facts(facts: list[Fact], expected: list[dict[str, Any]]) -> tuple[int, list[Fact], list[dict[str, Any]]]:
    """Match facts with labels one to one. Return the number of matches, unmatched facts and missed labels."""
    left, missed, matched = list(facts), [], 0
    for label in expected:
        hit = next((fact for fact in left if is_same_value(fact, label)), None)
        if hit is None:
            missed.append(label)
        else:
            left.remove(hit)
            matched += 1
    return matched, left, missed


def count_inside_other_kinds(facts: list[Fact], missed: list[dict[str, Any]]) -> int:
    """Count missed numbers that Lookout returned as part of another kind of fact, such as the 5 of "5 %".

    These numbers count neither as missed nor as invented.
    """
    stated = {Decimal(text) for fact in facts for text in (fact.original_value, _decimal(fact)) if text is not None}
    return sum(Decimal(label["value"]) in stated for label in missed)


def _decimal(fact: Fact) -> str | None:
    return None if fact.kind.value == "date" else fact.value


def say_the_same(first: str, second: str) -> bool:
    """Return whether two texts state the same quantities one to one, in any order.

    The result is false if the texts state no quantities.
    """
    readings, others = scan(first).readings, list(scan(second).readings)
    if not readings or len(readings) != len(others):
        return False
    for reading in readings:
        hit = next((other for other in others if _equal(reading, other)), None)
        if hit is None:
            return False
        others.remove(hit)
    return True


def _equal(first: QuantityReading, second: QuantityReading) -> bool:
    if first.kind is not second.kind and FactKind.DATE not in {first.kind, second.kind}:
        return False
    return compare_readings(first, second, month_is_30_days=False, tolerance=ROUNDING) is Match.SAME
