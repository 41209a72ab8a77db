"""Read times of day: ``9am``, ``9:30 p.m.``, ``18:00``, ``12 noon``, ``सुबह 9 बजे``, ``shaam 6 baje``.

A bare number is a time of day if a range or a word shows this (``9 to 6pm``). Two figures with a colon may also be
a score, a ratio or a verse. Without a word such as "am" or "pm", they are read as a time only if they are on the
full or half hour, have a leading zero, are in a range, or follow a word such as "at". An hour up to twelve without
"am", "pm" or a part of the day is ambiguous.

Spoken hours are read too: ``half past one``, ``quarter to six``, ``halb fünf``, ``à quatre heures et demie``,
``a las cuatro y media de la tarde``. In ``9 to half past one``, the 9 is also a time.

"Always open" is also read as a time, in any wording: ``24/7``, ``24 hours a day``, ``around the clock``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.translations import LANGUAGES, load_listed_numbers
from monitors.facts.text import NUMERAL, split_into_word_keys

_BEHIND: Final = split_into_word_keys("am pm a p noon midnight o'clock बजे baje uhr")
_TO: Final = r"\s?(?:-|–|—|to|until|till|bis|hasta|से|se)\s?"
_HOURS: Final = r"बजे|baje|o'clock|uhr\b"
_PARTS: Final = "सुबह|शाम|दोपहर|रात|subah|shaam|sham|dopahar|dopeher|raat"
_TIME: Final = re.compile(
    rf"""(?<![\w.,:/])
    (?: (?P<part>{_PARTS})\s(?:(?:के|ke)\s)? )?
    (?P<hour>\d{{1,2}}) (?:(?:[:.]|\s?h\s?(?=[0-5]\d\b))(?P<minute>[0-5]\d)(?![\d:]))?
    (?: \s?(?P<half>[ap])(?:\.\s?m\b\.?|\s?m\b) | \s?(?P<named>noon|midnight)\b | \s?(?P<hours>{_HOURS})
      | (?P<range>(?={_TO}(?:(?:{_PARTS})\s)?\d{{1,2}}(?:[:.][0-5]\d)?(?:\s?[ap]\.?\s?m\b|\s?noon|\s?(?:{_HOURS})))
        | (?=\s(?:to|until|till)\s\d{{1,2}}:[0-5]\d(?![\d:])))
      | (?P<alone>(?![\w:/%]|[.,]\d|\s?(?:min|sec|hour|hr|मिनट|घंट|ghant)))
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_DOTTED_RANGE: Final = re.compile(
    rf"(?<![\w.,:/$€£₹])(?P<first>\d{{1,2}}\.[0-5]\d){_TO}(?P<last>\d{{1,2}}\.[0-5]\d)(?![\w.,:/%]|\s?[$€£₹%])"
    rf"(?!\s?(?:eur|usd|inr|rs|kg|km|m|cm|mm|percent|per)\b)",
    re.IGNORECASE,
)
_WITH_H: Final = re.compile(r"\d\s?h\s?[0-5]\d(?!\w)")
_OF_HOURS: Final = re.compile(
    r"\b(?:(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?s?|daily|open|hours|opening)\b[^.!?\n\d]{0,24}$",
    re.IGNORECASE,
)
"""Words that show that the two numbers after them, such as 8.30, are times of day.

An example is "Monday to Thursday, 8.30 to 15.30".
"""
_BEHIND_WORD: Final = re.compile(
    rf"(?:\b(?:at|from|until|till|by|before|after|between|opens?|closes?)\s|:[0-5]\d{_TO})$", re.IGNORECASE
)
_BEFORE_TIME: Final = re.compile(rf"{_TO}\d{{1,2}}:[0-5]\d", re.IGNORECASE)
_DAILY: Final = r"(?:(?:\s?/\s?|\s(?:a|per|each|every)\s)day|\sdaily)\b"
_WEEKLY: Final = (
    r"(?:7|seven)\sdays(?:\s?/\s?|\s(?:a|per|each|every)\s)week\b|every\sday\b|365\sdays(?:\s(?:a|per)\syear\b)?"
)
_ALWAYS: Final = re.compile(
    rf"""(?<![\w.,:/])
    (?: 24\s?[/x×]\s?7 (?:\s?[/x×]\s?365)? (?![\w/]|[.,:]\d|\s?=)
      | (?:24|twenty[\s-]four)\s?(?:hours|hrs)(?:{_DAILY}|(?=,?\s(?:and\s)?(?:{_WEEKLY})))
      | a?round[\s-]the[\s-](?-i:clock)\b | rund\sum\sdie\suhr\b )
    (?: ,?\s(?:and\s)?(?:{_WEEKLY}) ){{0,2}}""",
    re.IGNORECASE | re.VERBOSE,
)
# "Rock Around the Clock" is a song.
_ALWAYS_HINTS: Final = ("clock", "die uhr", "twenty")
"""Lower-case parts of phrases for "always open". A text without any of these parts is not searched further."""
_ALWAYS_DIGITS: Final = re.compile(r"24\s?[/x×h]")
_HOUR_WORDS: Final = {
    word: hour
    for hour, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
_SPOKEN: Final = re.compile(
    rf"""\b(?: (?P<from>\d{{1,2}}){_TO} )?
    (?: (?P<shift>(?:half|quarter|twenty-five|twenty|ten|five)\s(?:past|to)) \s
        (?P<hour>\d{{1,2}}|{"|".join(_HOUR_WORDS)})\b (?![:.]\d)
        (?: \s?(?P<half>[ap])(?:\.\s?m\b\.?|\s?m\b) )? )""",
    re.IGNORECASE | re.VERBOSE,
)
_SPOKEN_HINTS: Final = tuple(
    f"{word} {side}" for word in ("half", "quarter", "five", "ten", "twenty") for side in ("past", "to")
)
_MINUTES_SPOKEN: Final = {"half": 30, "quarter": 15, "twenty-five": 25, "twenty": 20, "ten": 10, "five": 5}
_HOURS_ABROAD: Final = {"une": 1, "una": 1} | {
    word: int(value)
    for language in LANGUAGES
    for word, value in load_listed_numbers(language).items()
    if value in {str(hour) for hour in range(1, 13)}
}
"""The hour for each number word in `languages.toml`.

"une" and "una" are added, because the file lists them as articles.
"""
_HOUR_ABROAD: Final = rf"\d{{1,2}}|{'|'.join(_HOURS_ABROAD)}"
_SPOKEN_ABROAD: Final = re.compile(
    rf"""\b(?: (?P<shift_de>halb|(?:viertel|fünf|zehn|zwanzig)\s(?:nach|vor))\s(?P<hour_de>{_HOUR_ABROAD})\b
      | (?P<at>(?:à|dès|vers|avant|jusqu'à)\s)?(?P<hour_fr>{_HOUR_ABROAD})\s?h(?:eures?)?\b
        (?:\s(?P<shift_fr>et\sdemie|et\squart|moins\sle\squart))?
      | las?\s(?P<hour_es>{_HOUR_ABROAD})\b (?:\s(?P<shift_es>y\smedia|y\scuarto|menos\scuarto))? )
    (?: \s(?:(?P<a>du\smatin|morgens|früh|vormittags|de\sla\smañana)
      | (?P<p>de\sl'après-midi|du\ssoir|nachmittags|abends|de\sla\s(?:tarde|noche)))\b )?""",
    re.IGNORECASE | re.VERBOSE,
)
"""German, French and Spanish hours in words: "halb fünf", "quatre heures et demie", "las cuatro y media".

A French hour is a time only after a preposition or before a part of the day. Otherwise it may be a duration.
"""
_SPOKEN_ABROAD_HINTS: Final = (
    "halb",
    *(f"{word} {side}" for word in ("viertel", "fünf", "zehn", "zwanzig") for side in ("vor", "nach")),
    "heure",
    "la ",
    "las ",
)
_HOUR_LETTER: Final = re.compile(r"\d\s?h\b")
"""A pattern for a French hour: the "18 h" in "à 18 h"."""
_SHIFTS_ABROAD: Final = {
    "halb": -30,
    **{f"{word} nach": minutes for word, minutes in (("viertel", 15), ("fünf", 5), ("zehn", 10), ("zwanzig", 20))},
    **{f"{word} vor": -minutes for word, minutes in (("viertel", 15), ("fünf", 5), ("zehn", 10), ("zwanzig", 20))},
    "et demie": 30,
    "et quart": 15,
    "moins le quart": -15,
    "y media": 30,
    "y cuarto": 15,
    "menos cuarto": -15,
}
_LOOKBACK_LENGTH: Final = 12
_NOON, _DAY = 12, 24
_EVENING: Final = frozenset({"शाम", "shaam", "sham"})
_MIDDAY: Final = frozenset({"दोपहर", "dopahar", "dopeher"})
_NIGHT: Final = frozenset({"रात", "raat"})
_FIRST_OF_NIGHT = 6
"""Hours of the night (रात) up to this hour are after midnight: रात 2 बजे is 02:00, रात 7 बजे is 19:00."""


ALWAYS: Final = "24/7"
"""The ``date`` of a time of day that means "always open". Its ``value`` is the number of minutes in a day."""


class _ClockTime(NamedTuple):
    start: int
    end: int
    hour: int
    minute: int
    is_open: bool
    """Whether the time may be before or after noon: 9 may be 09:00 or 21:00."""


def merge_times_of_day(reader: NumberReader, text: str, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Replace the bare numbers that form a time of day with that time. Return all readings."""
    lowered = text.lower()
    has = lowered.__contains__
    if any(map(has, _ALWAYS_HINTS)) or ("24" in text and _ALWAYS_DIGITS.search(lowered)):
        readings = _merge_always_open(reader, text, readings)
    others = (
        list(_find_times_in_dotted_ranges(text))
        if any(_has_two_digits_after_point(reader, reading) for reading in readings)
        else []
    )
    others += _find_spoken_times(text) if any(map(has, _SPOKEN_HINTS)) else ()
    if any(map(has, _SPOKEN_ABROAD_HINTS)) or _HOUR_LETTER.search(text):
        others += _find_foreign_spoken_times(text)
    if (
        not others
        and not any(_has_possible_time_mark_at(reader, reading.last + 1) for reading in readings)
        and _WITH_H.search(text) is None
    ):
        return readings
    starts = [token.start for token in reader.tokens]
    for time in (*others, *_find_clock_times(text)):
        inside = [reading for reading in readings if reading.start < time.end and time.start < reading.end]
        if any(
            reading.kind is not FactKind.NUMBER and not _is_duration_inside(reading, time) for reading in inside
        ):
            continue
        first, last = bisect_left(starts, time.start), bisect_left(starts, time.end) - 1
        readings = [reading for reading in readings if reading not in inside]
        readings.append(_build_time_reading(time, first, last))
    return sorted(readings, key=lambda reading: reading.start)


def _is_duration_inside(reading: QuantityReading, time: _ClockTime) -> bool:
    """Return whether all words of a duration belong to a time of day: ``16 h 30``, ``quatre heures et demie``."""
    return reading.kind is FactKind.DURATION and time.start <= reading.start and reading.end <= time.end


def _merge_always_open(reader: NumberReader, text: str, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Replace readings that together mean "always open" (24/7) with one time of day. Return all readings."""
    starts = [token.start for token in reader.tokens]
    for match in _ALWAYS.finditer(text):
        first, last = bisect_left(starts, match.start()), bisect_left(starts, match.end()) - 1
        always = QuantityReading(
            FactKind.TIME, Decimal(60 * _DAY), first, last, match.start(), match.end(), date=ALWAYS
        )
        readings = [each for each in readings if each.end <= match.start() or match.end() <= each.start]
        readings = [*readings, always]
    return sorted(readings, key=lambda each: each.start)


def _has_possible_time_mark_at(reader: NumberReader, behind: int) -> bool:
    """Return whether the token after a number can belong to a time of day.

    This check is faster than the full search.
    """
    token = reader.token(behind)
    return token.key in _BEHIND or (token.text == ":" and reader.token(behind + 1).kind == NUMERAL)


def _has_two_digits_after_point(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether a number has two digits after a point, and may begin a range of hours: 8.30 to 15.30."""
    text = reader.token(reading.first).text
    return reading.kind is FactKind.NUMBER and reading.first == reading.last and text[-3:-2] == "."


def _find_times_in_dotted_ranges(text: str) -> Iterator[_ClockTime]:
    for match in _DOTTED_RANGE.finditer(text):
        first, last = (int(match[end].partition(".")[0]) for end in ("first", "last"))
        if not (first < last < _DAY and _OF_HOURS.search(text[: match.start()][-_OPENING_WORDS:])):
            continue
        for hour, end in ((first, "first"), (last, "last")):
            yield _ClockTime(match.start(end), match.end(end), hour, int(match[end][-2:]), last <= _NOON)


_AT: Final = re.compile(r"\b(?:at|till|until|by|from|before|after)\s+$", re.IGNORECASE)


def _is_number_range(text: str, match: re.Match[str]) -> bool:
    """Return whether two numbers are a range (``ten to twelve pupils``) and not a time (``at ten to twelve``)."""
    is_quarter = match["shift"].lower().startswith("quarter")
    return not is_quarter and _AT.search(text[max(0, match.start() - _LOOKBACK_LENGTH) : match.start()]) is None


def _find_spoken_times(text: str) -> Iterator[_ClockTime]:
    for match in _SPOKEN.finditer(text):
        word = match["hour"].lower()
        in_day = _convert_to_24_hour_clock(
            _HOUR_WORDS[word] if word in _HOUR_WORDS else int(word), (match["half"] or "").lower()
        )
        if in_day is None or in_day >= _DAY:
            continue
        if match["from"] is not None and int(match["from"]) < _DAY:
            yield _ClockTime(match.start("from"), match.end("from"), int(match["from"]), 0, is_open=True)
        shift, direction = match["shift"].lower().split()
        if direction == "to" and shift not in {"quarter", "half"} and word not in _HOUR_WORDS:
            continue  # "ten to 12" is a range
        if direction == "to" and _is_number_range(text, match):
            continue
        minutes = _MINUTES_SPOKEN[shift] * (1 if direction == "past" else -1)
        minutes = (60 * in_day + minutes) % (60 * _DAY)
        yield _ClockTime(match.start("shift"), match.end(), *divmod(minutes, 60), is_open=not match["half"])


def _find_foreign_spoken_times(text: str) -> Iterator[_ClockTime]:
    for match in _SPOKEN_ABROAD.finditer(text):
        language = next(code for code in ("de", "fr", "es") if match[f"hour_{code}"])
        word, shift = match[f"hour_{language}"].lower(), (match[f"shift_{language}"] or "").lower()
        half = "a" if match["a"] else "p" if match["p"] else ""
        is_time = half or (match["at"] if language == "fr" else shift)
        in_day = _convert_to_24_hour_clock(_HOURS_ABROAD[word] if word in _HOURS_ABROAD else int(word), half)
        if not is_time or in_day is None or in_day >= _DAY:
            continue
        minutes = (60 * in_day + _SHIFTS_ABROAD.get(shift, 0)) % (60 * _DAY)
        is_open = not half and in_day <= _NOON
        start = match.start(f"shift_{language}" if language == "de" else f"hour_{language}")
        yield _ClockTime(start, match.end(), *divmod(minutes, 60), is_open=is_open)


_OPENING_WORDS: Final = 60
"""A day of the week or "open" is searched for in this number of characters before a range of hours."""


def _build_time_reading(time: _ClockTime, first: int, last: int) -> QuantityReading:
    minutes = 60 * time.hour + time.minute
    return QuantityReading(
        FactKind.TIME,
        Decimal(minutes),
        first,
        last,
        time.start,
        time.end,
        date=f"{time.hour:02}:{time.minute:02}",
        other_value=Decimal((minutes + 60 * _NOON) % (60 * _DAY)) if time.is_open else None,
    )


def _find_clock_times(text: str) -> Iterator[_ClockTime]:
    for match in _TIME.finditer(text):
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        if hour >= _DAY or not (_has_time_mark(match) or _is_time_without_mark(match, text)):
            continue
        in_day = _convert_to_24_hour_clock(hour, (match["half"] or match["named"] or match["part"] or "").lower())
        if in_day is None:
            continue
        is_open = not (match["half"] or match["named"] or match["part"]) and 0 < hour <= _NOON
        is_open = is_open and not match["hour"].startswith("0")
        start = match.start("hour")
        yield _ClockTime(start, match.end(), in_day, minute, is_open)


def _has_time_mark(match: re.Match[str]) -> bool:
    return any(match[mark] is not None for mark in ("half", "named", "hours", "range"))


def _is_time_without_mark(match: re.Match[str], text: str) -> bool:
    """Return whether digits are a time of day although no word for a time is beside them."""
    if match["minute"] is None or text[match.end("hour")] == ".":
        return False
    before = text[max(0, match.start() - _LOOKBACK_LENGTH) : match.start()]
    if text[match.end("hour")] != ":":  # "2 h 30" may be a duration
        return int(match["hour"]) >= _MIN_TIME_HOUR or _AT_ABROAD.search(before) is not None
    full = match["minute"] in {"00", "30"} or match["hour"].startswith("0")
    return full or bool(_BEHIND_WORD.search(before) or _BEFORE_TIME.match(text, match.end()))


_AT_ABROAD: Final = re.compile(r"(?:\bà|\bdès|\bvers|\bavant|\baprès|jusqu'à|\bde|\bentre|\bet)\s$", re.IGNORECASE)
_MIN_TIME_HOUR: Final = 5
"""The first hour for which a French time such as ``16 h 30`` is a time even without a preposition.

Smaller hours may be durations.
"""


def _convert_to_24_hour_clock(hour: int, half: str) -> int | None:
    """Return the hour from 0 to 23, or ``None`` for an impossible hour (0 pm)."""
    if not half:
        return hour
    if not 0 < hour <= _NOON:
        return hour if half not in {"a", "p", "noon", "midnight"} else None
    if half in {"noon", "midnight"}:
        return {"noon": _NOON, "midnight": 0}[half] if hour == _NOON else None
    late = (
        half == "p"
        or (half in _EVENING | _MIDDAY and hour != _NOON - 1)
        or (half in _NIGHT and _FIRST_OF_NIGHT < hour < _NOON)
    )
    return hour % _NOON + (_NOON if late else 0)
