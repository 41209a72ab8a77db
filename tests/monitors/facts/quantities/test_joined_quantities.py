"""Test that adjacent quantities are read separately, and that only a smaller scale continues a number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.scan import read_facts

Read = tuple[str, str, str | None]


def _read(text: str) -> list[Read]:
    return [(fact.kind.value, fact.value, fact.unit) for fact in read_facts(text)]


TWO_LAKH, FIVE_LAKH = ("money", "200000", "INR"), ("money", "500000", "INR")
THREE_YEARS, TWO_YEARS = ("duration", "1095", "day"), ("duration", "730", "day")
TWO, ONE = ("number", "2", None), ("number", "1", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("₹5 lakh, one of the highest covers", [FIVE_LAKH, ONE]),
        ("₹5 lakh and one of the highest covers", [FIVE_LAKH, ONE]),
        ("Rs 2 lakh, two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh and two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh and 2 claims", [TWO_LAKH, TWO]),
        ("Rs two lakh and two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh & two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh plus two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh (two claims)", [TWO_LAKH, TWO]),
        ("Rs 2 lakh; two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh... two claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh\ntwo claims", [TWO_LAKH, TWO]),
        ("| Rs 2 lakh | two claims |", [TWO_LAKH, TWO]),
        ("Rs 2 lakh\ttwo claims", [TWO_LAKH, TWO]),
        ("Rs 2 lakh, three years", [TWO_LAKH, THREE_YEARS]),
        ("Rs 2 lakh three years", [TWO_LAKH, THREE_YEARS]),
        ("Rs 2 lakh and three years", [TWO_LAKH, THREE_YEARS]),
        ("Rs two thousand and three years", [("money", "2000", "INR"), THREE_YEARS]),
        ("Rs two hundred and three years", [("money", "200", "INR"), THREE_YEARS]),
        ("Rs 2 hundred and 3 years", [("money", "200", "INR"), THREE_YEARS]),
        ("- Rs 2 lakh\n- three years", [TWO_LAKH, THREE_YEARS]),
        ("Cover: Rs 2 lakh\nTwo claims", [TWO_LAKH, TWO]),
        ("$1 million, two claims", [("money", "1000000", None), TWO]),
        ("ढाई लाख, do saal", [("number", "250000", None), TWO_YEARS]),
        ("ढाई लाख और दो साल", [("number", "250000", None), TWO_YEARS]),
        ("₹2 लाख और तीन साल", [TWO_LAKH, THREE_YEARS]),
        ("दो लाख रुपये, तीन साल", [TWO_LAKH, THREE_YEARS]),
        ("दो सौ रुपये और दो दिन", [("money", "200", "INR"), ("duration", "2", "day")]),
        ("₹2 lakh aur teen saal", [TWO_LAKH, THREE_YEARS]),
        ("do lakh rupaye, teen saal", [TWO_LAKH, THREE_YEARS]),
        ("dhai lakh aur do saal", [("number", "250000", None), TWO_YEARS]),
        ("Limits:\n12\n500\n200", [("number", "12", None), ("number", "500", None), ("number", "200", None)]),
        ("12\t000", [("number", "12", None), ("number", "0", None)]),
        ("Waiting 2 years\n3 months grace", [TWO_YEARS, ("duration", "90", "day")]),
        ("2 years | 3 months", [TWO_YEARS, ("duration", "90", "day")]),
        ("5 dollars\n50", [("money", "5", None), ("number", "50", None)]),
        ("two hundred\nfifty", [("number", "200", None), ("number", "50", None)]),
        ("twenty\ntwo", [("number", "20", None), TWO]),
        ("twenty, two", [("number", "20", None), TWO]),
    ],
)
def test_quantities_side_by_side_are_read_as_two(text: str, expected: list[Read]) -> None:
    """A comma, an "and", a bracket, a line end or the bar of a table ends a number."""
    assert _read(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("two lakh, fifty thousand", "250000"),
        ("two lakh fifty thousand", "250000"),
        ("two lakh and fifty thousand", "250000"),
        ("one million, two hundred thousand", "1200000"),
        ("five thousand, two hundred and twelve", "5212"),
        ("two hundred and fifty", "250"),
        ("one thousand and one", "1001"),
        ("one thousand and one nights", None),
        ("दो लाख पचास हजार", "250000"),
        ("do lakh pachas hazaar", "250000"),
        ("one lakh and one rupees", "100001"),
        ("ek hazaar paanch sau", "1500"),
        ("3 hundred and 21", "321"),
    ],
)
def test_a_smaller_scale_goes_on_with_its_number(text: str, value: str | None) -> None:
    """If a number is followed by a smaller scale, both are one number, such as "two lakh, fifty thousand"."""
    read = _read(text)
    assert len(read) == 1
    assert value is None or read[0][1] == value


_AMOUNTS = st.sampled_from(
    [
        ("Rs 2 lakh", TWO_LAKH), ("₹5,00,000", FIVE_LAKH), ("₹5 लाख", FIVE_LAKH), ("₹2 lakh", TWO_LAKH),
        ("Rs two lakh", TWO_LAKH), ("Rs. 2,00,000", TWO_LAKH), ("USD 3 million", ("money", "3000000", "USD")),
        ("EUR two hundred", ("money", "200", "EUR")), ("₹do lakh", TWO_LAKH), ("₹ढाई लाख", ("money", "250000", "INR")),
        ("40%", ("percent", "40", "percent")), ("ten percent", ("percent", "10", "percent")),
    ]
)  # fmt: skip
_OTHERS = st.sampled_from(
    [
        ("three years", THREE_YEARS), ("3 years", THREE_YEARS), ("तीन साल", THREE_YEARS), ("teen saal", THREE_YEARS),
        ("24 months", ("duration", "720", "day")), ("twelve days", ("duration", "12", "day")),
        ("दो साल", TWO_YEARS), ("do saal", TWO_YEARS), ("50%", ("percent", "50", "percent")),
        ("two claims", TWO), ("7 claims", ("number", "7", None)), ("one of them", ONE),
        ("Rs 2 lakh", TWO_LAKH), ("₹5,00,000", FIVE_LAKH),
    ]
)  # fmt: skip
_JOINTS = st.sampled_from(
    [
        ", ", " and ", " & ", " plus ", " + ", " or ", " और ", " aur ", " एवं ", " तथा ", " या ", "; ", " ; ", "... ",
        "… ", " / ", " | ", "|", "\t", "\n", "\n\n", "\r\n", "\n- ", "\n• ", " • ", " (", " [", ") ", ": ", ". ", "। ",
        " – ", " — ", ",\n", " and\n", "\nand ", "</td><td>", "<br>", " * ",
    ]
)  # fmt: skip


@given(_AMOUNTS, _JOINTS, _OTHERS)
def test_any_two_quantities_between_any_joint_are_two(
    first: tuple[str, Read], joint: str, second: tuple[str, Read]
) -> None:
    """Two quantities are read separately and with unchanged values, whatever separator is between them."""
    assert _read(f"{first[0]}{joint}{second[0]}") == [first[1], second[1]]
