"""Durations are read in days, together with the original unit."""

import pytest

from monitors.facts.quantities.scan import read_facts


def durations(text: str) -> list[tuple[str, str | None, str | None]]:
    return [
        (fact.value, fact.original_value, fact.original_unit)
        for fact in read_facts(text)
        if fact.kind.value == "duration"
    ]


@pytest.mark.parametrize(
    ("text", "days", "value", "unit"),
    [
        ("24 months", "720", "24", "month"),
        ("two (2) years", "730", "2", "year"),
        ("thirty (30) days", "30", "30", "day"),
        ("a 48‑month wait", "1440", "48", "month"),
        ("1½ years", "547.5", "1.5", "year"),
        ("36 consecutive months", "1080", "36", "month"),
        ("90 policy days", "90", "90", "day"),
        ("half an hour", "0.020833333", "0.5", "hour"),
        ("an hour and a half", "0.0625", "1.5", "hour"),
        ("three weeks", "21", "3", "week"),
        ("a fortnight", "14", "1", "fortnight"),
        ("48h", "2", "48", "hour"),
        ("तीस दिन", "30", "30", "day"),
        ("ढाई साल", "912.5", "2.5", "year"),
        ("२४ महीने", "720", "24", "month"),
        ("पंद्रह दिनों", "15", "15", "day"),
        ("do saal", "730", "2", "year"),
        ("do months ke baad", "60", "2", "month"),
        ("teen mahine", "90", "3", "month"),
        ("saath din", "60", "60", "day"),
        ("dedh ghante", "0.0625", "1.5", "hour"),
        ("Waiting period -12 months", "360", "12", "month"),
    ],
)
def test_one_duration(text: str, days: str, value: str, unit: str):
    assert durations(text) == [(days, value, unit)]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2 years and 6 months", "910"),
        ("1 year, 2 months and 3 days", "428"),
        ("2 hours 30 minutes", "0.104166667"),
        ("one year and a half", "547.5"),
    ],
)
def test_compounds_are_one(text: str, days: str):
    assert [found[0] for found in durations(text)] == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("30-60 days", ["30", "60"]),
        ("two to three weeks", ["14", "21"]),
        ("12/24 months", ["360", "720"]),
        ("30, 60 or 90 days", ["30", "60", "90"]),
        ("दो या तीन दिन", ["2", "3"]),
    ],
)
def test_ranges_share_their_unit(text: str, days: list[str]):
    assert [found[0] for found in durations(text)] == days


@pytest.mark.parametrize(
    "text", ["₹500 a day", "twice a year", "daily", "the second claim", "month by month", "How do months differ?"]
)
def test_rates_are_no_durations(text: str):
    assert durations(text) == []
