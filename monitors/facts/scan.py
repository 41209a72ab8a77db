"""Every quantity a text states, overlaps settled: "₹5 lakh" is money, not a number."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from monitors.facts import assemble
from monitors.facts.bounds import bound_of
from monitors.facts.dates import Day, date_at, relative_at
from monitors.facts.durations import DAYS_PER_MONTH, DAYS_PER_YEAR
from monitors.facts.fact import Fact, FactKind
from monitors.facts.normalise import Normalised, normalise
from monitors.facts.numbers import EXACT, plain
from monitors.facts.quantity_reader import STARTS, UNIT_KEYS, read_quantity
from monitors.facts.reading import Reading
from monitors.facts.tokens import tokenise
from monitors.facts.words import Reader
from monitors.records.base import Language

_ADDRESS = re.compile(r"https?://\S+")
"""Numbers in an address are no quantities."""

_DAY_DIGITS = Decimal("1e-9")
"""Hours and seconds as parts of a day, to a tenth of a millisecond."""


class Scan(NamedTuple):
    """A text's quantities with the tokens they stand in, for graders that look at the words around them."""

    normalised: Normalised
    reader: Reader
    readings: list[Reading]


def scan(text: str, *, reference_date: date | None = None) -> Scan:
    """Read ``text`` once, linear in its length."""
    normalised = normalise(text)
    reader = Reader(tokenise(normalised.text), units=UNIT_KEYS, starts=STARTS)
    readings = _walk(reader, normalised.text, reference_date)
    readings = assemble.merged(reader, readings)
    return Scan(normalised, reader, [_bounded(reader, reading) for reading in readings])


def _walk(reader: Reader, text: str, reference_date: date | None) -> list[Reading]:
    found: list[Reading] = []
    addresses = [match.span() for match in _ADDRESS.finditer(text)] if "http" in text else []
    at = 0
    for place in reader.interesting():
        if place < at or _inside(reader.token(place).start, addresses):
            continue
        hyphen = reader.token(place).text == "-"
        day = date_at(reader, text, place + 1 if hyphen else place)
        if day is None and reference_date is not None:
            day = relative_at(reader, place, reference_date)
        if day is not None:
            while found and found[-1].last >= day.first:
                found.pop()
            found.append(_date_reading(reader, day))
            at = day.after
            continue
        read = read_quantity(reader, place)
        found.extend(read)
        at = read[-1].last + 1 if read else at
    return found


def _inside(start: int, spans: list[tuple[int, int]]) -> bool:
    return any(begin <= start < end for begin, end in spans)


def _date_reading(reader: Reader, day: Day) -> Reading:
    start, end = reader.token(day.first).start, reader.token(day.after - 1).end
    return Reading(FactKind.DATE, Decimal(0), day.first, day.after - 1, start, end, date=day.iso)


def _bounded(reader: Reader, reading: Reading) -> Reading:
    if reading.kind is FactKind.DATE:
        return reading
    return reading._replace(bound=bound_of(reader, reading.first, reading.last))


def read_facts(
    text: str, *, language: Language | None = None, reference_date: date | None = None
) -> tuple[Fact, ...]:
    """The quantities of ``text``, sorted by where they stand; no two overlap.

    Spans are code points of ``text`` as given. ``language`` is not needed: the three are read together.
    ``reference_date`` makes "today" a date; without it, relative dates are not read.
    """
    del language
    scanned = scan(text, reference_date=reference_date)
    return tuple(to_fact(reading, text, scanned.normalised) for reading in scanned.readings if not reading.attached)


def to_fact(reading: Reading, text: str, normalised: Normalised) -> Fact:
    """The record of a reading, with its place in the text as it was given."""
    start, end = normalised.original_span(reading.start, reading.end)
    original = reading.original_value
    return Fact(
        kind=reading.kind,
        value=reading.date or plain(fact_value(reading)),
        unit=_unit(reading),
        original_value=None if original is None else plain(original),
        original_unit="ordinal" if reading.ordinal else _said_unit(reading),
        bound=reading.bound,
        start=start,
        end=end,
        text=text[start:end],
    )


def fact_value(reading: Reading) -> Decimal:
    """A duration in days by the calendar's averages (365 and 30); any other value as it is."""
    if reading.kind is not FactKind.DURATION:
        return reading.value
    years, months = divmod(reading.months, 12)
    if reading.original_value is None:
        pass
    elif reading.original_unit in {"year", "decade", "century"}:
        years, months = EXACT.divide(reading.months, Decimal(12)), Decimal(0)
    elif reading.original_unit == "month":
        years, months = Decimal(0), reading.months
    days = years * DAYS_PER_YEAR + months * DAYS_PER_MONTH + reading.days
    return days if days % 1 == 0 else days.quantize(_DAY_DIGITS, context=EXACT)


def _said_unit(reading: Reading) -> str | None:
    return reading.original_unit if reading.original_value is not None else None


def _unit(reading: Reading) -> str | None:
    match reading.kind:
        case FactKind.PERCENT:
            return "percent"
        case FactKind.DURATION:
            return "day"
        case FactKind.MONEY:
            return reading.unit
        case _:
            return None
