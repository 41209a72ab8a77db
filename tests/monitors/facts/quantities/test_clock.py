"""Tests of times of day, and of pairs of figures that are not times."""

from __future__ import annotations

import pytest

from monitors.facts.quantities.fact import FactKind
from monitors.facts.quantities.scan import read_facts


def times(text: str) -> list[str]:
    return [fact.value for fact in read_facts(text) if fact.kind is FactKind.TIME]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("We are open 9am–6pm.", ["09:00", "18:00"]),
        ("9 a.m. - 6 p.m.", ["09:00", "18:00"]),
        ("Open from 9 to 6pm", ["09:00", "18:00"]),
        ("from 9:00 to 18:00.", ["09:00", "18:00"]),
        ("Mon 9:15-17:45", ["09:15", "17:45"]),
        ("9.30am", ["09:30"]),
        ("12 noon, 12am, 12:30 pm", ["12:00", "00:00", "12:30"]),
        ("at 8:17", ["08:17"]),
        ("सुबह 9 बजे से शाम 6 बजे तक", ["09:00", "18:00"]),
        ("subah 9 se shaam 6 baje tak", ["09:00", "18:00"]),
        ("dopahar 12 baje, dopahar 2 baje, raat 8 baje, raat 1 baje", ["12:00", "14:00", "20:00", "01:00"]),
        ("7–18 Uhr, 18.30 Uhr", ["07:00", "18:00", "18:30"]),
        ("from 9 to half past one", ["09:00", "01:30"]),
        ("from 9 to 12:30", ["09:00", "12:30"]),
        ("quarter to six, quarter past 7 pm, a quarter to one am", ["05:45", "19:15", "00:45"]),
        ("a quarter to be paid, half past work, half past 25", []),
        ("9 - 12:31, 3 to 2:100", []),
        ("John 3:16, a score of 2:1, a ratio of 16:9", []),
        ("1:30 hours, 9:30 minutes, 10:00:30", []),
        ("24 hours, 13 pm, Rs 9.30 pm", []),
        ("version 4.10 and 25:00", []),
    ],
)
def test_times_are_read_and_other_pairs_of_figures_are_not(text: str, read: list[str]):
    assert times(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "24/7", "24/7/365", "24x7", "24 hours a day", "24 hrs/day, 7 days/week", "24 hours, seven days a week",
        "twenty-four hours a day", "24 hours daily, 365 days a year", "around the clock", "round-the-clock",
        "rund um die Uhr", "around the clock, seven days a week",
    ],
)  # fmt: skip
def test_always_open_is_one_thing_by_all_its_names(text: str):
    (fact,) = read_facts(f"We are open {text}.")
    assert (fact.value, fact.text) == ("24/7", text)


@pytest.mark.parametrize(
    "text",
    ["24-hour helpline", "within 24 hours", "24/7/2024", "24 x 7 = 168", "7 days a week", "Rock Around the Clock"],
)
def test_hours_with_exceptions_are_not_always_open(text: str):
    assert "24/7" not in times(text)


def test_a_time_keeps_the_place_that_it_has_in_the_text():
    (fact,) = read_facts("Kya aap 6 p.m. tak khule hain?")
    assert fact.text == "6 p.m."


def test_a_number_with_its_own_unit_is_not_a_time():
    """In "₹5 by 12 noon", the number with the currency sign is an amount of money and not part of the time."""
    assert [fact.kind for fact in read_facts("It costs ₹5 by 12 noon")] == [FactKind.MONEY, FactKind.TIME]
