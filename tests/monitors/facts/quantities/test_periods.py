"""Tests of the period of an amount, such as "per year"."""

import pytest

from monitors.facts.quantities.locales import build_locale
from monitors.facts.quantities.scan import scan
from monitors.records.base import Language


def periods(text: str, language: Language = Language.ENGLISH) -> list[str]:
    return [reading.per for reading in scan(text, locale=build_locale(language)).readings]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("€119 per year", ["year"]),
        ("119 euros a year", ["year"]),
        ("119 EUR p.a.", ["year"]),
        ("€119.00/month", ["month"]),
        ("€119 (per calendar month)", ["month"]),
        ("€119 every policy year", ["year"]),
        ("$12 monthly, $120 annually", ["month", "year"]),
        ("5 % per annum", ["year"]),
        ("₹5,000 प्रति दिन", ["day"]),
        ("₹500 har mahine", ["month"]),
        ("€10 per person per week", ["week"]),
        ("€10 per person and month", ["month"]),
        ("€10 a week per person", ["week"]),
        ("€5 for each day", ["day"]),
        ("€10 per person", [""]),
        ("€10 a year ago", [""]),
        ("€10 for a year", ["", ""]),
        ("€10, a month free", ["", ""]),
        ("€10 the month after", [""]),
        ("€10 and month by month more", [""]),
        ("€9 for the Pro plan", [""]),
        ("7 days a week", [""]),
        ("€5 per " + "person per " * 3000, [""]),
        ("€5 " + "(" * 3000, [""]),
    ],
)
def test_a_period_counts_right_behind_its_amount(text: str, read: list[str]):
    assert periods(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("119 € pro Jahr", ["year"]),
        ("119 € im Monat", ["month"]),
        ("119 € jährlich", ["year"]),
        ("119 € par mois", ["month"]),
        ("119 € al mes", ["month"]),
        ("119 € pro Person", [""]),
    ],
)
def test_it_is_read_in_languages_whose_other_words_are_not(text: str, read: list[str]):
    assert periods(text, Language.OTHER) == read
