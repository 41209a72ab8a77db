"""Do two quantities say the same? Exact in Decimal, as loose as the case allows."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum

from monitors.facts.quantities.clock import ALWAYS
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.numerals import EXACT, is_multiple
from monitors.facts.quantities.units import DAYS_PER_MONTH, DAYS_PER_YEAR


class Match(IntEnum):
    """How a quantity of the reply compares with one of the gold."""

    OTHER = 0
    """The kinds differ: nothing to compare."""
    DIFFERENT = 1
    VAGUE = 2
    """Compatible but less precise: the year of a whole date."""
    SAME = 3


def compare(
    gold: QuantityReading,
    said: QuantityReading,
    *,
    month_is_30_days: bool,
    tolerance: Decimal,
    currency: str | None = None,
) -> Match:
    """Compare two readings by kind and value.

    ``currency`` is what an amount is in where it names none. A number whose decimal mark stays open never differs
    from what it may be: it is vague.
    """
    match = _compared(gold, said, month_is_30_days=month_is_30_days, tolerance=tolerance, currency=currency)
    if match is not Match.DIFFERENT or (gold.other_value is None and said.other_value is None):
        return match
    others = [
        (first, second)
        for first in (gold, _otherwise(gold))
        for second in (said, _otherwise(said))
        if first is not gold or second is not said
    ]
    may_be = any(_money_or_number(first, second, tolerance) is Match.SAME for first, second in others)
    return Match.VAGUE if may_be else match


def _otherwise(reading: QuantityReading) -> QuantityReading:
    return reading if reading.other_value is None else reading._replace(value=reading.other_value)


def _compared(
    gold: QuantityReading,
    said: QuantityReading,
    *,
    month_is_30_days: bool,
    tolerance: Decimal,
    currency: str | None,
) -> Match:
    if gold.kind is FactKind.DATE or said.kind is FactKind.DATE:
        return _dates(gold, said)
    if gold.kind is FactKind.TIME or said.kind is FactKind.TIME:
        return _times(gold, said)
    if gold.counts:
        return _places(gold, said, tolerance)
    if gold.kind is FactKind.DURATION and said.kind is FactKind.DURATION:
        return _match_of(_same_duration(gold, said, month_is_30_days=month_is_30_days, tolerance=tolerance))
    if gold.kind is said.kind:
        return _money_or_number(gold, said, tolerance)
    return _across(gold, said, tolerance, currency)


def _places(gold: QuantityReading, said: QuantityReading, tolerance: Decimal) -> Match:
    """A place in a row (the 28th week) against another, a bare number, or a time: 28 weeks, or the 27 before it."""
    if said.kind is FactKind.NUMBER:
        if said.counts == gold.counts:
            return _match_of(gold.value == said.value)
        return Match.SAME if not said.counts and gold.value == said.value else Match.OTHER
    if (
        said.kind is FactKind.DURATION
        and said.original_unit == gold.counts
        and said.original_value == gold.value - 1
    ):
        return Match.VAGUE
    return _across(gold, said, tolerance, None)


def _money_or_number(gold: QuantityReading, said: QuantityReading, tolerance: Decimal) -> Match:
    """Two quantities of one kind: numbers, amounts, percentages."""
    if not _same_currency(gold, said):
        return Match.DIFFERENT
    if _close(gold.value, said.value, tolerance) or _is_finer(gold, said):
        return Match.SAME if _era(said) is None or _era(gold) is not None else Match.VAGUE
    return Match.VAGUE if _is_vaguer(gold, said) else Match.DIFFERENT


def _same_currency(gold: QuantityReading, said: QuantityReading) -> bool:
    """A currency that is written is compared; an open one (``$``, pounds) fits any that it can be.

    Where nothing is known of an open one, it may be any but rupees, which are never left out of an amount.
    """
    if gold.unit is not None and gold.unit == said.unit:
        return True
    first, second = (one.may_be or ({one.unit} if one.unit else frozenset[str]()) for one in (gold, said))
    if first and second:
        return not first.isdisjoint(second)
    return "INR" not in {gold.unit, said.unit} or said.value < 1


def _era(reading: QuantityReading) -> tuple[Decimal, Decimal] | None:
    """First and last year of a decade (the 1920s) or century (the 16th century)."""
    if reading.original_unit == "decade_of":
        return reading.value, reading.value + 9
    if reading.original_unit == "century_of":
        return (reading.value - 1) * 100, reading.value * 100
    return None


def _is_vaguer(gold: QuantityReading, said: QuantityReading) -> bool:
    """The reply's number is the gold's, rounded; its decade or century; or it with a footnote's digit glued on."""
    era = _era(said)
    if era is not None:
        return era[0] <= gold.value <= era[1]
    if (
        gold.kind is FactKind.NUMBER
        and _is_year(gold)
        and said.bare
        and is_multiple(said.value, 1)
        and said.value.adjusted() in {4, 5}
    ):
        return str(said.value).startswith(str(gold.value))
    if abs(gold.value) < _ROUNDED_FROM or said.value == 0:
        return False
    digits = len(said.value.normalize().as_tuple().digits)
    if digits < 2 or digits >= len(gold.value.normalize().as_tuple().digits):  # noqa: PLR2004 - one digit is no rounded amount
        return False
    step = Decimal(1).scaleb(said.value.adjusted() - digits + 1)
    return abs(gold.value - said.value) <= step / 2


