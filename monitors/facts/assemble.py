"""Quantities that belong together: compounds, hundredths, ranges."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.currencies import MINOR
from monitors.facts.fact import FactKind
from monitors.facts.numbers import LARGEST, is_multiple
from monitors.facts.reading import Reading
from monitors.facts.tokens import END
from monitors.facts.words import Reader

_JOINTS = frozenset({"and", "और", "aur", ",", "&", "एवं", "व"})
_RANGES = frozenset(
    {"-", "–", "—", "to", "or", "से", "या", "se", "ya", "and", "और", "aur", "/", "through", "&", ","}
)
_ENDS_OF_RANGE = frozenset({"-", "–", "to", "से"})
_LOOSE = frozenset({"and", "और", "aur", ",", "/", "&"})
"""Between these, digits that look like a year keep to themselves: "in 2006, 95 %"."""

_FIRST_YEAR, _LAST_YEAR = 1900, 2099


def merged(reader: Reader, readings: list[Reading]) -> list[Reading]:
    """The readings with compounds joined and units handed along ranges; order kept."""
    joined: list[Reading] = []
    for reading in readings:
        if joined:
            whole = _joined(reader, joined[-1], reading)
            if whole is not None:
                joined[-1] = whole
                continue
        joined.append(reading)
    return _ranged(reader, joined)


def _gap(reader: Reader, first: Reading, second: Reading) -> list[str]:
    if second.first - first.last > 3:  # noqa: PLR2004 - nothing that joins is longer
        return ["…"]
    return [reader.token(at).key for at in range(first.last + 1, second.first)]


# --- compounds ------------------------------------------------------------------------------------------------


def _joined(reader: Reader, first: Reading, second: Reading) -> Reading | None:
    gap = _gap(reader, first, second)
    if len(gap) > 1 or (gap and gap[0] not in _JOINTS):
        return _hour_and_half(reader, first, second)
    if first.kind is FactKind.DURATION:
        return _compound(reader, first, second, gap)
    if first.kind is FactKind.MONEY:
        return _hundredths(reader, first, second, gap)
    return None


_FULL = {
    ("year", "month"): 12, ("year", "week"): 52, ("year", "day"): 365, ("month", "week"): 4, ("month", "day"): 30,
    ("week", "day"): 7, ("day", "hour"): 24, ("hour", "minute"): 60, ("minute", "second"): 60,
}  # fmt: skip
"""What makes a whole one of the larger unit: "24 months and 30 days" are two durations, not one."""

_ANY = 1_000_000

_ORDER = ["century", "decade", "year", "month", "week", "day", "hour", "minute", "second"]


def _compound(reader: Reader, first: Reading, second: Reading, gap: list[str]) -> Reading | None:
    """``2 years, 3 months``; ``1 hour fifteen``; ``one year and a quarter``."""
    if second.kind is FactKind.DURATION:
        units = (first.original_unit, second.original_unit)
        if units[0] not in _ORDER or units[1] not in _ORDER or _ORDER.index(units[0]) >= _ORDER.index(units[1]):
            return None
        if (second.original_value or 0) >= _FULL.get((units[0] or "", units[1] or ""), _ANY):
            return None
        return first._replace(
            last=second.last,
            end=second.end,
            months=first.months + second.months,
            days=first.days + second.days,
            original_value=None,
            original_unit=second.original_unit,
        )
    minutes = second.kind is FactKind.NUMBER and first.original_unit == "hour" and 0 < second.value < 60  # noqa: PLR2004
    if minutes and not second.ordinal and _ends(reader, second.last + 1) and gap != [","]:
        return first._replace(
            last=second.last,
            end=second.end,
            days=first.days + second.value / 1440,
            original_value=None,
            original_unit=None,
        )
    return None


def _ends(reader: Reader, at: int) -> bool:
    token = reader.token(at)
    return token is END or token.text in {".", ",", ";", ")", "!", "?", "।"}


def _hour_and_half(reader: Reader, first: Reading, second: Reading) -> Reading | None:
    del reader, first, second
    return None


def _hundredths(reader: Reader, first: Reading, second: Reading, gap: list[str]) -> Reading | None:
    """``3 dollars 50 cents``, ``15 dollars and 50``; a number that goes on with a noun is its own."""
    if first.scale > 1 or not is_multiple(first.value, 1):
        return None
    minor = second.kind is FactKind.MONEY and reader.token(second.last).key in MINOR and second.unit is None
    if minor and second.value < 1:
        return first._replace(value=first.value + second.value, last=second.last, end=second.end)
    if second.kind is not FactKind.NUMBER or gap == [","] or not 0 < second.value < 100 or second.value % 1:  # noqa: PLR2004
        return None
    if second.ordinal or (second.first != second.last and not second.worded):
        return None
    following = reader.token(second.last + 1)
    if following.key in MINOR and following.end - following.start == 1:
        return first._replace(value=first.value + second.value / 100, last=second.last + 1, end=following.end)
    behind = not first.prefixed or gap
    if behind and (_ends(reader, second.last + 1) or following.key in {"is", "है", "more", "की"}):
        return first._replace(value=first.value + second.value / Decimal(100), last=second.last, end=second.end)
    return None


# --- ranges ---------------------------------------------------------------------------------------------------


def _ranged(reader: Reader, readings: list[Reading]) -> list[Reading]:
    """Units go from the last of a range or list to those before it (``30 or 90 days``), a sign to those after."""
    result = list(readings)
    for place in range(len(result) - 2, -1, -1):
        first, second = result[place], result[place + 1]
        gap = _gap(reader, first, second)
        if len(gap) == 1 and gap[0] in _RANGES and first.kind is FactKind.NUMBER:
            result[place] = first if first.ordinal or first.attached else _like(first, second, gap[0])
    for place in range(1, len(result)):
        gap = _gap(reader, result[place - 1], result[place])
        if len(gap) == 1 and gap[0] in _ENDS_OF_RANGE:
            result[place - 1 : place + 1] = _one_range(result[place - 1], result[place], gap[0])
    return result


def _one_range(first: Reading, second: Reading, joint: str) -> tuple[Reading, Reading]:
    """``1648-51`` ends in 1651; ``₹5,000 - 10,000`` is rupees on both ends, ``$2-3 million`` millions."""
    if joint in {"-", "–"} and _is_short_year(first, second):
        return first, second._replace(value=_century(first.value) + second.value)
    if (
        first.kind is not FactKind.MONEY
        or not first.prefixed
        or second.kind is not FactKind.NUMBER
        or second.ordinal
    ):
        return first, second
    second = second._replace(kind=FactKind.MONEY, unit=first.unit, prefixed=True)
    return _scaled_like(first, second), second


def _century(year: Decimal) -> Decimal:
    return Decimal(int(year) // 100 * 100)


def _scaled_like(first: Reading, second: Reading) -> Reading:
    """The first end takes the second's scale when that makes a range: 5 to 10 lakh, not 500 to 2 lakh."""
    shared = (
        second.scale > 1 and first.scale == 1 and first.value < second.value / second.scale < LARGEST / second.scale
    )
    return first._replace(value=first.value * second.scale, scale=second.scale) if shared else first


