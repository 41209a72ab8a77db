"""Units of measurement are converted exactly to their base unit."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.measures import UNITS
from monitors.facts.quantities.scan import read_facts


@pytest.mark.parametrize(
    ("text", "value", "base"),
    [
        ("20 kg", "20000", "g"),
        ("150 cm", "1.5", "m"),
        ("5 GB", "5000000000", "byte"),
        ("50 Mbit/s", "50000000", "bit/s"),
        ("18 miles", "28968.192", "m"),
        ("101.3 °F", "38.5", "°C"),
        ("-20 °C", "-20", "°C"),
        ("90 km/h", "90", "km/h"),
        ("3 किलोवाट", "3000", "W"),
        ("2 to 8 °C", "2", "°C"),
        ("1.8 Tonnen", "1800000", "g"),
        ("40 m²", "40", "m²"),
    ],
)
def test_a_measure_in_its_base_unit(text: str, value: str, base: str) -> None:
    fact = read_facts(text)[0]
    assert (fact.kind, fact.value, fact.unit) == ("quantity", value, base)


@given(st.sampled_from(sorted(UNITS)), st.integers(min_value=1, max_value=10_000))
def test_every_spelling_of_every_unit_is_read(spelling: str, amount: int) -> None:
    """Every spelling of every unit in `units.toml` is read; a new row is tested too."""
    facts = read_facts(f"{amount} {spelling}.")
    unit = UNITS[spelling]
    assert [fact.unit for fact in facts] == [unit.base]
    assert abs(Decimal(facts[0].value) - unit.convert_to_base(Decimal(amount))) < Decimal("1e-9")


@pytest.mark.parametrize(
    "text", ["5 in the morning", "A4 paper", "a 7P chip", "12 monkeys", "5 minutes", "3 ghosts"]
)
def test_a_word_that_begins_like_a_unit_is_none(text: str) -> None:
    assert all(fact.kind != "quantity" for fact in read_facts(text))
