"""Define the records of a quantity in a text: kind, exact value, unit, bound and position.

The readers return a `QuantityReading`, which is fast to build. A `Fact` is the stored record of such a reading.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import Field

from monitors.records.base import Record


class FactKind(StrEnum):
    """The kind of a quantity."""

    __hash__ = str.__hash__  # four times as fast as Enum's own hash; each reply needs hundreds

    NUMBER = "number"
    MONEY = "money"
    PERCENT = "percent"
    DURATION = "duration"
    DATE = "date"
    TIME = "time"
    QUANTITY = "quantity"
    """A number with a unit of measurement, converted to the base unit of its dimension."""


class Bound(StrEnum):
    """The bound of a value: exact, an upper limit ("up to") or a lower limit ("at least")."""

    __hash__ = str.__hash__  # four times as fast as Enum's own hash; each reply needs hundreds

    EXACT = "exact"
    AT_MOST = "at_most"
    AT_LEAST = "at_least"


class Fact(Record):
    """One quantity that a text states.

    - ``value`` is a plain decimal string (``1500000``). A date or a time of day is in ISO 8601 (``2015-03-03``,
      ``18:00``). "Always open" is ``24/7``.
    - ``unit`` is the ISO 4217 code for money, ``percent``, or ``day`` for a duration. It is ``None`` for money
      without a country, such as ``$``.
    - ``original_value`` and ``original_unit`` are the value and the unit in the text (24, ``month``). They are
      stored because a month has thirty days only if the case states it.
    - ``start`` and ``end`` (exclusive) are code-point offsets in the original text. ``text`` is the original text
      between these offsets.
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
        """Return the value as an exact number. Raises `decimal.InvalidOperation` for dates and times of day."""
        return Decimal(self.value)


# Similar to Fact, but its places are in the folded text. The places of a Fact are in the original text.
class QuantityReading(NamedTuple):
    """A quantity that was read in a folded text.

    - ``first`` and ``last`` are its tokens (inclusive), ``start`` and ``end`` its characters.
    - ``months`` and ``days`` of a duration are separate, because a month has thirty days only if the case states
      it.
    - For a date, ``date`` is in ISO 8601: ``2015-03-03``, ``2015-03`` without a day, ``--03-03`` without a year.
    - For a time of day, ``date`` is for example ``18:00``, and ``value`` is in minutes.
    """

    kind: FactKind
    value: Decimal
    first: int
    last: int
    start: int
    end: int
    unit: str | None = None
    original_value: Decimal | None = None
    original_unit: str | None = None
    months: Decimal = Decimal(0)
    days: Decimal = Decimal(0)
    date: str = ""
    bound: Bound = Bound.EXACT
    ordinal: bool = False
    bare: bool = False
    """Whether the quantity consists only of digits."""
    worded: bool = False
    scale: Decimal = Decimal(1)
    prefixed: bool = False
    """Whether the currency precedes the amount."""
    may_be: frozenset[str] = frozenset()
    """The possible currencies of a sign or name that several currencies share. For ``$``, these are all dollars."""
    other_value: Decimal | None = None
    """The value with the other decimal mark, if both marks are possible: ``6.000`` is 6 or 6000."""
    attached: bool = False
    """Whether letters directly follow the digits. They may be an unknown unit or part of an identifier."""
    unread: bool = False
    """Whether the next word may be a scale or unit in an unsupported language: 5 Millionen, 24 Monate."""
    per: str = ""
    """The period that directly follows an amount: ``year`` for "€119 a year"."""
    counts: str = ""
    """The noun that an ordinal number counts: ``week`` in "the 28th week" and in "week 28"."""
