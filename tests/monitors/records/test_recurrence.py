"""Test that recurring windows are parsed, and follow the local time of their time zone when its clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from monitors.records.recurrence import DAYS, Recurrence

ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",  # the clock changes by half an hour
    "Pacific/Chatham",
    "Africa/Casablanca",  # the clock changes around Ramadan
    "Asia/Kolkata",
    "America/Santiago",  # the clock changes at midnight
)
MINUTE = timedelta(minutes=1)


def berlin(text: str) -> Recurrence:
    return Recurrence(every=text, zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Sunday 02:00-04:00", "every Sunday 02:00–04:00 Europe/Berlin"),
        ("every Sunday 02:00–04:00", "every Sunday 02:00–04:00 Europe/Berlin"),
        ("sun 2:00 - 4:00", "every Sunday 02:00–04:00 Europe/Berlin"),
        ("Mon-Fri, Sun 22:00-06:00", "every Monday–Friday, Sunday 22:00–06:00 Europe/Berlin"),
        ("Saturday and Tues 00:00-24:00", "every Saturday, Tuesday 00:00–24:00 Europe/Berlin"),
        ("day 23:30-00:00", "every day 23:30–00:00 Europe/Berlin"),
    ],
)
def test_a_window_is_shown_with_full_names_and_its_zone(written, text):
    recurrence = berlin(written)
    assert str(recurrence) == text
    assert berlin(recurrence.every) == recurrence
    assert Recurrence.model_validate_json(recurrence.model_dump_json()) == recurrence


@pytest.mark.parametrize(
    ("every", "wrong"),
    [
        ("Sunday", "start and end times are missing"),
        ("Sunday 02:00", "start and end times are missing"),
        ("02:00-04:00", "the days are missing"),
        ("Sundy 02:00-04:00", "'Sundy'"),
        ("Mo 02:00-04:00", "'Mo'"),
        ("Mon-Wed-Fri 02:00-04:00", "'Wed-Fri'"),
        ("Sunday 02:00-25:00", "25:00"),
        ("Sunday 02:60-04:00", "02:60"),
        ("Sunday 02:00-02:00", "the start and the end are the same time"),
        ("Sunday 24:00-00:00", "the start and the end are the same time"),
        ("Sunday 02:00-04:00 Europe/Berlin", "'Europe/Berlin'"),
        ("day 00:00-24:00", "the whole week"),
        ("Mon-Sun 00:00-24:00", "the whole week"),
    ],
)
def test_each_wrong_part_of_a_window_is_named(every, wrong):
    with pytest.raises(ValidationError, match=wrong):
        berlin(every)


@pytest.mark.parametrize("zone", ["Berlin", "europe/berlin", "CET", "EST5EDT", "+01:00", "", "posix/UTC"])
def test_a_zone_has_its_full_name(zone):
    with pytest.raises(ValidationError, match="such as Europe/Berlin"):
        Recurrence(every="Sunday 02:00-04:00", zone=zone)


def clock_minutes(zone: str, year: int) -> list[tuple[datetime, int, int]]:
    """Return each minute of ``year`` in UTC, with its weekday and minute of the day in the time zone ``zone``."""
    first = datetime(year, 1, 1, tzinfo=UTC)
    count = (datetime(year + 1, 1, 1, tzinfo=UTC) - first) // MINUTE
    times = (first + number * MINUTE for number in range(count))
    shown = ((time, time.astimezone(ZoneInfo(zone))) for time in times)
    return [(time, local.weekday(), local.hour * 60 + local.minute) for time, local in shown]


@pytest.fixture(scope="module")
def years():
    """Return the minutes of 2027 by time zone. They are calculated once, because a year has half a million."""
    return {zone: clock_minutes(zone, 2027) for zone in ZONES}


@pytest.mark.whole_only
@settings(max_examples=25, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    weekdays=st.tuples(st.integers(0, 6), st.integers(1, 6)),
    bounds=st.tuples(st.integers(0, 1439), st.integers(1, 1439)),
)
def test_the_periods_of_a_year_are_the_minutes_that_its_clock_shows(years, zone, weekdays, bounds):
    (first, length), (start, span) = weekdays, bounds
    end = (start + span) % 1440
    days = {(first + more) % 7 for more in range(length)}
    expected = []
    for time, day, minute in years[zone]:
        if end > start:
            active = day in days and start <= minute < end
        else:
            active = (day in days and minute >= start) or ((day - 1) % 7 in days and minute < end)
        if active and expected and expected[-1][1] == time:
            expected[-1][1] = time + MINUTE
        elif active:
            expected.append([time, time + MINUTE])

    text = f"{DAYS[first]}-{DAYS[(first + length - 1) % 7]} {start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"
    recurrence = Recurrence(every=text, zone=zone)
    beginning, over = years[zone][0][0], years[zone][-1][0] + MINUTE
    periods = takewhile(lambda period: period.starts_at < over, recurrence.iterate_periods(beginning))
    assert [[max(period.starts_at, beginning), min(period.ends_at, over)] for period in periods] == expected


def hours(text: str, day: datetime) -> list[tuple[str, str]]:
    """Return the start and end times, in UTC, of the periods of the window ``text`` that overlap ``day``."""
    periods = takewhile(
        lambda period: period.starts_at < day + timedelta(days=1), berlin(text).iterate_periods(day)
    )
    return [(f"{period.starts_at:%H:%M}", f"{period.ends_at:%H:%M}") for period in periods]


def test_the_missing_hour_shortens_a_window_or_removes_it():
    """On 28 March 2027, when 02:00 in Berlin becomes 03:00, a window in this hour is shorter or does not occur."""
    spring = datetime(2027, 3, 28, tzinfo=UTC)
    assert hours("Sunday 02:15-02:45", spring) == []
    assert hours("Sunday 02:30-04:00", spring) == [("01:00", "02:00")]
    assert hours("Sunday 01:30-02:30", spring) == [("00:30", "01:00")]


def test_the_doubled_hour_lengthens_a_window_or_opens_it_twice():
    """On 31 October 2027, when 03:00 in Berlin becomes 02:00, a window in this hour is longer or occurs twice."""
    autumn = datetime(2027, 10, 31, tzinfo=UTC)
    assert hours("Sunday 02:15-02:45", autumn) == [("00:15", "00:45"), ("01:15", "01:45")]
    assert hours("Sunday 02:00-04:00", autumn) == [("00:00", "03:00")]
    assert hours("Sunday 02:30-03:30", autumn) == [("00:30", "01:00"), ("01:30", "02:30")]


def test_adjacent_windows_are_one_period():
    first, second = islice(berlin("Sat-Sun 00:00-24:00").iterate_periods(datetime(2027, 6, 1, tzinfo=UTC)), 2)
    assert first.ends_at - first.starts_at == timedelta(days=2)
    assert second.starts_at - first.starts_at == timedelta(days=7)
