"""What a text states: a quantity with its kind, exact value, unit, bound and place."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record


class FactKind(StrEnum):
    """What sort of quantity a text states."""

    NUMBER = "number"
    MONEY = "money"
    PERCENT = "percent"
    DURATION = "duration"
    DATE = "date"


class Bound(StrEnum):
    """How a value limits: exactly, as an upper end ("up to"), or as a lower end ("at least")."""

    EXACT = "exact"
    AT_MOST = "at_most"
    AT_LEAST = "at_least"


class Fact(Record):
    """One quantity that a text states.

    ``value`` is a plain decimal string (``1500000``), for a date ISO 8601. ``unit`` is the ISO 4217 code for
    money (``None`` where the text leaves the country open, as ``$`` does), ``percent``, ``day`` for a duration.
    A duration's ``value`` is in days, ``original_value`` and ``original_unit`` are as it was said (24, ``month``):
    a month is not thirty days unless a case says so. ``start`` and ``end`` count Unicode code points of the text
    as it was given, end exclusive; ``text`` is what stands there.
    """

    kind: FactKind
    value: str
    unit: str | None = None
    original_value: str | None = None
    original_unit: str | None = None
    bound: Bound = Bound.EXACT
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    text: str

    @property
    def number(self) -> Decimal:
        """The value as an exact number; not for dates."""
        return Decimal(self.value)
