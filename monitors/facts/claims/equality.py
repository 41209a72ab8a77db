"""Compare two quantities, either exactly (in Decimal) or within the tolerance of the case."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum

from monitors.facts.quantities.clock import ALWAYS
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.numerals import EXACT, is_multiple
from monitors.facts.quantities.units import DAYS_PER_MONTH, DAYS_PER_YEAR


class Match(IntEnum):
    """The result of comparing a quantity of the reply with a quantity of the gold."""

    OTHER = 0
    """The two quantities are of different kinds and cannot be compared."""
    DIFFERENT = 1
    VAGUE = 2
    """The reply is less exact but not wrong, for example it has the year instead of the date."""
    SAME = 3


def compare_readings(
    gold: QuantityReading,
    reply: QuantityReading,
    *,
    month_is_30_days: bool,
    tolerance: Decimal,
    currency: str | None = None,
) -> Match:
    """Compare two quantities by kind and value.

    ``currency`` is assumed for an amount without a currency. A number such as 6.000 may be 6 or 6000. If one of
    these values is equal to the other quantity, the result is at least `VAGUE`.
    """
    match = _compare_by_kind(gold, reply, month_is_30_days=month_is_30_days, tolerance=tolerance, currency=currency)
    if match is not Match.DIFFERENT or (gold.other_value is None and reply.other_value is None):
        return match
    others = [
        (first, second)
        for first in (gold, _replace_with_other_value(gold))
        for second in (reply, _replace_with_other_value(reply))
        if first is not gold or second is not reply
    ]
    may_be = any(_compare_amounts(first, second, tolerance) is Match.SAME for first, second in others)
    return Match.VAGUE if may_be else match


def _replace_with_other_value(reading: QuantityReading) -> QuantityReading:
    return reading if reading.other_value is None else reading._replace(value=reading.other_value)


def _compare_by_kind(
    gold: QuantityReading,
    reply: QuantityReading,
    *,
    month_is_30_days: bool,
    tolerance: Decimal,
    currency: str | None,
) -> Match:
    if gold.kind is FactKind.DATE or reply.kind is FactKind.DATE:
        return _compare_dates(gold, reply)
    if gold.kind is FactKind.TIME or reply.kind is FactKind.TIME:
        return _compare_times(gold, reply)
    if gold.counts:
        return _compare_ordinal_places(gold, reply, tolerance)
    if gold.kind is FactKind.DURATION and reply.kind is FactKind.DURATION:
        return _to_match(_is_same_duration(gold, reply, month_is_30_days=month_is_30_days, tolerance=tolerance))
    if gold.kind is reply.kind:
        return _compare_amounts(gold, reply, tolerance)
    return _compare_across_kinds(gold, reply, tolerance, currency)


def _compare_ordinal_places(gold: QuantityReading, reply: QuantityReading, tolerance: Decimal) -> Match:
    """Compare an ordinal (the 28th week) with another ordinal, a number without a unit, or a duration."""
    if reply.kind is FactKind.NUMBER:
        if reply.counts == gold.counts:
            return _to_match(gold.value == reply.value)
        return Match.SAME if not reply.counts and gold.value == reply.value else Match.OTHER
    if (
        reply.kind is FactKind.DURATION
        and reply.original_unit == gold.counts
        and reply.original_value == gold.value - 1
    ):
        return Match.VAGUE
    return _compare_across_kinds(gold, reply, tolerance, None)


def _compare_amounts(gold: QuantityReading, reply: QuantityReading, tolerance: Decimal) -> Match:
    """Compare two quantities of one kind: numbers, amounts, percentages."""
    if not _may_have_same_currency(gold, reply):
        return Match.DIFFERENT
    if _is_close(gold.value, reply.value, tolerance) or _is_more_exact_number(gold, reply):
        return (
            Match.SAME
            if _find_first_and_last_year(reply) is None or _find_first_and_last_year(gold) is not None
            else Match.VAGUE
        )
    return Match.VAGUE if _is_vaguer_number(gold, reply) else Match.DIFFERENT


def _may_have_same_currency(gold: QuantityReading, reply: QuantityReading) -> bool:
    """Return whether two currencies can be the same. ``$`` can be any dollar, and "pounds" any pound.

    An amount without a currency can be in any currency except rupees, because texts always name rupees.
    """
    if gold.unit is not None and gold.unit == reply.unit:
        return True
    first, second = (
        reading.may_be or ({reading.unit} if reading.unit else frozenset[str]()) for reading in (gold, reply)
    )
    if first and second:
        return not first.isdisjoint(second)
    return "INR" not in {gold.unit, reply.unit} or reply.value < 1


def _find_first_and_last_year(reading: QuantityReading) -> tuple[Decimal, Decimal] | None:
    """Return the first and last year of a decade (the 1920s) or a century (the 16th)."""
    if reading.original_unit == "decade_of":
        return reading.value, reading.value + 9
    if reading.original_unit == "century_of":
        return (reading.value - 1) * 100, reading.value * 100
    return None


def _is_vaguer_number(gold: QuantityReading, reply: QuantityReading) -> bool:
    """Return whether the reply has the number of the gold in a less exact form.

    The number of the reply is rounded, is a decade, or has the digit of a footnote at its end.
    """
    era = _find_first_and_last_year(reply)
    if era is not None:
        return era[0] <= gold.value <= era[1]
    if (
        gold.kind is FactKind.NUMBER
        and _is_year(gold)
        and reply.bare
        and is_multiple(reply.value, 1)
        and reply.value.adjusted() in {4, 5}
    ):
        return str(reply.value).startswith(str(gold.value))
    if abs(gold.value) < _ROUNDED_FROM or reply.value == 0:
        return False
    digits = len(reply.value.normalize().as_tuple().digits)
    if digits < 2 or digits >= len(gold.value.normalize().as_tuple().digits):  # noqa: PLR2004 - one digit is no rounded amount
        return False
    step = Decimal(1).scaleb(reply.value.adjusted() - digits + 1)
    return abs(gold.value - reply.value) <= step / 2


def _is_more_exact_number(gold: QuantityReading, reply: QuantityReading) -> bool:
    """Return whether the gold is the number of the reply after rounding: 11.22 for 11.2249."""
    if gold.scale != reply.scale or gold.value == 0:
        return False
    if abs(gold.value - reply.value) <= _NOISE * abs(gold.value):
        return True
    first, second = EXACT.divide(gold.value, gold.scale), EXACT.divide(reply.value, reply.scale)
    decimals = _count_decimals(first)
    if decimals < _ROUNDED_DECIMALS or _count_decimals(second) <= decimals:
        return False
    return abs(first - second) <= Decimal(5).scaleb(-decimals - 1)


def _count_decimals(value: Decimal) -> int:
    exponent = value.normalize(EXACT).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


_NOISE = Decimal("1e-9")
"""Maximum relative difference of two numbers that counts as a rounding error of binary floating point."""

_ROUNDED_DECIMALS = 2
"""A gold with at least this many decimals is assumed to be rounded.

