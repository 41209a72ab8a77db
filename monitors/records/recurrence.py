"""Weekly time windows in a time zone, such as ``every Sunday 02:00–04:00 Europe/Berlin``.

A moment is in a window if the zone's local time at this moment is in the window. If clocks skip an hour in spring,
the window has no minutes in this hour. If clocks show an hour twice in autumn, both hours are in the window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator

from monitors.problems import format_did_you_mean_hint
from monitors.records.base import Record

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
EVERY_DAY: Final = "day"
MIN_DAY_CHARACTERS: Final = 3
ACCEPTED: Final = 'days and times such as "Sunday 02:00-04:00", "Mon-Fri, Sun 22:00-06:00", "day 01:00-01:30"'
DAY_MINUTES: Final = 24 * 60
WEEK_MINUTES: Final = 7 * DAY_MINUTES
MAX_STEP_MIN: Final = 60
"""Maximum step of the search for the start and the end of a window, in minutes.

A step of one hour contains at most one clock change, because no zone changes its clock twice within an hour.
"""

_WINDOW: Final = re.compile(
    r"(?:every\s+)?(?P<days>.*?)\s*\b(?P<start>\d{1,2}:\d{2})\s*[-–—]\s*(?P<end>\d{1,2}:\d{2})(?P<rest>.*)",
    re.IGNORECASE,
)
_TIME: Final = re.compile(r"(?:([01]?\d|2[0-3]):([0-5]\d)|24:00)")


class Period(NamedTuple):
    """A period in UTC. ``ends_at`` is exclusive."""

    starts_at: datetime
    ends_at: datetime


class _WeeklyWindow(NamedTuple):
    """A weekly window, and the complete text that describes it.

    ``minutes`` has one entry for each minute of two weeks from Monday 00:00. The entry is 1 within the window.
    """

    text: str
    minutes: bytes


@lru_cache(maxsize=1024)
def _parse_window(text: str) -> _WeeklyWindow:
    """Parse days and times. Raises a `ValueError` that names the invalid part."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{ACCEPTED}; the start and end times are missing")
    if rest := match["rest"].strip():
        raise ValueError(f"{ACCEPTED}, without {rest!r}; use `zone` for the time zone")
    days, names = _parse_days(match["days"])
    start_min, end_min = (_parse_minute_of_day(match[bound]) for bound in ("start", "end"))
    if (start_min - end_min) % DAY_MINUTES == 0 and end_min - start_min != DAY_MINUTES:
        raise ValueError(f"{ACCEPTED}; the start and the end are the same time. Write a whole day as 00:00-24:00")
    minutes = bytearray(WEEK_MINUTES)
    for day in days:
        for minute in range(start_min, end_min if end_min > start_min else end_min + DAY_MINUTES):
            minutes[(day * DAY_MINUTES + minute) % WEEK_MINUTES] = 1
    if all(minutes):
        raise ValueError(f"{ACCEPTED}; this window covers the whole week, so the silence would never end")
    start, end = (f"{minute // 60:02}:{minute % 60:02}" for minute in (start_min, end_min))
    return _WeeklyWindow(f"{names} {start}-{end}", bytes(minutes * 2))


def _parse_days(text: str) -> tuple[frozenset[int], str]:
    """Parse weekday names and ranges of weekdays. Return the weekday numbers, and the text with full names."""
    if not text:
        raise ValueError(f"{ACCEPTED}; the days are missing")
    if text.lower() == EVERY_DAY:
        return frozenset(range(len(DAYS))), EVERY_DAY
    days: set[int] = set()
    names: list[str] = []
    for part in re.split(r"\s*(?:,|\band\b)\s*", text):
        first, *rest = (_parse_weekday(name) for name in re.split(r"\s*[-–—]\s*", part, maxsplit=1))
        last = rest[0] if rest else first
        days |= {(first + more) % len(DAYS) for more in range((last - first) % len(DAYS) + 1)}
        names.append("-".join(DAYS[day] for day in (first, *rest)))
    return frozenset(days), ", ".join(names)


def _parse_weekday(name: str) -> int:
    for number, day in enumerate(DAYS):
        if len(name) >= MIN_DAY_CHARACTERS and day.lower().startswith(name.lower()):
            return number
    raise ValueError(f"{ACCEPTED}; {name!r} is not a weekday")


def _parse_minute_of_day(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{ACCEPTED}; {text} is not between 00:00 and 24:00")
    return int(match[1]) * 60 + int(match[2]) if match[1] else DAY_MINUTES


@lru_cache(maxsize=1)
def _list_zone_names() -> frozenset[str]:
    """Return the time zones that have full names. An abbreviation such as CET can mean several zones."""
    return frozenset(zone for zone in available_timezones() if "/" in zone or zone == "UTC")


def _require_zone_name(name: str) -> str:
    if name not in _list_zone_names():
        raise ValueError(
            "the full name of a zone of the tz database, such as Europe/Berlin, or UTC"
            f"{format_did_you_mean_hint(name, sorted(_list_zone_names()))}"
        )
    return name


WeeklyWindowText = Annotated[str, AfterValidator(lambda text: _parse_window(text).text)]
"""Days and times of a weekly window, such as ``Monday-Friday 22:00-06:00``."""

ZoneName = Annotated[str, AfterValidator(_require_zone_name)]
"""The full name of a time zone in the tz database, such as ``Europe/Berlin``."""


class Recurrence(Record):
    """A weekly window in the time zone ``zone``."""

    every: WeeklyWindowText
    zone: ZoneName

    def __str__(self) -> str:
        return f"every {self.every.replace('-', '–')} {self.zone}"

    def is_active(self, at: datetime) -> bool:
        """Return whether ``at`` is within the window."""
        return bool(_parse_window(self.every).minutes[self._compute_minute_of_week(at)])

    def iterate_periods(self, after: datetime) -> Iterator[Period]:
        """Yield the periods that end after ``after``, in order. The iterator never ends."""
        time = after.replace(second=0, microsecond=0)
        while self.is_active(time):
            time -= timedelta(minutes=1)
        while True:
            while not self.is_active(time):
                time = self._find_next_possible_boundary(time)
            starts_at = time
            while self.is_active(time):
                time = self._find_next_possible_boundary(time)
            yield Period(starts_at, time)

    def _compute_minute_of_week(self, at: datetime) -> int:
        """Return the minute of the week that the zone's clock shows at ``at``."""
        local = at.astimezone(ZoneInfo(self.zone))
        return local.weekday() * DAY_MINUTES + local.hour * 60 + local.minute

    def _find_next_possible_boundary(self, time: datetime) -> datetime:
        """Return the next minute after ``time`` at which the window may start or end.

        The result is at most `MAX_STEP_MIN` minutes after ``time``.
        """
        minutes, now = _parse_window(self.every).minutes, self._compute_minute_of_week(time)
        bound = minutes.find(1 - minutes[now], now, now + MAX_STEP_MIN)
        step = bound - now if bound > 0 else MAX_STEP_MIN
        later = time + timedelta(minutes=step)
        has_clock_change = self._compute_minute_of_week(later) != (now + step) % WEEK_MINUTES
        return time + timedelta(minutes=1) if has_clock_change else later