def _is_finer(gold: QuantityReading, said: QuantityReading) -> bool:
    """The reply's number is the gold's before rounding: 11.2249 for 11.22, or what a computer makes of 11.22."""
    if gold.scale != said.scale or gold.value == 0:
        return False
    if abs(gold.value - said.value) <= _NOISE * abs(gold.value):
        return True
    first, second = EXACT.divide(gold.value, gold.scale), EXACT.divide(said.value, said.scale)
    decimals = _decimals(first)
    if decimals < _ROUNDED_DECIMALS or _decimals(second) <= decimals:
        return False
    return abs(first - second) <= Decimal(5).scaleb(-decimals - 1)


def _decimals(value: Decimal) -> int:
    exponent = value.normalize(EXACT).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


_NOISE = Decimal("1e-9")
"""What binary floating point adds to a decimal number."""

_ROUNDED_DECIMALS = 2
"""A gold with so many decimals was rounded; one with fewer may be exact (1.5 % is not 1.52 %)."""

_ROUNDED_FROM = 10_000
"""Smaller numbers are stated exactly or wrongly."""


def _match_of(same: bool) -> Match:
    return Match.SAME if same else Match.DIFFERENT


def _close(first: Decimal, second: Decimal, tolerance: Decimal) -> bool:
    return first == second or abs(first - second) <= tolerance * abs(first)


def _same_duration(
    gold: QuantityReading, said: QuantityReading, *, month_is_30_days: bool, tolerance: Decimal
) -> bool:
    if _close(gold.months, said.months, tolerance) and _close_days(gold.days, said.days, tolerance):
        return True
    if _in_years(gold, said) or _in_years(said, gold):
        return True
    if not month_is_30_days:
        return False
    return _close_days(_days(gold), _days(said), tolerance)


_HAIR = Decimal("1e-12")
"""Hours and minutes are parts of a day that Decimal cannot hold exactly."""


def _close_days(first: Decimal, second: Decimal, tolerance: Decimal) -> bool:
    return abs(first - second) <= max(tolerance * abs(first), _HAIR)


def _days(reading: QuantityReading) -> Decimal:
    return reading.months * DAYS_PER_MONTH + reading.days


def _in_years(first: QuantityReading, second: QuantityReading) -> bool:
    """365 days are a year to everyone; a month is not thirty days."""
    years, rest = EXACT.divmod(first.months, Decimal(12))
    return (
        rest == 0 and years > 0 and first.days == 0 and second.months == 0 and second.days == years * DAYS_PER_YEAR
    )