With fewer decimals, it may be exact: 1.5 % is not 1.52 %.
"""

_ROUNDED_FROM = 10_000
"""A reply may round a gold only if the absolute value of the gold is at least this."""


def _to_match(same: bool) -> Match:
    return Match.SAME if same else Match.DIFFERENT


def _is_close(first: Decimal, second: Decimal, tolerance: Decimal) -> bool:
    return first == second or abs(first - second) <= tolerance * abs(first)


def _is_same_duration(
    gold: QuantityReading, reply: QuantityReading, *, month_is_30_days: bool, tolerance: Decimal
) -> bool:
    if _is_close(gold.months, reply.months, tolerance) and _is_close_in_days(gold.days, reply.days, tolerance):
        return True
    if _are_equal_whole_years(gold, reply) or _are_equal_whole_years(reply, gold):
        return True
    if not month_is_30_days:
        return False
    return _is_close_in_days(_count_days(gold), _count_days(reply), tolerance)


_HAIR = Decimal("1e-12")
"""Tolerance in days for durations in hours and minutes, because Decimal cannot store them exactly in days."""


def _is_close_in_days(first: Decimal, second: Decimal, tolerance: Decimal) -> bool:
    return abs(first - second) <= max(tolerance * abs(first), _HAIR)


def _count_days(reading: QuantityReading) -> Decimal:
    return reading.months * DAYS_PER_MONTH + reading.days


def _are_equal_whole_years(first: QuantityReading, second: QuantityReading) -> bool:
    """Return whether two durations are equal whole years: the first in months, the second in days (365 a year)."""
    years, rest = EXACT.divmod(first.months, Decimal(12))
    return (
        rest == 0 and years > 0 and first.days == 0 and second.months == 0 and second.days == years * DAYS_PER_YEAR
    )


def _compare_across_kinds(
    gold: QuantityReading, reply: QuantityReading, tolerance: Decimal, currency: str | None
) -> Match:
    """Compare a number without a unit with a number that has a unit. Different values are rarely comparable.

    If the gold is money in another currency than ``currency``, an equal number without a unit is only `VAGUE`.
    """
    kinds = {gold.kind, reply.kind}
    if FactKind.NUMBER not in kinds:
        return Match.OTHER
    first = gold.original_value if gold.original_value is not None else gold.value
    second = reply.original_value if reply.original_value is not None else reply.value
    if not _is_close(first, second, tolerance):
        # A gold without a unit may omit a unit that is clear from the question: 137 for $137 million.
        return Match.VAGUE if gold.bare and gold.value * reply.scale == reply.value else Match.OTHER
    if gold.kind is FactKind.NUMBER:
        return Match.SAME
    if gold.kind is FactKind.MONEY and None not in {currency, gold.unit} and currency != gold.unit:
        return Match.VAGUE
    # Only the gold has a unit. "36" for "36 months" is right only if no other figure of the reply fits.
    return Match.SAME if gold.kind is FactKind.MONEY and gold.value >= 100 else Match.VAGUE  # noqa: PLR2004


def _compare_dates(gold: QuantityReading, reply: QuantityReading) -> Match:
    if gold.kind is FactKind.DATE and reply.kind is FactKind.DATE:
        return _compare_iso_dates(gold.date, reply.date)
    day, number = (gold, reply) if gold.kind is FactKind.DATE else (reply, gold)
    if number.kind is not FactKind.NUMBER or number.ordinal or day.date.startswith("--"):
        return Match.OTHER
    same_year = number.value == Decimal(day.date[:4])
    era = _find_first_and_last_year(number)
    if era is not None:
        return Match.VAGUE if era[0] <= Decimal(day.date[:4]) <= era[1] else Match.DIFFERENT
    if gold is number:
        return Match.SAME if same_year else Match.OTHER if not _is_year(number) else Match.DIFFERENT
    if same_year:
        return Match.VAGUE
    return Match.DIFFERENT if _is_year(number) else Match.OTHER


def _compare_times(gold: QuantityReading, reply: QuantityReading) -> Match:
    """Compare two times of day. A number without a unit may be an hour."""
    if gold.kind is reply.kind:
        return _to_match(gold.value == reply.value)
    time, number = (gold, reply) if gold.kind is FactKind.TIME else (reply, gold)
    if time.date == ALWAYS:
        # "Open 24 hours" may be every day of the week; "within 24 hours" has another meaning.
        day = _count_days(number) == 1 if number.kind is FactKind.DURATION else number.value == 2 * _HALF_DAY
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


def _compare_iso_dates(gold: str, reply: str) -> Match:
    if gold == reply:
        return Match.SAME
    if reply.startswith("--"):
        return Match.VAGUE if gold.endswith(reply[2:]) else Match.DIFFERENT
    if gold.startswith("--"):
        return Match.SAME if reply.endswith(gold[2:]) else Match.DIFFERENT
    if reply.startswith(gold):
        return Match.SAME
    return Match.VAGUE if gold.startswith(reply) else Match.DIFFERENT
