"""Compare a figure of the reply with a figure of the gold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import product
from typing import Final

from monitors.facts.claims.equality import Match, compare_readings
from monitors.facts.claims.figures import Figure, FigureKind
from monitors.facts.claims.vocabulary import COUNTED
from monitors.facts.quantities.fact import Bound, FactKind, QuantityReading

Words = frozenset[str]


class Likeness(StrEnum):
    """The result of comparing a figure of the reply with a figure of the gold."""

    __hash__ = str.__hash__  # four times as fast as Enum's own hash; each reply needs hundreds of hashes

    SAME = "same"
    DIFFERENT = "different"
    OTHER_UNIT = "another unit"
    OTHER_PER = "per something else"
    OTHER_BOUND = "another bound"
    OTHER_SIGN = "the other sign"
    NEAR = "near"
    """The figures may be the same. For example, one figure is rounded, is an end of a range, or lacks the year."""
    OTHER = "not comparable"

    @property
    def is_contradicting_gold(self) -> bool:
        """Return whether the figure contradicts the gold, provided that both figures have the same subject."""
        return self is Likeness.DIFFERENT or self.has_number_with_other_meaning

    @property
    def has_number_with_other_meaning(self) -> bool:
        """Return whether the figure has the same number as the gold, but another unit, rate, bound or sign."""
        return self in {Likeness.OTHER_UNIT, Likeness.OTHER_PER, Likeness.OTHER_BOUND, Likeness.OTHER_SIGN}


@dataclass(frozen=True, slots=True)
class Leeway:
    """How exactly a reply must repeat the figures of a gold.

    ``tolerance`` is the permitted relative difference. ``currency`` is assumed for amounts without a currency.
    """

    month_is_30_days: bool = False
    tolerance: Decimal = Decimal(0)
    currency: str | None = None
    asked: Words = frozenset()
    """The stems of the words of the question.

    The reply may omit a rate that is in the question, such as "per month".
    """
    bound: Bound = Bound.EXACT
    """The bound that the question asks for, such as "at most"."""


_MATCHES: Final = {
    Match.SAME: Likeness.SAME,
    Match.DIFFERENT: Likeness.DIFFERENT,
    Match.VAGUE: Likeness.NEAR,
    Match.OTHER: Likeness.OTHER,
}
_PER_YEAR: Final = {"year": 1, "quarter": 4, "month": 12, "week": 52}
_PER_HOUR: Final = {"hour": 1, "minute": 60}
_RATE_PERIODS: Final = frozenset({"month", "week", "day", "hour", "minute"})
"""Periods that change the meaning of an amount if only the reply names them.

