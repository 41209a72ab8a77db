"""Parse the times that loggers write. A time without a zone is treated as UTC.

In a date such as ``03/11/2026``, the day or the month may come first. Such a date can be read only if other rows
show the order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter, ValidationError

from monitors.sources.traffic.names import get_numbers

_TIME: Final[TypeAdapter[datetime]] = TypeAdapter(datetime)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The size of a number shows its unit. For each unit: the smallest number, and the number of units in a second. A
# smaller unit is assumed if the number would be a time after the year 5138 in the larger unit.
_PER_SECOND: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0))
_ZONES: Final = get_numbers("zones")
_MONTHS: Final = get_numbers("months")
_NANOSECOND: Final = 1e-9

_NET_DATE: Final = re.compile(r"\\?/Date\((-?\d+)(?:[+-]\d{4})?\)\\?/")
_ZONE_NAME: Final = re.compile(r"\s*\[([A-Za-z]+/[A-Za-z_]+)\]$|\s+([A-Za-z]+/[A-Za-z_]+)$")
_TAIL: Final = re.compile(r"\s+m=[+-][\d.]+$|\s*\([^()]*\)$")
_NUMBERED: Final = re.compile(r"^(\d{1,2})([./-])(\d{1,2})\2(\d{4})\b")
_LETTERED: Final = re.compile(
    r"(?:(?:[^\W\d]{2,9}\.?,?\s+)?(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[\s/-]+(?P<month>[^\W\d]{3,9})\.?"
    r"|(?:[^\W\d]{2,9}\.?,?\s+)?(?P<month_first>[^\W\d]{3,9})\.?\s+(?P<day_last>\d{1,2})(?:st|nd|rd|th)?)"
    r"(?P<year_last>,?[\s/-]+\d{4})?"
)
_CLOCK: Final = re.compile(
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?",
    re.IGNORECASE,
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{2}):?(\d{2})\b")
_YEAR: Final = re.compile(r"\b(?:19|20)\d{2}\b")
_MAX_LENGTH: Final = 80
_MIN_EPOCH_S: Final = 1e8
"""Minimum number that is read as a time in seconds since 1970.

