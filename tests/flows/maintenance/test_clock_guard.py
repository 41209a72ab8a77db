"""Test that after the clock jumped ahead, no expired data is deleted until the clock has advanced normally."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from flows.clock import read_boot_and_uptime
from flows.maintenance.clock_guard import NOTE_FILE, build_clock_reading, check_clock_not_ahead_and_store_reading
from monitors.errors import WarehouseUnwritable
from tests.builders import NOON

HOUR_S = 3600.0
DAY = timedelta(days=1)


class Machine:
    """A simulated machine. ``passed_h`` is the real time in hours, and ``wrong`` the error of the clock."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.passed_h = 100.0
        self.booted_h = 0.0
        self.boot: str | None = "boot-1"
        self.wrong = timedelta(0)
        self.newest: datetime | None = None

    def maintained(self, after_h: float = 24.0) -> bool:
        """Run the next maintenance ``after_h`` hours later, and return whether it may delete expired data."""
        self.passed_h += after_h
        shown = NOON + timedelta(hours=self.passed_h) + self.wrong
        up = None if self.boot is None else (self.boot, (self.passed_h - self.booted_h) * HOUR_S)
        return (
            check_clock_not_ahead_and_store_reading(self._data, build_clock_reading(shown, up), self.newest) is None
        )

    def restart(self, *, off_h: float = 0.0) -> None:
        """Switch the machine off for ``off_h`` hours, and then on again."""
        self.passed_h += off_h
        self.boot, self.booted_h = f"boot-{self.passed_h:g}", self.passed_h


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_a_right_clock_is_believed_every_night_whatever_it_skips(machine):
    assert [machine.maintained(hours) for hours in (24, 24, 1, 24 * 30)] == [True] * 4
    machine.restart(off_h=20)
    assert machine.maintained()


@pytest.mark.parametrize("wrong", [timedelta(hours=2), DAY, 3650 * DAY])
def test_a_clock_that_is_ahead_for_an_hour_ages_nothing_out(machine, wrong):
    machine.maintained()
    machine.wrong = wrong
    assert [machine.maintained(0.25) for _ in range(4)] == [False] * 4
    machine.wrong = timedelta(0)
    assert [machine.maintained(), machine.maintained()] == [True, True]


def test_one_that_was_right_after_all_is_believed_half_a_day_later(machine):
    """After a clock that was 300 days behind is corrected, maintenance trusts it again after half a day."""
    machine.wrong = -300 * DAY
    machine.maintained()
    machine.wrong = timedelta(0)
    assert [machine.maintained(), machine.maintained(6), machine.maintained(6)] == [False, False, True]


def test_one_that_is_set_ahead_twice_is_doubted_twice(machine):
    machine.maintained()
    machine.wrong = DAY
    assert not machine.maintained()
    machine.wrong = 2 * DAY
    assert [machine.maintained(), machine.maintained()] == [False, True]


def test_one_that_is_set_back_only_ages_less(machine):
    machine.maintained()
    machine.wrong = -3 * DAY
    assert [machine.maintained(), machine.maintained()] == [True, True]


def test_a_machine_that_was_off_for_weeks_loses_one_night(machine):
    machine.maintained()
    machine.restart(off_h=24 * 14)
    assert [machine.maintained(1), machine.maintained()] == [False, True]


def test_where_nobody_says_how_long_it_is_up_a_day_more_than_usual_is_believed_and_a_year_is_not(machine):
    machine.boot = None
    machine.maintained()
    machine.wrong = DAY
    assert machine.maintained()
    machine.wrong = 365 * DAY
    assert not machine.maintained()


def test_the_first_night_goes_by_what_was_written_last(machine):
    machine.newest = NOON + timedelta(hours=machine.passed_h)
    machine.wrong = 30 * DAY
    assert not machine.maintained()
    machine.newest += machine.wrong  # the message about it is written too
    assert not machine.maintained(1)
    machine.wrong = timedelta(0)
    assert machine.maintained()


def test_an_unreadable_note_is_written_again(machine, tmp_path):
    (tmp_path / NOTE_FILE).write_text("torn", encoding="utf-8")
    assert machine.maintained()
    machine.wrong = DAY
    assert not machine.maintained()


def test_a_note_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / NOTE_FILE).mkdir()
    with pytest.raises(WarehouseUnwritable, match=NOTE_FILE):
        check_clock_not_ahead_and_store_reading(tmp_path, build_clock_reading(NOON, None), None)


@pytest.mark.skipif(sys.platform != "linux", reason="it is read in Linux's /proc")
def test_this_machine_says_how_long_it_is_up():
    first, second = read_boot_and_uptime(), read_boot_and_uptime()
    assert first is not None
    assert second is not None
    assert (first[0], first[1] <= second[1]) == (second[0], True)