For example, "€1,400" for a course is not "€1,400 a month".
"""
_BUNDLES: Final = frozenset({"set", "pack", "box", "bag", "pair", "dozen", "bundl", "roll", "group"})
"""Stems of words for several things that have one price together: "£2.20 a set" is not "£2.20 each"."""
_MIN_CODE: Final = 8
"""A phone number with at least this many digits may be compared without its country code."""


def compare_figures(gold: Figure, reply: Figure, leeway: Leeway) -> Likeness:
    """Return how the figure of a reply differs from the expected figure ``gold``."""
    if gold.kind in _CODES or reply.kind in _CODES:
        return _compare_codes(gold, reply)
    if reply.said_free and reply.kind is FigureKind.PERCENT and gold.kind not in _WITH_HALF:
        return Likeness.OTHER  # "half a barrel" is not 50 %
    if gold.kind is FigureKind.UNLIMITED or reply.kind is FigureKind.UNLIMITED:
        return Likeness.SAME if gold.kind is reply.kind else Likeness.OTHER
    if gold.high is None and reply.high is None:
        likeness = _compare_bounded_values(gold, reply, leeway)
    elif gold.high is not None and reply.high is not None and _is_possible_hour_range(gold, reply):
        return Likeness.NEAR
    else:
        likeness = _compare_ranges(gold, reply, leeway)
    is_rated = likeness is Likeness.SAME or likeness is Likeness.DIFFERENT
    return _compare_rates(gold, reply, leeway, likeness) if is_rated else likeness


_CODES: Final = frozenset({FigureKind.IDENTIFIER, FigureKind.RATIO})


_WITH_HALF: Final = frozenset({FigureKind.PERCENT, FigureKind.NUMBER})


def _is_possible_hour_range(gold: Figure, reply: Figure) -> bool:
    """Return whether a range without a unit may mean hours: ``9–12`` compared with ``2–5 pm``."""
    bare = reply if reply.kind is FigureKind.NUMBER else gold
    times = {gold.kind, reply.kind} == {FigureKind.TIME, FigureKind.NUMBER}
    return times and bare.high is not None and not bare.noun and 0 <= bare.low.value <= bare.high.value <= _HOURS


_HOURS: Final = 24


def _compare_codes(gold: Figure, reply: Figure) -> Likeness:
    """Compare two identifiers by their letters and digits. Identifiers of the same form must be equal."""
    if (
        gold.kind is FigureKind.IDENTIFIER
        and reply.kind is FigureKind.NUMBER
        and gold.code.isdigit()
        and reply.low.bare
    ):
        digits = str(reply.low.value)
        same_length = len(digits) == len(gold.code)
        return Likeness.SAME if digits == gold.code else Likeness.DIFFERENT if same_length else Likeness.OTHER
    if gold.kind is not reply.kind:
        return Likeness.OTHER
    if gold.code == reply.code:
        return Likeness.SAME
    if gold.kind is FigureKind.RATIO:
        return Likeness.DIFFERENT
    gold_digits, reply_digits = (code.lstrip("+").lstrip("0") for code in (gold.code, reply.code))
    shorter, longer = sorted((gold_digits, reply_digits), key=len)
    if "+" in {gold.code[:1], reply.code[:1]} and len(shorter) >= _MIN_CODE and longer.endswith(shorter):
        return Likeness.SAME
    if _build_code_shape(gold.code) == _build_code_shape(reply.code):
        return Likeness.DIFFERENT
    return Likeness.NEAR if shorter and shorter in longer else Likeness.OTHER


def _build_code_shape(code: str) -> str:
    return "".join("9" if character.isdigit() else "A" for character in code.lstrip("+"))


_HALF: Final = Decimal("0.5")


def _compare_values(gold: QuantityReading, reply: QuantityReading, leeway: Leeway) -> Likeness:
    if gold.kind is FactKind.QUANTITY or reply.kind is FactKind.QUANTITY:
        return _compare_measures(gold, reply, leeway)
    percent, number = (gold, reply) if gold.kind is FactKind.PERCENT else (reply, gold)
    is_share = percent.kind is FactKind.PERCENT and number.kind is FactKind.NUMBER
    if is_share and _HALF in (percent.value, number.value):
        return Likeness.SAME if percent.value == 100 * _HALF else Likeness.DIFFERENT
    if gold.kind is reply.kind and gold.value < 0 and gold.value == -reply.value:
        return Likeness.NEAR  # "by 4 %" may be up or down
    match = compare_readings(
        gold, reply, month_is_30_days=leeway.month_is_30_days, tolerance=leeway.tolerance, currency=leeway.currency
    )
    return _MATCHES[match]


def _compare_measures(gold: QuantityReading, reply: QuantityReading, leeway: Leeway) -> Likeness:
    """Compare two measures in their base unit."""
    first = gold.original_value if gold.original_value is not None else gold.value
    second = reply.original_value if reply.original_value is not None else reply.value
    if gold.kind is reply.kind and gold.unit == reply.unit:
        if "°" in {gold.original_unit, reply.original_unit}:
            return Likeness.SAME if first == second else Likeness.DIFFERENT
        if abs(gold.value - reply.value) <= leeway.tolerance * abs(gold.value):
            return Likeness.SAME
        if gold.value == -reply.value and gold.value:
            return Likeness.OTHER_SIGN
        if gold.original_unit == reply.original_unit and _may_differ_only_by_separator(first, second):
            return Likeness.NEAR
        converted = gold.original_unit != reply.original_unit
        if converted and gold.value and abs(gold.value - reply.value) <= abs(gold.value) * _ROUNDED:
            return Likeness.NEAR
        return Likeness.OTHER_UNIT if converted and first == second else Likeness.DIFFERENT
    if first != second:
        return Likeness.OTHER
    if FactKind.NUMBER in {gold.kind, reply.kind}:
        number = reply if reply.kind is FactKind.NUMBER else gold
        return Likeness.NEAR if number.bare or number.worded else Likeness.OTHER
    return Likeness.OTHER_UNIT


_GROUP: Final = 1000
_GROUP_DIGITS: Final = 3


def _may_differ_only_by_separator(first: Decimal, second: Decimal) -> bool:
    """Return whether two figures may be equal except for their separators.

    A comma or a point can separate thousands or decimals (12.500).
    """
    return any(
        more == less * _GROUP and less.as_tuple().exponent == -_GROUP_DIGITS
        for more, less in ((first, second), (second, first))
    )


def is_conversion(first: Figure, second: Figure) -> bool:
    """Return whether two figures state one value in two ways.

    Examples are a measure in two units (2,150 m and 7,050 ft), and an amount for two periods (€36 a year and €3 a
    month).
    """
    first_reading, second_reading = first.low, second.low
    if first.kind is second.kind is FigureKind.MONEY and first.per != second.per:
        wanted, stated = (_list_periods_per_year(figure) for figure in (first, second))
        pairs = product(stated, wanted)
        return any(second_reading.value * times == first_reading.value * periods for times, periods in pairs)
    if (
        first_reading.kind is not FactKind.QUANTITY
        or first_reading.kind is not second_reading.kind
        or first_reading.unit != second_reading.unit
    ):
        return False
    return (
        first_reading.original_unit != second_reading.original_unit
        and abs(first_reading.value - second_reading.value) <= abs(first_reading.value) * _ROUNDED
    )


def _list_periods_per_year(figure: Figure) -> Iterable[int]:
    """Return how often the period of an amount occurs in a year: 12 for "€10 a month".

    For an amount without a rate, return the number for each known period.
    """
    if not figure.per:
        return _PER_YEAR.values()
    return [_PER_YEAR[period] for period in figure.per if period in _PER_YEAR]


_ROUNDED: Final = Decimal("0.02")
"""Maximum relative difference between a figure and its rounded conversion, such as 1.5 m and 5 ft."""


def _compare_bounded_values(gold: Figure, reply: Figure, leeway: Leeway) -> Likeness:
    stated = reply.low
    if leeway.bound is reply.bound and gold.bound is Bound.EXACT:  # "at most 16" for "How many at most?"
        stated = stated._replace(bound=Bound.EXACT)
    likeness = _compare_values(gold.low, stated, leeway)
    if (likeness is Likeness.OTHER or likeness is Likeness.NEAR) and _has_same_number_other_unit(gold, reply):
        return Likeness.OTHER_UNIT
    if likeness is Likeness.DIFFERENT and _has_same_number_other_time_unit_or_currency(gold.low, reply.low):
        return Likeness.OTHER_UNIT
    if (
        gold.kind is reply.kind is FigureKind.NUMBER
        and likeness is Likeness.DIFFERENT
        and gold.is_year != reply.is_year
    ):
        return Likeness.OTHER
    if gold.kind is reply.kind is FigureKind.NUMBER and gold.noun and reply.noun and not gold.noun & reply.noun:
        return Likeness.OTHER
    wanted = gold.bound if gold.bound is not Bound.EXACT else leeway.bound
    if (
        likeness is Likeness.DIFFERENT
        and gold.bound is not Bound.EXACT
        and abs(gold.low.value - reply.low.value) == 1
    ):
        return Likeness.NEAR  # "under 7" equals "up to and including 6"
    if likeness is Likeness.SAME and {wanted, reply.bound} == {Bound.AT_MOST, Bound.AT_LEAST}:
        return Likeness.OTHER_BOUND
    return likeness


_WITH_UNIT: Final = frozenset({FigureKind.MONEY, FigureKind.PERCENT, FigureKind.DURATION, FigureKind.QUANTITY})


def _has_same_number_other_unit(gold: Figure, reply: Figure) -> bool:
    """Return whether the reply has the same number as the gold, but another unit: ``₹10`` instead of "10 %"."""
    first, second = (figure.low.original_value or figure.low.value for figure in (gold, reply))
    counted = gold.kind is FigureKind.NUMBER and bool(gold.noun)
    units = gold.kind in _WITH_UNIT and reply.kind is not gold.kind
    return first == second != 0 and reply.kind in _WITH_UNIT and not reply.said_free and (units or counted)


def _has_same_number_other_time_unit_or_currency(gold: QuantityReading, reply: QuantityReading) -> bool:
    """Return whether the reply has the number of the gold, but another unit of time or another currency.

    For example, the gold is "2 years" and the reply has "2 months".
    """
    if gold.kind is not reply.kind:
        return False
    if gold.kind is FactKind.DURATION:
        same = gold.original_value == reply.original_value is not None
        return same and gold.original_unit != reply.original_unit
    currencies = {gold.unit, reply.unit}
    return gold.kind is FactKind.MONEY and gold.value == reply.value and len(currencies - {None}) > 1


def _compare_ranges(gold: Figure, reply: Figure, leeway: Leeway) -> Likeness:  # noqa: C901 - one row for each pair of ends
    """Compare two ranges by both ends. A range and a single value inside the range are `NEAR`."""
    if gold.high is not None and reply.high is not None:
        ends = (_compare_values(gold.low, reply.low, leeway), _compare_values(gold.high, reply.high, leeway))
        if ends == (Likeness.SAME, Likeness.SAME):
            return Likeness.SAME
        if Likeness.OTHER in ends:
            return Likeness.OTHER
        return Likeness.DIFFERENT if any(end.is_contradicting_gold for end in ends) else Likeness.NEAR
    if gold.high is None:
        ends = (
            _compare_values(gold.low, reply.low, leeway),
            _compare_values(gold.low, reply.high or reply.low, leeway),
        )
        if Likeness.OTHER in ends:
            return Likeness.OTHER
        low, high = reply.low, reply.high or reply.low
        if (ends[1] is Likeness.SAME and gold.bound is Bound.AT_MOST) or (
            ends[0] is Likeness.SAME and gold.bound is Bound.AT_LEAST
        ):
            return Likeness.SAME
        return (
            Likeness.DIFFERENT
            if all(end.is_contradicting_gold for end in ends) and not _is_between(gold.low, low, high)
            else Likeness.NEAR
        )
    ends = (_compare_values(gold.low, reply.low, leeway), _compare_values(gold.high, reply.low, leeway))
    if Likeness.OTHER in ends:
        return Likeness.OTHER
    if (ends[0] is Likeness.SAME and reply.bound is Bound.AT_MOST) or (
        ends[1] is Likeness.SAME and reply.bound is Bound.AT_LEAST
    ):
        return Likeness.OTHER_BOUND
    size = to_comparable_size(reply.low)
    is_outer_limit = (reply.bound is Bound.AT_MOST and size > to_comparable_size(gold.high)) or (
        reply.bound is Bound.AT_LEAST and size < to_comparable_size(gold.low)
    )
    if is_outer_limit:
        return Likeness.NEAR  # "under ten" for "5 to 8"
    if all(end.is_contradicting_gold for end in ends):
        return Likeness.NEAR if _is_between(reply.low, gold.low, gold.high) else Likeness.DIFFERENT
    return Likeness.NEAR


def _is_between(value: QuantityReading, low: QuantityReading, high: QuantityReading) -> bool:
    size = to_comparable_size(value)
    return to_comparable_size(low) <= size <= to_comparable_size(high)


def to_comparable_size(reading: QuantityReading) -> Decimal:
    """Return the size of a reading: the days of a duration (30 for a month), or else the value in the base unit."""
    return reading.months * 30 + reading.days if reading.kind is FactKind.DURATION else reading.value


def _compare_rates(gold: Figure, reply: Figure, leeway: Leeway, values: Likeness) -> Likeness:
    """Compare the rates of two amounts. Periods are converted: £8 a month is £96 a year."""
    likeness = Likeness.SAME
    value_same = values is Likeness.SAME
    if gold.per and reply.per:
        if gold.per <= reply.per:  # the reply may say more: "per started metre" for "per metre"
            likeness = Likeness.SAME
        elif _is_same_rate_per_other_period(gold, reply):
            return Likeness.SAME
        elif not value_same:
            return (
                Likeness.NEAR
                if _has_only_period_words(gold.per) and _has_only_period_words(reply.per)
                else Likeness.OTHER
            )
        else:
            # otherwise both may mean the same rate
            comparable = _has_count_unit(gold.per) and _has_count_unit(reply.per)
            return Likeness.OTHER_PER if comparable and not reply.per < gold.per else Likeness.NEAR
    elif gold.per:
        likeness = Likeness.SAME if gold.per <= leeway.asked else Likeness.NEAR
    elif reply.per & (_BUNDLES | _RATE_PERIODS) and not (reply.per <= leeway.asked or reply.per & gold.noun):
        likeness = Likeness.NEAR
    if value_same:
        return likeness
    return Likeness.DIFFERENT if likeness is Likeness.SAME or not (gold.per and reply.per) else Likeness.NEAR


def _has_count_unit(per: Words) -> bool:
    return any(word in COUNTED or word[0].isdigit() or _has_only_period_words(frozenset({word})) for word in per)


def _has_only_period_words(per: Words) -> bool:
    return all(word in _PER_YEAR or word in _PER_HOUR or word == "day" for word in per)


def _is_same_rate_per_other_period(gold: Figure, reply: Figure) -> bool:
    for table in (_PER_YEAR, _PER_HOUR):
        gold_factor, reply_factor = (
            next((table[word] for word in figure.per if word in table), None) for figure in (gold, reply)
        )
        if gold_factor and reply_factor and gold.kind is reply.kind and len(gold.per) == len(reply.per) == 1:
            return (
                gold.low.value * gold_factor == reply.low.value * reply_factor and gold.low.unit == reply.low.unit
            )
    return False