A smaller number is a count or a date in digits.
"""
_MAX_MONTH: Final = 12
_NOON: Final = 12


def parse_time(value: Any, *, day_first: bool | None = None) -> datetime | None:
    """Parse a value as a time in UTC. Return ``None`` if the value is not a time.

    Accepts ISO 8601, RFC 2822, seconds, milliseconds, microseconds or nanoseconds since 1970, written times such as
    ``3 Nov 2026, 2 pm``, and objects such as ``{"$date": …}``. ``day_first`` states whether ``03/11/2026`` means 3
    November. If ``day_first`` is ``None``, such a date cannot be read.
    """
    try:
        if isinstance(value, datetime):
            return _to_utc(value)
        if isinstance(value, str):
            return _parse_time_text(value.strip(), day_first)
        if isinstance(value, dict):
            return _parse_time_object(cast("Mapping[str, Any]", value))
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return _parse_epoch(float(value))
    except (ValueError, OverflowError, ArithmeticError, KeyError, TypeError, OSError):
        return None
    return None


def detect_day_first(value: Any) -> bool | None:
    """Return whether the day comes first in a date such as ``13/11/2026``.

    Returns ``None`` if the date does not show the order.
    """
    date = _NUMBERED.match(value.strip()) if isinstance(value, str) else None
    if date is None:
        return None
    if date[2] == "." or int(date[1]) > _MAX_MONTH:
        return True
    return False if int(date[3]) > _MAX_MONTH else None


def is_date_ambiguous(value: Any) -> bool:
    """Return whether a time starts with a date that does not show whether the day or the month comes first."""
    return isinstance(value, str) and _NUMBERED.match(value.strip()) is not None and detect_day_first(value) is None


def _parse_time_object(value: Mapping[str, Any]) -> datetime | None:
    for key in ("$date", "$number_long", "$numberLong", "iso", "value"):
        if key in value:
            return parse_time(value[key])
    seconds = next((value[key] for key in ("seconds", "_seconds", "epoch_second") if key in value), None)
    nanos = next((value[key] for key in ("nanos", "nanoseconds", "_nanoseconds", "nano") if key in value), 0)
    return None if seconds is None else _parse_epoch(float(seconds) + float(nanos) * _NANOSECOND)


def _parse_time_text(text: str, day_first: bool | None) -> datetime | None:
    if not text or len(text) > _MAX_LENGTH:
        return None
    try:
        return _parse_epoch(float(text))
    except ValueError:
        pass
    try:
        return _to_utc(_TIME.validate_python(text))
    except ValidationError:
        pass
    try:
        return _to_utc(datetime.fromisoformat(text))
    except ValueError:
        pass
    net_date = _NET_DATE.fullmatch(text)
    if net_date is not None:
        return _parse_epoch(float(net_date[1]))
    return _parse_written_time(_TAIL.sub("", text), day_first)


def _parse_written_time(text: str, day_first: bool | None) -> datetime | None:
    """Parse a date in words or digits. A clock time and a zone may follow the date."""
    named_zone = _ZONE_NAME.search(text)
    text = text[: named_zone.start()] if named_zone else text
    date = _read_date(text, day_first)
    if date is None:
        return _to_utc(parsedate_to_datetime(text))
    (year, month, day), rest = date
    clock = _CLOCK.search(rest)
    moment = datetime(year, month, day, tzinfo=None)  # noqa: DTZ001 - the zone is read below
    after = rest[clock.end() :] if clock else rest
    if clock is not None:
        moment = moment.replace(
            hour=_convert_to_24_hours(int(clock["hour"]), clock["half"]),
            minute=int(clock["minute"]),
            second=int(clock["second"] or 0),
            microsecond=int((clock["fraction"] or "0").ljust(6, "0")[:6]),
        )
    if named_zone is not None:
        return moment.replace(tzinfo=ZoneInfo(named_zone[1] or named_zone[2])).astimezone(UTC)
    zone = _read_zone(after)
    return None if zone is None else moment.replace(tzinfo=zone).astimezone(UTC)


def _read_date(text: str, day_first: bool | None) -> tuple[tuple[int, int, int], str] | None:
    """Return the year, the month, the day, and the text after the date."""
    iso = re.match(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[T\s,]*", text)
    if iso is not None:
        return (int(iso[1]), int(iso[2]), int(iso[3])), text[iso.end() :]
    numbered = _NUMBERED.match(text)
    if numbered is not None:
        order = detect_day_first(text)
        order = day_first if order is None else order
        if order is None:
            return None
        day, month = (numbered[1], numbered[3]) if order else (numbered[3], numbered[1])
        return (int(numbered[4]), int(month), int(day)), text[numbered.end() :]
    lettered = _LETTERED.match(text)
    if lettered is None:
        return None
    month = _MONTHS.get((lettered["month"] or lettered["month_first"])[:3].lower())
    rest = text[lettered.end() :]
    year = _YEAR.search(lettered["year_last"] or "") or _YEAR.search(rest)
    if month is None or year is None:
        return None
    if not lettered["year_last"]:  # Tue Nov  3 14:00:00 UTC 2026
        rest = rest[: year.start()] + rest[year.end() :]
    return (int(year[0]), month, int(lettered["day"] or lettered["day_last"])), rest


def _convert_to_24_hours(hour: int, half: str | None) -> int:
    return hour if half is None else hour % _NOON + (_NOON if half[0].lower() == "p" else 0)


def _read_zone(text: str) -> timezone | None:
    """Return the zone in the text after a clock time.

    Returns UTC if the text has no zone, and ``None`` if the zone is unknown.
    """
    offset = _OFFSET.search(text)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    letters = text.strip(" ,()")
    if not letters or letters.lower() in {"uhr", "h"}:
        return UTC
    minutes = _ZONES.get(letters.upper())
    return None if minutes is None else timezone(timedelta(minutes=minutes))


def _parse_epoch(number: float) -> datetime | None:
    if not math.isfinite(number) or number < _MIN_EPOCH_S:
        return None
    per_second = next(per for threshold, per in _PER_SECOND if number >= threshold)
    return _EPOCH + timedelta(seconds=number / per_second)


def _to_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
