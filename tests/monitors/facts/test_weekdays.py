"""Tests of ranges of weekdays."""

import pytest

from monitors.facts.weekdays import find_day_ranges

ALL = frozenset(range(7))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Tuesday to Sunday, 10:00 to 20:00", [{1, 2, 3, 4, 5, 6}]),
        ("Mon-Fri 8:30-18:00", [{0, 1, 2, 3, 4}]),
        ("Mon. – Thurs., 9 to 5", [{0, 1, 2, 3}]),
        ("from Sat until Mon", [{5, 6, 0}]),
        ("Monday through Sunday", [ALL]),
        ("open daily", [ALL]),
        ("seven days a week", [ALL]),
        ("Mon-Fri 9 to 5, Sat to Sun 10 to 4", [{0, 1, 2, 3, 4}, {5, 6}]),
        ("closed on Mondays", []),
        ("Mondays, Tuesdays and Fridays", []),
        ("सोमवार से शनिवार", [{0, 1, 2, 3, 4, 5}]),
        ("from money to sunshine", []),
    ],
)
def test_a_stretch_is_its_days(text: str, days: list[set[int]]):
    assert find_day_ranges(text) == frozenset(map(frozenset, days))
