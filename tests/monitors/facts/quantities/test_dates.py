"""Tests of dates."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.scan import read_facts


def dates(text: str, reference: date | None = None) -> list[str]:
    return [fact.value for fact in read_facts(text, reference_date=reference) if fact.kind.value == "date"]


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2024-02-09", "2024-02-09"),
        ("on 17/08/2021.", "2021-08-17"),
        ("08/17/2021", "2021-08-17"),
        ("5/3/2015", "2015-03-05"),
        ("17.8.2021", "2021-08-17"),
        ("9 July 2018", "2018-07-09"),
        ("July 9, 2018", "2018-07-09"),
        ("the 9th of July, 2018", "2018-07-09"),
        ("09-Jul-2018", "2018-07-09"),
        ("july ninth twenty eighteen", "2018-07-09"),
        ("Dec. 1, 1999", "1999-12-01"),
        ("९ जुलाई २०१८", "2018-07-09"),
        ("2018 में 9 जुलाई", "2018-07-09"),
        ("last day of february 2024", "2024-02-29"),
        ("first monday of may 2023", "2023-05-01"),
        ("June 2014", "2014-06"),
        ("14 April", "--04-14"),
        ("am 07.03. um acht", "--03-07"),
        ("bis 30.11., danach", "--11-30"),
    ],
)
def test_one_date(text: str, iso: str):
    """The text contains one fact: a complete or partial date (ISO 8601). No part of the date is also a number."""
    assert [(fact.kind.value, fact.value) for fact in read_facts(text)] == [("date", iso)]


@pytest.mark.parametrize(
    "text", ["you may claim 2 things", "march on", "version 1.2.3", "call 2-3-4", "99/99/2020"]
)
def test_no_dates(text: str):
    assert dates(text) == []


def test_relative_dates_need_a_day():
    assert dates("due tomorrow") == []
    assert dates("due tomorrow", date(2024, 2, 28)) == ["2024-02-29"]
    assert dates("आज", date(2024, 2, 28)) == ["2024-02-28"]


@given(
    st.dates(min_value=date(1900, 1, 1), max_value=date(2199, 12, 31)),
    st.sampled_from(["%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d-%b-%Y"]),
)
def test_format_then_read(day: date, form: str):
    assert dates(day.strftime(form)) == [day.isoformat()]
