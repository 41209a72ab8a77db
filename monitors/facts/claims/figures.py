"""Find the values that a text states, with their rates: quantities, ranges, ratios, identifiers, "free".

Claims are compared by figures. A figure is built from the readings of `monitors.facts.quantities.scan`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from monitors.facts.claims.vocabulary import LIGHT, PERIODS, STEMS, Mark
from monitors.facts.quantities.fact import Bound, FactKind, QuantityReading
from monitors.facts.quantities.measures import UNITS
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.scan import Scan
from monitors.facts.quantities.units import TIME_UNITS, TimeUnit
from monitors.facts.text import SIGN, WORD, split_into_word_keys


class FigureKind(StrEnum):
    """The kind of a figure. Only figures of one kind can be compared."""

    __hash__ = str.__hash__  # four times as fast as Enum's own hash; each reply needs hundreds

    NUMBER = "number"
    MONEY = "money"
    PERCENT = "percent"
    DURATION = "duration"
    DATE = "date"
    TIME = "time"
    QUANTITY = "quantity"
    IDENTIFIER = "identifier"
    RATIO = "ratio"
    UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and its position: tokens ``first`` to ``last`` (inclusive), characters ``start`` to ``end``.

    ``low`` is the quantity. For a range, ``low`` is the lower end and ``high`` the upper end. ``code`` contains the
    letters and digits of an identifier, or a ratio. ``per`` contains the stems of the rate ("per person and
    night"), and ``noun`` the stems of the counted thing.
    """

    kind: FigureKind
    low: QuantityReading
    first: int
    last: int
    start: int
    end: int
    high: QuantityReading | None = None
    bound: Bound = Bound.EXACT
    code: str = ""
    per: frozenset[str] = frozenset()
    noun: frozenset[str] = frozenset()
    per_last: int = -1
    """The last token of a rate that follows the figure, or -1 if no rate follows."""
    said_free: bool = False
    """Whether the value is written as "free", "costs nothing" or "half"."""
    said_often: bool = False
    """Whether the value is written as "once" or "twice". This counts only if the question asks how often."""

    @property
    def is_year(self) -> bool:
        """Return whether a number without a unit is a year, such as 1998. A year is not compared with a count."""
        return (
            self.kind is FigureKind.NUMBER
            and self.low.bare
            and not self.noun
            and 1000 <= self.low.value <= 2999  # noqa: PLR2004 - years have four digits, until 2999
            and self.low.value % 1 == 0
        )


_KINDS: Final = {kind: FigureKind(kind.value) for kind in FactKind}
_RANGE_TERMS: Final = frozenset({"-", "–", "—", "to", "upto", "till", "until", "through", "से", "se", "bis", "or"})
_BETWEEN: Final = frozenset({"between", "from"})
_ANDS: Final = frozenset({"and", "और", "aur", "&"})
_NO_RANGE_SIZE: Final = 4