def _is_short_year(first: Reading, second: Reading) -> bool:
    """The 51 of ``1648-51``."""
    both = first.kind is FactKind.NUMBER and second.kind is FactKind.NUMBER and first.bare and second.bare
    years = 1000 <= first.value <= 2999 and first.value % 1 == 0  # noqa: PLR2004
    return both and years and second.end - second.start == 2 and second.value > first.value % 100  # noqa: PLR2004


def _like(first: Reading, second: Reading, joint: str) -> Reading:
    looks_like_year = first.bare and _FIRST_YEAR <= first.value <= _LAST_YEAR and is_multiple(first.value, 1)
    if second.kind in {FactKind.NUMBER, FactKind.DATE} or second.prefixed or second.ordinal:
        plain = second.kind is FactKind.NUMBER and first.bare and joint not in _LOOSE and not looks_like_year
        return _scaled_like(first, second) if plain else first
    if joint in _LOOSE and (looks_like_year or second.kind is FactKind.MONEY):
        return first
    first = _scaled_like(first, second)
    factor = first.value / second.original_value if second.original_value else Decimal(0)
    return first._replace(
        kind=second.kind,
        unit=second.unit,
        original_value=first.value if second.original_value is not None else None,
        original_unit=second.original_unit,
        months=second.months * factor,
        days=second.days * factor,
    )
