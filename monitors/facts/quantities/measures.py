"""Read units of measurement after a number: ``20 kg``, ``1.5 m``, ``5 Mbit/s``, ``38.5 °C``, converted exactly.

The units are rows of `units.toml`. Both numbers of a range get the unit after the range: ``2 to 8 °C``.
"""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.numerals import EXACT
from monitors.facts.text import split_into_word_keys


class MeasureUnit(NamedTuple):
    """A unit of measurement: its dimension, the dimension's base unit, and the factor to the base unit."""

    name: str
    dimension: str
    base: str
    factor: Fraction

    def convert_to_base(self, value: Decimal) -> Decimal:
        """Convert ``value`` from this unit to the base unit. For Fahrenheit, the zero point is shifted too."""
        if self.name == "°F":
            value = value - 32
        return EXACT.divide(value * self.factor.numerator, Decimal(self.factor.denominator))


MAX_CASED_LENGTH: Final = 3
"""In a unit with at most this many characters, letter case matters: mW is not MW. Otherwise, case is ignored."""


def _load_units() -> dict[str, MeasureUnit]:
    tables = tomllib.loads((Path(__file__).parent / "units.toml").read_text(encoding="utf-8"))
    units: dict[str, MeasureUnit] = {}
    for dimension, table in tables.items():
        for name, factor, spellings in table["units"]:
            unit = MeasureUnit(name, dimension, table["base"], Fraction(factor))
            for spelling in spellings.split():
                units[_to_spelling_key(spelling.replace("_", " "))] = unit
    return units


def _to_spelling_key(spelling: str) -> str:
    return spelling if len(spelling) <= MAX_CASED_LENGTH else spelling.lower()


UNITS: Final = _load_units()
"""All units of measurement, keyed by their spelling."""

_SPELLINGS: Final = "|".join(
    re.escape(spelling).replace(r"\ ", r"\s")
    if len(spelling) <= MAX_CASED_LENGTH
    else f"(?i:{re.escape(spelling)})"
    for spelling in sorted(UNITS, key=len, reverse=True)
)
_UNIT: Final = re.compile(rf"[ \u00a0\u202f-]?({_SPELLINGS})(?![\w\u0900-\u097f²³°]|/[a-z])")
_RANGE_JOINTS: Final = split_into_word_keys("- – — to upto and or bis से se और aur a à y et und")
_MAX_LENGTH: Final = 24


def add_measure_units(reader: NumberReader, text: str, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Return the readings. Bare numbers before a unit of measurement become quantities of that unit."""
    result = readings
    for place in range(len(readings) - 1, -1, -1):
        reading = readings[place]
        if reading.kind is not FactKind.NUMBER or reading.ordinal or reading.counts:
            continue
        unit, end = _find_unit_behind(text, reading)
        if unit is None and place + 1 < len(result) and result[place + 1].kind is FactKind.QUANTITY:
            unit, end = _find_unit_of_range(reader, reading, result[place + 1]), reading.end
        if unit is None:
            continue
        if result is readings:
            result = list(readings)
        result[place] = _apply_unit(reader, reading, unit, end)
        while place + 1 < len(result) and result[place + 1].start < end:
            del result[place + 1]  # the 2 of "m2"
    return result


def _find_unit_behind(text: str, reading: QuantityReading) -> tuple[MeasureUnit | None, int]:
    if reading.end >= len(text) or text[reading.end] in ".,;:!?)\n":
        return None, reading.end
    match = _UNIT.match(text, reading.end, reading.end + _MAX_LENGTH)
    if match is None:
        return None, reading.end
    spelling = match[1] if len(match[1]) <= MAX_CASED_LENGTH else match[1].lower()
    return UNITS.get(spelling), match.end()


def _find_unit_of_range(
    reader: NumberReader, first: QuantityReading, second: QuantityReading
) -> MeasureUnit | None:
    gap = [
        reader.token(at).key.removesuffix("\0") for at in range(first.last + 1, min(second.first, first.last + 4))
    ]
    joined = len(gap) == 1 and gap[0] in _RANGE_JOINTS
    return UNITS.get(_to_spelling_key(second.original_unit or "")) if joined else None


def _apply_unit(reader: NumberReader, reading: QuantityReading, unit: MeasureUnit, end: int) -> QuantityReading:
    last = reading.last
    while last + 1 < reader.size and reader.token(last + 1).end <= end:
        last += 1
    return reading._replace(
        kind=FactKind.QUANTITY,
        value=unit.convert_to_base(reading.value),
        original_value=reading.value,
        original_unit=unit.name,
        unit=unit.base,
        last=last,
        end=end,
        bare=False,
        attached=False,
    )
