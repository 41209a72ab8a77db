"""From amounts to readings of each kind."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.durations import TIME_UNITS, TimeUnit
from monitors.facts.fact import FactKind
from monitors.facts.number_words import Part
from monitors.facts.numbers import is_multiple
from monitors.facts.reading import Reading
from monitors.facts.tokens import WORD
from monitors.facts.words import Amount, Reader


def reading_of(reader: Reader, kind: FactKind, amount: Amount, *, last: int, first: int | None = None) -> Reading:
    """An amount as a quantity that reaches from token ``first`` to ``last`` (inclusive)."""
    first = amount.first if first is None else first
    start = amount.start if first == amount.first else reader.token(first).start
    end = amount.end if last == amount.last else reader.token(last).end
    return Reading(
        kind,
        amount.value,
        first,
        last,
        start,
        end,
        ordinal=amount.ordinal,
        bare=amount.bare,
        worded=amount.worded,
        scale=amount.scale,
    )


def money_reading(reader: Reader, amount: Amount, code: str | None, *, first: int, last: int) -> Reading:
    """Money; ``code`` is ISO 4217 or ``None`` where the country is open."""
    return reading_of(reader, FactKind.MONEY, amount, first=first, last=last)._replace(unit=code)


def duration_reading(reader: Reader, amount: Amount, unit: TimeUnit, last: int) -> Reading:
    """A duration, months and days apart."""
    if amount.value < 0:
        # No duration is negative: the hyphen was a dash ("Waiting period -36 months").
        start = reader.token(amount.first + 1).start
        amount = amount._replace(value=-amount.value, first=amount.first + 1, start=start)
    return reading_of(reader, FactKind.DURATION, amount, last=last)._replace(
        original_value=amount.value,
        original_unit=unit.name,
        months=amount.value * unit.months,
        days=amount.value * unit.days,
    )


def duration_with_half(reader: Reader, amount: Amount, unit: TimeUnit, after: int) -> Reading:
    """``one hour and a half``, ``one year and a quarter``."""
    if reader.part(after) is Part.AND and reader.part(after + 1) is Part.ARTICLE:
        word = reader.word(after + 2)
        if word is not None and word.part is Part.FRACTION and reader.token(after + 3).key not in TIME_UNITS:
            amount = amount._replace(value=amount.value + word.value)
            after += 3
    return duration_reading(reader, amount, unit, after - 1)


def number_reading(reader: Reader, amount: Amount) -> Reading:
    """A number; decades and centuries are marked, and digits with letters right behind them."""
    reading = reading_of(reader, FactKind.NUMBER, amount, last=amount.last)
    following = reader.token(amount.last + 1)
    glued = following.kind == WORD and following.start == amount.end and not amount.ordinal
    if amount.ordinal and following.key in _CENTURIES:
        return reading._replace(original_unit="century_of")
    if (
        glued
        and amount.bare
        and following.key == "s"
        and is_multiple(amount.value, 10)
        and amount.value >= _FIRST_DECADE
    ):
        return reading._replace(original_unit="decade_of", last=amount.last + 1, end=following.end)
    if (
        following.key in {"के", "का", "की"}
        and reader.token(amount.last + 2).key == "दशक"
        and amount.value >= _FIRST_DECADE
    ):
        return reading._replace(original_unit="decade_of")
    return reading._replace(attached=glued and following.key != "x" and amount.bare)


_CENTURIES = frozenset({"century", "शताब्दी", "सदी", "sadi"})
_FIRST_DECADE = 1000


def plain_number(reader: Reader, at: int) -> Reading:
    """The reading of digits that `Reader.is_plain_number` found, without the detours."""
    token = reader.token(at)
    return Reading(FactKind.NUMBER, Decimal(token.text), at, at, token.start, token.end, bare=True)