# Letters and digits with separators, with at least two digits: a phone number, a version, an IBAN, a parking bay.
_IDENTIFIER: Final = re.compile(
    r"(?<![\w.,/+-])(?:"
    r"\+?\d{2,5}(?:[ /()-]{1,2}\d{2,6}){1,6}"  # phone numbers
    r"|\d{1,4}(?:\.\d{1,4}){2,3}"  # versions
    r"|[A-Z]{2}\d{2}(?: ?[0-9A-Z]{2,4}){3,8}"  # IBAN
    r"|[A-Z]{1,2}\d{1,2}[A-Z]? \d[A-Z]{2}"  # postcodes
    r"|\d{1,4}(?:-\d{1,5}){2,5}(?:-?[A-Z0-9])?"  # ISBN and the like
    r"|[A-Z]{1,5}[-/ ]?\d{1,8}(?:[-/]?[A-Z0-9]{1,6}){0,3}"  # F-210, TH/2290/09-B
    r"|[A-Z]{6,12}-?\d{1,8}"  # SPRING-77
    r"|[A-Z]{1,5}(?:[./-]\d{1,8}){2,4}"  # HM.1931.207
    r"|(?!Rs)(?:[A-Z]{1,4}|[A-Z][a-z]{0,3}\.) ?\d{1,6}/\d{1,6}"  # shelf marks
    r"|\d{1,3} [A-Z]{1,3} \d{1,6}/\d{2,4}"  # files of German courts
    r"|\d{1,3}-0\d{1,3}"
    r"|0\d{3,14}"  # leading zero
    r"|\d{3,6}-\d{3,8}|\d{1,3}-\d{1,3}"
    r"|\d{7,18}"
    r")(?![\w]|[.,]\d|-\d|/\d|:\d)"
)
_IDENTIFIER_HINT: Final = re.compile(
    r"\d(?:(?<=[A-Z]\d)|(?<=[A-Z][-/ ]\d)|(?<=[A-Za-z]\.\d)|(?<=[A-Za-z]\. \d)|(?=[-./ ()]\d)|(?=\d{6})"
    r"|(?<=0\d)(?=\d\d))"
)
"""A pattern that matches a part of every identifier. The search is fast, because a match begins at a digit."""
_RATIO: Final = re.compile(r"(?<![\w:.,])(\d{1,3}):(\d{1,3})(?![\w:]|[.,]\d)")
_MAX_HOUR: Final = 24
_MINUTES: Final = 60
_NOON: Final = 720
_HOUR_WORDS: Final = frozenset({"बजे", "baje", "o'clock", "uhr"})
_COUNTRY_CODE: Final = re.compile(r"(?:\+|00)(\d{1,3})")


def find_figures(scan: Scan, marks: Sequence[tuple[int, int, Mark]]) -> list[Figure]:
    """Return all figures of a text in order.

    ``marks`` are the phrases of the text that have a `Mark`. The function takes linear time.
    """
    readings = _convert_pence_and_hindi_hours(scan, [reading for reading in scan.readings if not reading.unread])
    readings = _add_units_of_nearby_words(scan.reader, _add_number_after_thousands(readings))
    codes = _find_identifiers_and_grouped_numbers(scan, readings)
    if codes:
        readings = [
            reading
            for reading in readings
            if not any(code.start < reading.end and reading.start < code.end for code in codes)
        ]
    readings, ratios = _read_colon_times_and_ratios(scan, readings)
    figures = [
        *_build_figures_and_ranges(scan.reader, readings),
        *ratios,
        *codes,
        *_find_worded_values(scan, readings, marks),
    ]
    figures.sort(key=lambda figure: figure.start)
    return figures


