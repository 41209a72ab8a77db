"""Test the periods in which a silence mutes alerts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitors.records.operator_actions import Silence
from monitors.records.recurrence import Period, Recurrence
from tests.builders import NOON

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
DAILY = Recurrence(every="day 11:30-13:00", zone="UTC")
"""A window that is open at noon."""


def silence(*, days: float, recurrence: Recurrence | None = None) -> Silence:
    """Return a silence that starts at noon and ends after ``days`` days."""
    return Silence(
        id="s1",
        author="Ada",
        comment="load test",
        starts_at=NOON,
        ends_at=NOON + days * DAY,
        target="demo",
        recurrence=recurrence,
    )


@pytest.mark.parametrize(("after", "count"), [(NOON - DAY, 1), (NOON + HOUR, 1), (NOON + DAY, 0)])
def test_a_silence_without_recurrence_has_one_period_until_it_ends(after, count):
    periods = list(silence(days=1).iterate_periods(after))
    assert periods == [Period(NOON, NOON + DAY)] * count


def test_the_periods_of_a_recurring_silence_lie_between_its_start_and_its_end():
    half_hour = HOUR / 2
    ends_in_a_window = silence(days=2 - 1 / 96, recurrence=DAILY)  # 15 minutes before the third noon
    assert list(ends_in_a_window.iterate_periods(NOON - DAY)) == [
        Period(NOON, NOON + HOUR),
        Period(NOON + DAY - half_hour, NOON + DAY + HOUR),
        Period(NOON + 2 * DAY - half_hour, NOON + 2 * DAY - HOUR / 4),
    ]


def test_periods_that_have_ended_are_skipped():
    (last,) = silence(days=1.5, recurrence=DAILY).iterate_periods(NOON + HOUR)
    assert last == Period(NOON + DAY - HOUR / 2, NOON + DAY + HOUR)
