"""What a reader found, before it becomes a record: light, with what graders need to compare exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from monitors.facts.fact import Bound, FactKind


class Reading(NamedTuple):
    """One quantity in a folded text.

    ``first`` and ``last`` are its tokens (inclusive), ``start`` and ``end`` its characters. A duration keeps
    ``months`` and ``days`` apart, since a month is not thirty days unless a case says so. ``date`` is ISO 8601:
    ``2015-03-03``, ``2015-03`` or ``--03-03`` where the year or the day is not said.
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
    """Digits and nothing else."""
    worded: bool = False
    scale: Decimal = Decimal(1)
    prefixed: bool = False
    """The currency stands before the amount."""
    attached: bool = False
    """Letters of no known unit stand right behind or before the digits: a measure or an identifier."""