def _across(gold: QuantityReading, said: QuantityReading, tolerance: Decimal, currency: str | None) -> Match:
    """A bare number against a number with a unit: equal values meet, unequal ones say nothing.

    A bare number is in the application's own currency, if it is money at all: it may not be the gold's euros.
    """
    kinds = {gold.kind, said.kind}
    if FactKind.NUMBER not in kinds:
        return Match.OTHER
    first = gold.original_value if gold.original_value is not None else gold.value
    second = said.original_value if said.original_value is not None else said.value
    if not _close(first, second, tolerance):
        # A gold of bare digits may have left out what everybody knows: 137 for $137 million.
        return Match.VAGUE if gold.bare and gold.value * said.scale == said.value else Match.OTHER
    if gold.kind is FactKind.NUMBER:
        return Match.SAME
    if gold.kind is FactKind.MONEY and None not in {currency, gold.unit} and currency != gold.unit:
        return Match.VAGUE
    # The unit is the gold's and missing in the reply: "36" for "36 months" is right only if nothing else fits.
    return Match.SAME if gold.kind is FactKind.MONEY and gold.value >= 100 else Match.VAGUE  # noqa: PLR2004


def _dates(gold: QuantityReading, said: QuantityReading) -> Match:
    if gold.kind is FactKind.DATE and said.kind is FactKind.DATE:
        return _two_dates(gold.date, said.date)
    day, number = (gold, said) if gold.kind is FactKind.DATE else (said, gold)
    if number.kind is not FactKind.NUMBER or number.ordinal or day.date.startswith("--"):
        return Match.OTHER
    same_year = number.value == Decimal(day.date[:4])
    era = _era(number)
    if era is not None:
        return Match.VAGUE if era[0] <= Decimal(day.date[:4]) <= era[1] else Match.DIFFERENT
    if gold is number:
        return Match.SAME if same_year else Match.OTHER if not _is_year(number) else Match.DIFFERENT
    if same_year:
        return Match.VAGUE
    return Match.DIFFERENT if _is_year(number) else Match.OTHER


def _times(gold: QuantityReading, said: QuantityReading) -> Match:
    """Two times of day; a bare hour may be one."""
    if gold.kind is said.kind:
        return _match_of(gold.value == said.value)
    time, number = (gold, said) if gold.kind is FactKind.TIME else (said, gold)
    if time.date == ALWAYS:
        # "Open 24 hours" may be every day of the week, and "within 24 hours" is something else.
        day = _days(number) == 1 if number.kind is FactKind.DURATION else number.value == 2 * _HALF_DAY
        return Match.VAGUE if day and number.kind in {FactKind.DURATION, FactKind.NUMBER} else Match.OTHER
    if number.kind is not FactKind.NUMBER or number.ordinal:
        return Match.OTHER
    hour = EXACT.divide(time.value, _MINUTES)
    if number.value not in {hour, hour - _HALF_DAY}:
        return Match.OTHER
    return Match.SAME if gold is number else Match.VAGUE


_MINUTES, _HALF_DAY = Decimal(60), 12


def _is_year(reading: QuantityReading) -> bool:
    return reading.bare and 1000 <= reading.value <= 2999 and is_multiple(reading.value, 1)  # noqa: PLR2004 - years have four digits, until 2999


def _two_dates(gold: str, said: str) -> Match:
    if gold == said:
        return Match.SAME
    if said.startswith("--"):
        return Match.VAGUE if gold.endswith(said[2:]) else Match.DIFFERENT
    if gold.startswith("--"):
        return Match.SAME if said.endswith(gold[2:]) else Match.DIFFERENT
    if said.startswith(gold):
        return Match.SAME
    return Match.VAGUE if gold.startswith(said) else Match.DIFFERENT