def _convert_pence_and_hindi_hours(scan: Scan, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Convert ``15p`` to money, and a spoken Hindi hour (``साढ़े ग्यारह बजे``) to a time of day."""
    reader, result = scan.reader, readings
    for place, reading in enumerate(readings):
        if reading.kind is not FactKind.NUMBER or reading.ordinal:
            continue
        behind = reader.token(reading.last + 1)
        changed = None
        if reading.attached and behind.text == "p" and behind.start == reading.end:
            changed = reading._replace(
                kind=FactKind.MONEY,
                value=reading.value / 100,
                last=reading.last + 1,
                end=behind.end,
                attached=False,
            )
        elif behind.key in _HOUR_WORDS and 0 <= reading.value <= _MAX_HOUR:
            minutes = reading.value * _MINUTES
            changed = reading._replace(
                kind=FactKind.TIME,
                value=minutes,
                other_value=(minutes + _NOON) % (2 * _NOON),
                date=f"{int(minutes) // _MINUTES:02}:{int(minutes) % _MINUTES:02}",
                last=reading.last + 1,
                end=behind.end,
            )
        if changed is not None:
            if result is readings:
                result = list(readings)
            result[place] = changed
    return result


def _add_number_after_thousands(readings: list[QuantityReading]) -> list[QuantityReading]:
    """Merge thousands and the number after them into one amount: ``2 mil 500 euros``."""
    for place in range(len(readings) - 2, -1, -1):
        first, second = readings[place], readings[place + 1]
        follows = second.first == first.last + 1 and first.scale == _THOUSAND and second.scale == 1
        if first.kind is FactKind.NUMBER and follows and second.value < _THOUSAND:
            joined = second._replace(value=first.value + second.value, first=first.first, start=first.start)
            readings = [*readings[:place], joined, *readings[place + 2 :]]
    return readings


_THOUSAND: Final = 1000
_NOUNS_BETWEEN: Final = 3


def _add_units_of_nearby_words(reader: NumberReader, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Add units that do not directly follow a number: ``6 meeting-room hours``, ``20 days, others in 3``."""
    result = readings
    for place, reading in enumerate(readings):
        if reading.kind is not FactKind.NUMBER or reading.ordinal or reading.attached or reading.counts:
            continue
        unit, last = _find_unit_behind_nouns(reader, reading)
        earlier = result[place - 1] if place else None
        changed = None
        if unit is None and is_age(reader, reading):
            unit, last = TIME_UNITS["year"], reading.last
        if unit is not None:
            changed = reading._replace(
                kind=FactKind.DURATION, original_value=reading.value, original_unit=unit.name,
                months=reading.value * unit.months, days=reading.value * unit.days,
                last=last, end=reader.token(last).end,
            )  # fmt: skip
        elif earlier is not None and earlier.original_value and _has_unit_of_neighbour(reader, earlier, reading):
            factor = reading.value / earlier.original_value
            changed = reading._replace(
                kind=earlier.kind, original_value=reading.value, original_unit=earlier.original_unit,
                unit=earlier.unit, months=earlier.months * factor, days=earlier.days * factor,
                value=earlier.value * factor if earlier.kind is FactKind.QUANTITY else reading.value,
            )  # fmt: skip
        if changed is not None:
            if result is readings:
                result = list(readings)
            result[place] = changed
    return result


_PEOPLE: Final = split_into_word_keys(
    "child children kids kid guests visitors people anyone adults kinder enfants niños bachche बच्चे"
)
_AGE_LIMITS: Final = split_into_word_keys("under over below above")
_AGES: Final = frozenset({"age", "ages", "aged", "umar", "उम्र", "आयु"})


def is_age(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether a bare number is an age in years: ``from the age of 7``, ``aged 7``."""
    before, earlier = reader.token(reading.first - 1).key, reader.token(reading.first - 2).key
    return (earlier if before == "of" else before) in _AGES or (before in _AGE_LIMITS and earlier in _PEOPLE)


def _find_unit_behind_nouns(reader: NumberReader, reading: QuantityReading) -> tuple[TimeUnit | None, int]:
    for at in range(reading.last + 1, reading.last + 2 + 2 * _NOUNS_BETWEEN):
        token = reader.token(at)
        if at > reading.last + 1 and token.key in TIME_UNITS and token.key.endswith("s"):
            return TIME_UNITS[token.key], at
        if token.text != "-" and (token.kind != WORD or token.key in LIGHT):
            break
    return None, 0


def _has_unit_of_neighbour(reader: NumberReader, earlier: QuantityReading, reading: QuantityReading) -> bool:
    following = reader.token(reading.last + 1)
    if earlier.kind not in {FactKind.DURATION, FactKind.QUANTITY} or not (reading.bare or reading.worded):
        return False
    between = [reader.token(at).text for at in range(earlier.last + 1, reading.first)]
    within = len(between) <= _MAX_BETWEEN and not _SENTENCE_ENDS.intersection(between)
    before = reader.token(reading.first - 1).key
    if earlier.kind is FactKind.DURATION and between in (["to"], ["-"], ["–"]) and is_age(reader, earlier):
        return True
    return within and before in _BEFORE_UNITLESS and (following.text in {".", ",", ";", ")", "", "!", "*"})


_MAX_BETWEEN: Final = 10
_SENTENCE_ENDS: Final = frozenset(".!?")
_BEFORE_UNITLESS: Final = split_into_word_keys("in for only just at to : is takes within after of")


def _read_colon_times_and_ratios(
    scan: Scan, readings: list[QuantityReading]
) -> tuple[list[QuantityReading], list[Figure]]:
    """Convert two numbers with a colon between them: ``7:05`` to a time of day, ``3:1`` to a ratio."""
    text = scan.normalised.text
    if ":" not in text:
        return readings, []
    ratios: list[Figure] = []
    for match in _RATIO.finditer(text):
        inside = [reading for reading in readings if match.start() <= reading.start and reading.end <= match.end()]
        if not inside or any(reading.kind is not FactKind.NUMBER for reading in inside):
            continue
        first, last = inside[0], inside[-1]
        hour, minute = int(match[1]), int(match[2])
        is_time = len(match[2]) == 2 and hour < _MAX_HOUR and minute < _MINUTES  # noqa: PLR2004 - digits of minutes
        joined = first._replace(last=last.last, end=match.end())
        readings = [reading for reading in readings if reading not in inside]
        if is_time:
            minutes = Decimal(hour * _MINUTES + minute)
            other = (minutes + _NOON) % (2 * _NOON) if 0 < hour <= _NOON // _MINUTES else None
            date = f"{hour:02}:{minute:02}"
            readings.append(joined._replace(kind=FactKind.TIME, value=minutes, other_value=other, date=date))
        else:
            code = f"{hour}:{minute}"
            ratios.append(
                Figure(FigureKind.RATIO, joined, joined.first, joined.last, joined.start, joined.end, code=code)
            )
    readings.sort(key=lambda reading: reading.start)
    return readings, ratios


def _build_figures_and_ranges(reader: NumberReader, readings: Sequence[QuantityReading]) -> list[Figure]:
    figures: list[Figure] = []
    at = 0
    while at < len(readings):
        low = readings[at]
        high = readings[at + 1] if at + 1 < len(readings) else None
        if high is not None and _is_range(reader, low, high):
            figures.append(_build_figure(reader, low, high))
            at += 2
        else:
            within = bool(figures) and low.first <= figures[-1].per_last
            if not (within or low.attached or _states_no_value(reader, low) or _is_footnote(reader, low)):
                figures.append(_build_figure(reader, low, None))
            at += 1
    return figures


def _states_no_value(reader: NumberReader, low: QuantityReading) -> bool:
    """Return whether a number word states no value.

    Examples are ``the first``, and "a day" in "a day pass".
    """
    if not low.worded or low.counts or (low.original_value or low.value) != 1:
        return False
    if low.kind is FactKind.DURATION:
        following = reader.token(low.last + 1)
        return following.kind == WORD and following.key not in LIGHT
    return low.ordinal


def _is_footnote(reader: NumberReader, low: QuantityReading) -> bool:
    """Return whether digits are a footnote mark, such as 1 in "cancelled1."."""
    before = reader.token(low.first - 1)
    return (
        low.kind is FactKind.NUMBER
        and before.kind == WORD
        and before.end == low.start
        and before.text[-1].islower()
    )


def _is_range(reader: NumberReader, low: QuantityReading, high: QuantityReading) -> bool:
    if low.kind is not high.kind or low.ordinal != high.ordinal:
        return False
    gap = [reader.token(at).key for at in range(low.last + 1, min(high.first, low.last + 1 + _NO_RANGE_SIZE))]
    if len(gap) >= _NO_RANGE_SIZE:
        return False
    if {low.bound, high.bound} == {Bound.AT_LEAST, Bound.AT_MOST} and gap and not _ANDS.isdisjoint(gap):
        return low.bound is Bound.AT_LEAST
    before = {reader.token(low.first - step).key for step in (1, 2)}
    if _is_cell_between_dashes(reader, low):
        return False
    joints = [key for key in gap if key not in {"the", "a", "from", "no", "up"}]
    if len(joints) != 1:
        return False
    if joints[0] in _ANDS:
        return "between" in before
    if joints[0] == "or":
        return False
    return joints[0] in _RANGE_TERMS and not _is_change_of_value(reader, low.first)


def _is_cell_between_dashes(reader: NumberReader, low: QuantityReading) -> bool:
    """Return whether a number has dashes on both sides, as in a row of a table: 9 in ``Ladybirds – 9 – 3``."""
    return reader.token(low.first - 1).text in {"–", "—", "-"} and reader.token(low.last + 1).text in {
        "–",
        "—",
        "-",
    }


def _is_change_of_value(reader: NumberReader, at: int) -> bool:
    """Return whether two figures are a change (``went up from 35 GB to 70 GB``) and not a range."""
    keys = [reader.token(place).key for place in range(at - 1, at - 6, -1)]
    return "from" in keys and any(_CHANGES.get(key) for key in keys)


def _map_words_to_is_change() -> dict[str, bool]:
    from monitors.facts.claims.vocabulary import PHRASES

    return {key: any(mark is Mark.CHANGE for _, mark in entries) for key, entries in PHRASES.items()}


_CHANGES: Final = _map_words_to_is_change()


def _build_figure(reader: NumberReader, low: QuantityReading, high: QuantityReading | None) -> Figure:
    end = high or low
    bound = low.bound if high is None else Bound.EXACT
    if bound is Bound.AT_MOST and _is_lower_bound_despite_words(reader, low):
        bound = Bound.AT_LEAST
    if low.kind in {FactKind.TIME, FactKind.DATE} and high is None:
        before = reader.token(low.first - 1).key
        if before in {"the", "of"}:  # "of" is also the translation of "zum"
            before = reader.token(low.first - 2).key
        bound = _TIME_BOUNDS.get(before, bound)
        bound = Bound.AT_LEAST if reader.token(low.last + 1).key in {"onwards", "onward"} else bound
    noun, behind = (
        _find_counted_noun_and_length(reader, end)
        if low.kind in {FactKind.NUMBER, FactKind.DURATION}
        else (frozenset[str](), 0)
    )
    if bound is Bound.EXACT:
        bound = _find_bound_behind(reader, end.last + 1 + behind)
    per, after = _find_rate_and_end_behind(reader, end, end.last + 1 + behind)
    if not per:
        per = _find_rate_before(reader, low.first)
    if end.per:
        per = frozenset(word for word in per if word not in _PERIOD_NAMES) | {end.per}
    if not _DATES.isdisjoint(noun):
        per = frozenset[str]()
    low = low._replace(per="")
    high = high and high._replace(per="")
    return Figure(
        _KINDS[low.kind],
        low,
        low.first,
        end.last,
        low.start,
        end.end,
        high,
        bound,
        per=per,
        noun=noun,
        per_last=after - 1,
    )


_TIME_BOUNDS: Final = {
    "from": Bound.AT_LEAST, "after": Bound.AT_LEAST, "until": Bound.AT_MOST, "till": Bound.AT_MOST,
    "upto": Bound.AT_MOST, "by": Bound.AT_MOST, "before": Bound.AT_MOST,
}  # fmt: skip


_BOUNDS_BEHIND: Final = {
    "more": Bound.AT_LEAST, "over": Bound.AT_LEAST, "above": Bound.AT_LEAST, "less": Bound.AT_MOST,
    "fewer": Bound.AT_MOST, "under": Bound.AT_MOST, "below": Bound.AT_MOST, "later": Bound.AT_LEAST,
    "longer": Bound.AT_LEAST, "up": Bound.AT_LEAST, "sooner": Bound.AT_MOST, "earlier": Bound.AT_MOST,
    "shorter": Bound.AT_MOST,
}  # fmt: skip
_BOUNDS_AFTER_AND: Final = split_into_word_keys("above over up under below")
_MAX_BOUND_DISTANCE: Final = 4
"""The words "or more" make a figure a bound. They are searched for in this many words after the figure."""


def _find_bound_behind(reader: NumberReader, after: int) -> Bound:
    """Return the bound after a figure: `AT_LEAST` for ``140 guests or more``, `AT_MOST` for ``3 days or less``."""
    for at in range(after, after + _MAX_BOUND_DISTANCE):
        token = reader.token(at)
        if token.kind != WORD:
            break
        if token.key == "or" or (token.key == "and" and reader.token(at + 1).key in _BOUNDS_AFTER_AND):
            return _BOUNDS_BEHIND.get(reader.token(at + 1).key, Bound.EXACT)
        if token.key == "upwards":
            return Bound.AT_LEAST
    return Bound.EXACT


def _is_lower_bound_despite_words(reader: NumberReader, low: QuantityReading) -> bool:
    """Return whether "later" sets a lower limit because "before" follows: ``no later than half an hour before``."""
    late = any(reader.token(at).key in {"later", "latest"} for at in range(low.first - 3, low.first))
    return late and reader.token(low.last + 1).key in {"before", "prior", "ahead"}


_DATES: Final = frozenset(STEMS[word] for word in ("तारीख", "tareekh", "tarikh"))
"""Hindi words for "date". "The 18th of every month" is a date, not a rate per month."""
_PER: Final = frozenset({"per", "प्रति", "prati", "/"})
_EACH: Final = frozenset({"each", "every", "हर", "har", "any"})
_ARTICLES: Final = frozenset({"a", "an"})
_TIMES: Final = frozenset({"times", "time", "baar", "bar", "बार", "mal\0", "fois\0", "veces\0"})
"""Words between a number and its rate: "3 times a day".

``\\0`` is added to words that are not translated to English.
"""
_ARTICLES_AS_PER: Final = frozenset({"le", "la", "el", "l"})
_GERMAN_PER: Final = frozenset({"im", "am"})
_PER_END: Final = frozenset({"and", "the", "a", "per", "each", "every", "और", "aur"})
_MAX_PER: Final = 7
_MAX_PER_BEFORE: Final = 10
"""Maximum number of words between a rate and its amount: "each hour that you are late costs 5 euros"."""
_PERIOD_NAMES: Final = frozenset(PERIODS.values())


def _find_rate_unit_stem(key: str) -> str:
    unit = UNITS.get(key.removesuffix("\0"))
    return unit.name if unit is not None else PERIODS.get(key) or STEMS[key]


def _find_rate_and_end_behind(  # noqa: C901, PLR0912 - one walk over the tokens behind an amount
    reader: NumberReader, end: QuantityReading, at: int
) -> tuple[frozenset[str], int]:
    """Return the rate after a figure (``per person and night``, ``/kWh``), and the token after the rate.

    Without a rate, return an empty set and the token after the figure.
    """
    stems = list[str]()
    if reader.token(at).key in _TIMES:
        at += 1
    if reader.token(end.last).text == "." or reader.token(end.last + 1).text == ".":
        return frozenset(), end.last + 1
    if reader.token(at).text == "(":
        at += 1
    if reader.token(at).text == "/" and reader.token(at + 1).text == "-":
        at += 2
    if reader.token(at).key == "for" and reader.token(at + 1).key in _EACH:
        at += 1
    of_one = reader.token(at).key in {"for", "of"} and reader.token(at + 1).key in _ARTICLES
    if end.kind is FactKind.MONEY and of_one and reader.token(at + 2).key in PERIODS:
        at += 1  # "£40 for a week"
    limit = at + _MAX_PER
    leads = False
    while at < limit:
        token = reader.token(at)
        if (
            token.key in _PER
            or token.key in _EACH
            or (
                token.key in _ARTICLES
                and (reader.token(at + 1).key in PERIODS or not (stems or end.kind is FactKind.DURATION))
            )
            or (
                (token.key == "the" != token.text.lower() or token.text in _GERMAN_PER)
                and reader.token(at + 1).key in PERIODS
            )  # "190 € la journée", "9 € im Monat"
            or (
                end.kind is FactKind.MONEY
                and at == end.last + 1
                and token.text.lower() in _ARTICLES_AS_PER
                and reader.token(at + 1).kind == WORD
                and not reader.token(at + 1).text[0].isupper()
            )  # "4,80 € la bandeja"
        ):
            leads = True
        elif (
            token.key in PERIODS
            and not (stems or leads)
            and (token.key.endswith("ly") or _is_price_of_period(reader, end, at))
        ):
            return frozenset({PERIODS[token.key]}), at + 1
        elif token.key in {"annum", "annually"}:
            return frozenset({"year"}), at + 1
        elif leads and token.kind == WORD and token.key not in _PER_END:
            following = reader.token(at + 1)
            plain = token.text.removesuffix("\0")
            is_known_period = token.key in PERIODS or plain in UNITS or plain.lower() in UNITS
            if (
                following.kind == WORD
                and token.key.endswith("\0")
                and following.text[0].isupper()
                and not is_known_period
            ):
                stems.append(_find_rate_unit_stem(token.key))
                token, at = following, at + 1
                following = reader.token(at + 1)
            stems.append(_find_rate_unit_stem(token.key))
            if not (following.key == "and" or following.key in _PER | _EACH | _ARTICLES):
                return frozenset(stems), at + 1
        elif (stems and token.key == "and") or (
            token.key in {"from", "of"} and reader.token(at + 1).key.endswith("ly")
        ):
            pass
        else:
            break
        at += 1
    return frozenset(stems), end.last + 1


def _is_price_of_period(reader: NumberReader, end: QuantityReading, at: int) -> bool:
    """Return whether a period directly after an amount is the amount's rate.

    Return True for ``₹200 mahina``, but not for ``£5 day ticket``.
    """
    following = reader.token(at + 1)
    return end.kind is FactKind.MONEY and at == end.last + 1 and (following.kind != WORD or following.key in LIGHT)


def _find_rate_before(reader: NumberReader, first: int) -> frozenset[str]:
    """Return the rate before a figure: ``each session is £34``, ``हर किलोमीटर के ₹12``."""
    for at in range(first - 1, max(first - _MAX_PER_BEFORE, 0) - 1, -1):
        token = reader.token(at)
        if token.kind == SIGN and token.text in ".;!?,(":
            break
        if token.key in _EACH or token.key in _PER:
            noun = reader.token(at + 1)
            return (
                frozenset({_find_rate_unit_stem(noun.key)}) if noun.kind == WORD and at + 1 < first else frozenset()
            )
        if token.key in {"ek", "एक", "one"} and reader.token(at + 2).key in {"ke", "के"}:
            return frozenset({_find_rate_unit_stem(reader.token(at + 1).key)})
    return frozenset()


def _find_counted_noun_and_length(reader: NumberReader, end: QuantityReading) -> tuple[frozenset[str], int]:
    """Return the stems of the counted thing after a number, and how many tokens name the thing."""
    stems: list[str] = []
    at = end.last + 1
    while at < end.last + 5:
        token = reader.token(at)
        if token.text == "-" and stems:
            at += 1
            continue
        if token.kind != WORD or (token.key in LIGHT and token.key not in TIME_UNITS and token.key not in _COUNTED):
            break
        stems.append(STEMS[token.key])
        at += 1
    return frozenset(stems), at - end.last - 1


_COUNTED: Final = frozenset({"person", "people"})
"""Words that are ignored elsewhere, but can name a counted thing: "4 people"."""


def _find_identifiers_and_grouped_numbers(scan: Scan, readings: Sequence[QuantityReading]) -> list[Figure]:
    text, reader = scan.normalised.text, scan.reader
    if _IDENTIFIER_HINT.search(text) is None:
        return []
    starts = {token.start: at for at, token in enumerate(reader.tokens)}
    figures: list[Figure] = []
    for match in _IDENTIFIER.finditer(text):
        first = starts.get(match.start())
        typed = any(
            reading.kind is not FactKind.NUMBER
            and not (
                reading.kind is FactKind.DATE and first is not None and reader.token(first - 1).key in _VERSIONS
            )
            and reading.start < match.end()
            and match.start() < reading.end
            for reading in readings
        )
        grouped = _GROUPED_CODE.fullmatch(match[0]) is not None
        is_text = len(match[0]) == len(text.strip(" .")) and " " in match[0]
        grouped |= is_text and _THOUSANDS.fullmatch(match[0]) is not None
        alone = is_text and not grouped
        if first is None or typed or not (alone or grouped or _is_identifier(match[0], reader, first)):
            continue
        last = first
        while last + 1 < reader.size and reader.token(last + 1).end <= match.end():
            last += 1
        code = normalise_code(match[0])
        is_number = grouped or _SPELLED_DIGITS.fullmatch(match[0]) is not None
        value = Decimal(code) if is_number else Decimal(0)
        low = QuantityReading(FactKind.NUMBER, value, first, last, match.start(), match.end())
        kind = FigureKind.NUMBER if is_number else FigureKind.IDENTIFIER
        figures.append(Figure(kind, low, first, last, match.start(), match.end(), code="" if is_number else code))
    return figures


_SPELLED_DIGITS: Final = re.compile(r"[1-9](?:-\d){2,5}")
"""A number dictated digit by digit: "1-4-0". A longer number or a number with a leading zero is an identifier."""
_GROUPED_CODE: Final = re.compile(r"[1-9]\d{0,2}(?: \d{3})* 0\d\d(?: \d{3})*")
"""A pattern for digits in groups of three, of which a later group begins with 0.

Such groups are one number in all languages: "560 037".
"""
_THOUSANDS: Final = re.compile(r"\d{1,3}(?: \d{3})+")
_MAX_PLAIN_LETTERS: Final = 3
_VERSIONS: Final = frozenset({"version", "firmware", "release", "app", "v", "build"})


def _is_identifier(text: str, reader: NumberReader, first: int) -> bool:
    """Return whether a text is an identifier. "20-30" is a range, "May 2024" a date, "COVID-19" a name."""
    digits = sum(character.isdigit() for character in text)
    letters = sum(character.isalpha() for character in text)
    if letters:
        is_code = letters <= digits + _MAX_PLAIN_LETTERS or (" " not in text and not text.startswith("COVID"))
        return is_code and text[0].isupper() and not text.startswith(("Rs", "I "))
    before = reader.token(first - 1).text
    if before in {"$", "€", "£", "₹"}:
        return False
    if text.startswith("0") or text.count(".") > 1 or text.count("-") > 1:
        return True
    if "-" in text and "." not in text:
        low, _, high = text.partition("-")
        if low.startswith(("19", "20")) and len(low) == 4:  # noqa: PLR2004 - 2024-25 is a year
            return False
        if high.startswith("0") and len(high) > 1:
            return True
        return len(low) > 2 and digits > 8 if int(low or 0) < int(high or 0) else low.isdigit()  # noqa: PLR2004 - a number of 9 digits is no range
    return digits > 6 and "." not in text  # noqa: PLR2004 - a telephone number has seven


def normalise_code(text: str) -> str:
    """Return the letters and digits of an identifier. A leading ``+`` is not removed."""
    match = _COUNTRY_CODE.match(text)
    plain = "".join(character for character in text if character.isalnum()).upper()
    if match and text.startswith("+"):
        return f"+{plain}"
    return plain


_VALUES: Final = Mark.FREE | Mark.UNLIMITED | Mark.HALF | Mark.NOT_FREE
_OFTEN: Final = {"once": Decimal(1), "twice": Decimal(2), "thrice": Decimal(3)}


def _find_worded_values(
    scan: Scan, readings: Sequence[QuantityReading], marked: Sequence[tuple[int, int, Mark]]
) -> list[Figure]:
    """Find values that are written as words, such as ``free of charge``, ``unlimited`` or ``half``."""
    tokens = scan.reader.tokens
    marks = [mark for mark in marked if mark[2] & _VALUES]
    figures: list[Figure] = []
    for at, token in enumerate(tokens):
        if token[1] in _OFTEN:
            low = QuantityReading(FactKind.NUMBER, _OFTEN[token.key], at, at, token.start, token.end, worded=True)
            per, after = _find_rate_and_end_behind(scan.reader, low, at + 1)
            figures.append(
                Figure(
                    FigureKind.NUMBER, low, at, at, token.start, token.end, said_often=True, per=per,
                    per_last=after - 1,
                )
            )  # fmt: skip
    after_last = -1
    denied = [(first, after) for first, after, mark in marks if mark is Mark.NOT_FREE]
    for first, after, mark in marks:
        if first < after_last or mark is Mark.NOT_FREE or any(a < after and first < b for a, b in denied):
            continue
        if any(reading.first < after and first <= reading.last for reading in readings):
            continue
        if mark is Mark.HALF and tokens[first].text[0].isupper() and first:
            continue
        kind = {Mark.FREE: FactKind.MONEY, Mark.HALF: FactKind.PERCENT}.get(mark, FactKind.NUMBER)
        value = Decimal(50 if mark is Mark.HALF else 0)
        start, end = tokens[first].start, tokens[after - 1].end
        low = QuantityReading(kind, value, first, after - 1, start, end, worded=True)
        shown = FigureKind.UNLIMITED if mark is Mark.UNLIMITED else _KINDS[kind]
        figures.append(Figure(shown, low, first, after - 1, start, end, said_free=mark is not Mark.UNLIMITED))
        after_last = after
    return figures
