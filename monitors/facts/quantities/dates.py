"""Read dates: ISO, day first as in India, with month names, and by weekday ("last Sunday of March 2014").

A date without a year or without a day is partial ISO 8601: ``--03-03``, ``2015-03``. In ``5/3/2015`` the day is
first, unless only the other order is a valid date. Impossible days (30 February) are not corrected.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from typing import NamedTuple

from monitors.facts.quantities.lexicon import AMBIGUOUS_MONTHS, IN_YEAR, MONTHS, WEEKDAYS
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.numerals import is_multiple, parse_numeral
from monitors.facts.text import NUMERAL, WORD

_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
_YEAR_FIRST_SPACED = re.compile(r"(\d{4}) (\d{2}) (\d{2})(?![\d%])(?![,.]\d)")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?!\d)")
_RANGE_DAY = re.compile(
    r"(\d{1,2})\.(\d{1,2})\.?(?=\s?(?:-|–|—|bis|to|until|till)\s?\d{1,2}\.\d{1,2}\.(\d{4})(?!\d))"
)
_DAY_AND_MONTH = re.compile(r"(\d{1,2})\.(0[1-9]|1[0-2])\.(?=[,;:)]|\s?[-–—]|\s+[a-zäöü(])")
"""A German date without a year (``03.02.``). At the end of a sentence, it may be a number: ``It costs 10.12.``"""
_TWO_DIGIT_YEAR = re.compile(r"(\d{1,2})([-/])(\d{1,2})\2(\d{2})(?![\d-])")

_MARKS = frozenset("-/. ")
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_LAST_DAY = 31
_MONTHS_A_YEAR = 12
_PIVOT = 69
"""The first two-digit year that is a year of the 1900s, as in POSIX: 69 is 1969, and 68 is 2068."""


class Day(NamedTuple):
    """A date in ISO format, and the token after the date."""

    iso: str
    after: int
    first: int


class _DatePart(NamedTuple):
    value: int
    after: int


def read_date(reader: NumberReader, text: str, at: int) -> Day | None:
    """Return the date that begins at token ``at`` of ``text``, or ``None``."""
    token = reader.token(at)
    if token.kind == NUMERAL:
        return _read_numeric_date(reader, text, at) or _read_date_starting_with_number(reader, at)
    if token.kind != WORD:
        return None
    if token.key in MONTHS:
        return _read_date_starting_with_month(reader, at)
    if token.key in {"last", "first", "second", "third", "fourth"}:
        weekday = _read_nth_day_of_month(reader, at)
        if weekday is not None:
            return weekday
    return _read_date_starting_with_number(reader, at) if reader.word(at) is not None else None


# --- digits only ----------------------------------------------------------------------------------------------


def _read_numeric_date(reader: NumberReader, text: str, at: int) -> Day | None:
    token = reader.token(at)
    start = token.start
    if "." not in token.text and text[token.end : token.end + 1] not in _MARKS:
        return None
    match = _YEAR_FIRST.match(text, start) or _YEAR_FIRST_SPACED.match(text, start)
    if match is not None:
        year, month, day = int(match[1]), int(match.groups()[-2]), int(match.groups()[-1])
        return _build_day_if_valid(reader, at, match.end(), (year, month, day))
    match = _YEAR_LAST.match(text, start)
    if match is not None:
        return _build_day_if_valid(
            reader, at, match.end(), _resolve_year_month_day(int(match[4]), int(match[1]), int(match[3]))
        )
    match = _RANGE_DAY.match(text, start)
    if match is not None:
        return _build_day_if_valid(reader, at, match.end(), (int(match[3]), int(match[2]), int(match[1])))
    match = _DAY_AND_MONTH.match(text, start)
    if match is not None:
        return _build_day_if_valid(reader, at, match.end(), (None, int(match[2]), int(match[1])))
    match = _TWO_DIGIT_YEAR.match(text, start)
    if match is not None:
        year = int(match[4])
        year += 1900 if year >= _PIVOT else 2000
        return _build_day_if_valid(
            reader, at, match.end(), _resolve_year_month_day(year, int(match[1]), int(match[3]))
        )
    return None


def _resolve_year_month_day(year: int, first: int, second: int) -> tuple[int, int, int]:
    day, month = (first, second) if second <= _MONTHS_A_YEAR else (second, first)
    return year, month, day


def _build_day_if_valid(reader: NumberReader, at: int, end: int, parts: tuple[int | None, int, int]) -> Day | None:
    year, month, day = parts
    if not (1 <= month <= _MONTHS_A_YEAR and 1 <= day <= _LAST_DAY):
        return None
    if year is not None and not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    after = at
    while reader.token(after).start >= 0 and reader.token(after).start < end:
        after += 1
    return Day(f"{'-' if year is None else f'{year:04d}'}-{month:02d}-{day:02d}", after, at)


# --- with a month's name --------------------------------------------------------------------------------------


def _read_date_starting_with_number(reader: NumberReader, at: int) -> Day | None:
    """Read ``14 nov 2023``, ``the 22nd of June, 2016``, ``2020/23/Sep``, ``23-2020-सितंबर``, ``2020 में 28 जून``."""
    if not reader.has_months or not _has_month_after(reader, at):
        return None
    first = _read_day(reader, at) or _read_year(reader, at)
    if first is None:
        return None
    if first.value >= _FIRST_YEAR:
        return _read_year_first_date(reader, at, first)
    month_at = _skip_mark(reader, first.after, {"of", "-", "/", ".", ",", "को"})
    month = _read_month(reader, month_at, has_day=True)
    if month is not None:
        return _build_day_with_nearby_year(reader, at, month, first.value)
    month = _read_month_after_day_range(reader, first.after)
    if month is not None:
        return Day(_build_day_with_nearby_year(reader, at, month, first.value).iso, first.after, at)
    year = _read_year(reader, _skip_mark(reader, first.after, {"-", "/", "."}))
    if year is None:
        return None
    month = _read_month(reader, _skip_mark(reader, year.after, {"-", "/", "."}), has_day=True)
    return None if month is None else Day(_format_iso_date(year.value, month.value, first.value), month.after, at)


def _read_month_after_day_range(reader: NumberReader, at: int) -> _DatePart | None:
    """Return the month after a range of days: August in ``2 to 16 August``.

    ``at`` is the token after the first day.
    """
    at += reader.token(at).text == "."
    if reader.token(at).key not in _RANGE_MARKS:
        return None
    last = _read_day(reader, at + 1)
    return None if last is None else _read_month(reader, _skip_mark(reader, last.after, {"of", "."}), has_day=True)


_RANGE_MARKS = frozenset({"to", "-", "–", "—", "until", "till", "upto", "से", "se"})


def _has_month_after(reader: NumberReader, at: int) -> bool:
    return any(reader.token(place).key in MONTHS for place in range(at + 1, at + 8))


def _read_year_first_date(reader: NumberReader, at: int, year: _DatePart) -> Day | None:
    """Read a year, a day and a month in this order."""
    between = reader.token(year.after)
    if between.text not in {"/", "-", "."} and between.key not in IN_YEAR:
        return None
    day = _read_day(reader, year.after + 1)
    if day is None:
        return None
    month = _read_month(reader, _skip_mark(reader, day.after, {"/", "-", "."}), has_day=True)
    return None if month is None else Day(_format_iso_date(year.value, month.value, day.value), month.after, at)


def _read_date_starting_with_month(reader: NumberReader, at: int) -> Day | None:
    """Read ``November 19, 2014``, ``march third 2015``, ``Dec31 , 1994``, ``September-2020-23``, ``June 2014``."""
    month = _read_month(reader, at, has_day=False)
    if month is None:
        return None
    following = _skip_mark(reader, month.after, {"-", "]", ",", "/"})
    year = _read_year(reader, following)
    day = (
        None if year is not None and _is_year_without_day(reader, following, year) else _read_day(reader, following)
    )
    if day is not None:
        return _build_day_with_nearby_year(reader, at, _DatePart(month.value, day.after), day.value)
    if year is None:
        return None
    if reader.token(year.after).text == "-":
        last = _read_day(reader, year.after + 1)
        if last is not None:
            return Day(_format_iso_date(year.value, month.value, last.value), last.after, at)
    return Day(f"{year.value:04d}-{month.value:02d}", year.after, at)


def _is_year_without_day(reader: NumberReader, at: int, year: _DatePart) -> bool:
    """Return whether the words at ``at`` are only a year, and not a day with a year.

    "Fifteen oh six" is the day fifteen and the year 2006.
    """
    return reader.token(at).kind == NUMERAL or _read_year(reader, year.after) is None


def _build_day_with_nearby_year(reader: NumberReader, at: int, month: _DatePart, day: int) -> Day:
    """Build a date with the year after the month or before the day. Without a year, the date is partial."""
    following = _skip_mark(reader, month.after, {",", "-", "/", "."})
    if reader.token(following).key in {"of", "in", "सन", "वर्ष"}:
        following += 1
    if reader.token(following).text == "-" and following > month.after:
        following += 1
    year = _read_year(reader, following)
    if year is None:
        before = reader.token(at - 1)
        earlier = _read_year(reader, at - 2) if before.key in IN_YEAR else None
        if earlier is not None and earlier.after == at - 1:
            return Day(_format_iso_date(earlier.value, month.value, day), month.after, at - 2)
        return Day(f"--{month.value:02d}-{day:02d}", month.after, at)
    return Day(_format_iso_date(year.value, month.value, day), year.after, at)


def _format_iso_date(year: int, month: int, day: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}"


def _skip_mark(reader: NumberReader, at: int, marks: set[str]) -> int:
    """Skip one of ``marks`` and a comma or hyphen after it. Return the index of the next token."""
    if reader.token(at).key in marks:
        at += 1
        if reader.token(at).text in {",", "-"}:
            at += 1
    return at


def _read_month(reader: NumberReader, at: int, *, has_day: bool) -> _DatePart | None:
    token = reader.token(at)
    month = MONTHS.get(token.key)
    if month is None:
        return None
    if token.key in AMBIGUOUS_MONTHS and not has_day and not token.text[:1].isupper():
        place = at + 2 if reader.token(at + 1).text == "." else at + 1
        if reader.token(place).kind != NUMERAL and reader.word(place) is None:
            return None
    after = at + 1
    if reader.token(after).text == "." and reader.token(after).start == token.end:
        after += 1
    return _DatePart(month, after)


def _read_day(reader: NumberReader, at: int) -> _DatePart | None:
    """Read a day of the month in digits or words, cardinal or ordinal."""
    token = reader.token(at)
    if token.kind == NUMERAL:
        if not token.text.isdecimal() or len(token.text) > 2 or not 1 <= int(token.text) <= _LAST_DAY:  # noqa: PLR2004 - a day has two digits
            return None
        following = reader.token(at + 1)
        suffixed = following.start == token.end and following.key in {"st", "nd", "rd", "th"}
        return _DatePart(int(token.text), at + 2 if suffixed else at + 1)
    amounts = reader.read_number_spans(at) if token.kind == WORD else []
    if len(amounts) == 1 and 1 <= amounts[0].value <= _LAST_DAY and is_multiple(amounts[0].value, 1):
        return _DatePart(int(amounts[0].value), amounts[0].last + 1)
    word = reader.word(at)
    if word is not None and word.part.name == "ORDINAL" and 1 <= word.value <= _LAST_DAY:
        return _DatePart(int(word.value), at + 1)
    return None


def _read_year(reader: NumberReader, at: int) -> _DatePart | None:
    token = reader.token(at)
    if token.kind == NUMERAL:
        values = parse_numeral(token.text) if len(token.text.rstrip(",.")) == 4 else []  # noqa: PLR2004 - a year has four digits
        if len(values) == 1 and token.text.isdecimal() and _FIRST_YEAR <= values[0][0] <= _LAST_YEAR:
            return _DatePart(int(token.text), at + 1)
        return None
    amounts = reader.read_number_spans(at) if token.kind == WORD and reader.word(at) is not None else []
    if len(amounts) != 1 or amounts[0].ordinal or not is_multiple(amounts[0].value, 1):
        return None
    value = amounts[0].value
    return _DatePart(int(value), amounts[0].last + 1) if _FIRST_YEAR <= value <= _LAST_YEAR else None


# --- by weekday -----------------------------------------------------------------------------------------------

_NTH = {"first": 0, "second": 1, "third": 2, "fourth": 3}


def _read_nth_day_of_month(reader: NumberReader, at: int) -> Day | None:
    """Read ``last day of october 2015`` or ``second wednesday of october 2014``."""
    position, day_name = reader.token(at).key, reader.token(at + 1).key
    if reader.token(at + 2).key not in {"of", "in"} or reader.token(at + 3).key not in MONTHS:
        return None
    year = _read_year(reader, at + 4)
    if year is None:
        return None
    month = MONTHS[reader.token(at + 3).key]
    last = calendar.monthrange(year.value, month)[1]
    if day_name == "day" and position == "last":
        return Day(_format_iso_date(year.value, month, last), year.after, at)
    if day_name not in WEEKDAYS:
        return None
    days = [day for day in range(1, last + 1) if date(year.value, month, day).weekday() == WEEKDAYS[day_name]]
    return Day(_format_iso_date(year.value, month, days[_NTH.get(position, -1)]), year.after, at)


# --- relative to a day ----------------------------------------------------------------------------------------

_RELATIVE = {"today": 0, "tomorrow": 1, "yesterday": -1, "आज": 0, "aaj": 0, "tonight": 0}


def read_relative_date(reader: NumberReader, at: int, reference: date) -> Day | None:
    """Read ``today``, ``tomorrow`` or ``आज``. कल is not read: it means yesterday or tomorrow."""
    offset = _RELATIVE.get(reader.token(at).key)
    if offset is None:
        return None
    return Day((reference + timedelta(days=offset)).isoformat(), at + 1, at)
