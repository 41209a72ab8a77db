"""Every quantity a text states, overlaps settled: "₹5 lakh" is money, not a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from monitors.facts import assemble
from monitors.facts.bounds import bound_of
from monitors.facts.dates import Day, date_at, relative_at
from monitors.facts.durations import DAYS_PER_MONTH, DAYS_PER_YEAR
from monitors.facts.fact import Bound, Fact, FactKind
from monitors.facts.making import plain_number
from monitors.facts.normalise import Normalised, normalise
from monitors.facts.numbers import EXACT, is_multiple, plain
from monitors.facts.quantity_reader import read_quantity
from monitors.facts.reading import Reading
from monitors.facts.tokens import tokenise
from monitors.facts.unit_keys import STARTS, UNIT_KEYS
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
    cut: bool = False
    """Whether a limit was reached and the rest was not read."""


class Limits(NamedTuple):
    """How much of a text is read; ``None`` means all."""

    tokens: int | None = None
    readings: int | None = None


EVERYTHING = Limits()


def scan(text: str, *, reference_date: date | None = None, limits: Limits = EVERYTHING) -> Scan:
    """Read ``text`` once, linear in its length."""
    normalised = normalise(text)
    tokens = tokenise(normalised.text, most=limits.tokens)
    reader = Reader(tokens, units=UNIT_KEYS, starts=STARTS)
    if len(tokens) == limits.tokens:
        return Scan(normalised, reader, [], cut=True)
    readings = _walk(reader, normalised.text, reference_date, limits.readings or len(tokens))
    cut = len(readings) == limits.readings
    readings = assemble.merged(reader, readings)
    return Scan(normalised, reader, [_bounded(reader, reading) for reading in readings], cut)


def _walk(reader: Reader, text: str, reference_date: date | None, most: int) -> list[Reading]:
    found: list[Reading] = []
    at = 0
    for place in _outside_addresses(reader, text):
        if place < at:
            continue
        if len(found) >= most:
            return found[:most]
        if reader.is_plain_number(place) and not reader.has_months:
            found.append(plain_number(reader, place))
            at = place + 1
            continue
        day = _date_at(reader, text, place, reference_date)
        if day is None:
            read = read_quantity(reader, place)
            found.extend(read)
            at = read[-1].last + 1 if read else at
            continue
        while found and found[-1].last >= day.first:
            found.pop()
        found.append(_date_reading(reader, day))
        at = day.after
    return found


def _date_at(reader: Reader, text: str, place: int, reference_date: date | None) -> Day | None:
    """A date at a token, or behind a hyphen that stands there."""
    day = date_at(reader, text, place + 1 if reader.token(place).text == "-" else place)
    if day is None and reference_date is not None:
        return relative_at(reader, place, reference_date)
    return day


def _outside_addresses(reader: Reader, text: str) -> Iterator[int]:
    """The places where a quantity could begin, without those inside an address."""
    places = reader.interesting()
    if "http" not in text:
        yield from places
        return
    addresses = _ADDRESS.finditer(text)
    address = next(addresses, None)
    for place in places:
        start = reader.token(place).start
        while address is not None and address.end() <= start:
            address = next(addresses, None)
        if address is None or start < address.start():
            yield place


def _date_reading(reader: Reader, day: Day) -> Reading:
    start, end = reader.token(day.first).start, reader.token(day.after - 1).end
    return Reading(FactKind.DATE, Decimal(0), day.first, day.after - 1, start, end, date=day.iso)


def _bounded(reader: Reader, reading: Reading) -> Reading:
    if reading.kind is FactKind.DATE:
        return reading
    bound = bound_of(reader, reading.first, reading.last)
    return reading if bound is Bound.EXACT else reading._replace(bound=bound)


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
    years, months = EXACT.divmod(reading.months, Decimal(12))
    if reading.original_value is None:
        pass
    elif reading.original_unit in {"year", "decade", "century"}:
        years, months = EXACT.divide(reading.months, Decimal(12)), Decimal(0)
    elif reading.original_unit == "month":
        years, months = Decimal(0), reading.months
    days = years * DAYS_PER_YEAR + months * DAYS_PER_MONTH + reading.days
    return days if is_multiple(days, 1) else days.quantize(_DAY_DIGITS, context=EXACT)


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
