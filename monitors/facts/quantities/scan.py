"""Read every quantity of a text without overlaps: "₹5 lakh" is money, not a number.

The bounds around a quantity are read too ("up to", "at least", "not exceeding", "तक", "se kam"). Quantities that
belong together are joined: compounds (2 years, 3 months), hundredths (3 dollars 50 cents) and ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from monitors.facts.quantities.clock import merge_times_of_day
from monitors.facts.quantities.currencies import MINOR
from monitors.facts.quantities.dates import Day, read_date, read_relative_date
from monitors.facts.quantities.fact import Bound, Fact, FactKind, QuantityReading
from monitors.facts.quantities.locales import (
    PLAIN,
    Locale,
    Writing,
    build_locale,
    convert_decimal_commas,
    resolve_reading_by_locale,
)
from monitors.facts.quantities.measures import add_measure_units
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.numbered import add_numbered_noun
from monitors.facts.quantities.numerals import EXACT, MAX_VALUE, format_plain, is_multiple
from monitors.facts.quantities.other_languages import mark_unread_beside_unknown_word, translate_or_hide_words
from monitors.facts.quantities.periods import add_period
from monitors.facts.quantities.quantity_reader import build_plain_number, read_quantities
from monitors.facts.quantities.units import DAYS_PER_MONTH, DAYS_PER_YEAR, STARTS, UNIT_KEYS
from monitors.facts.text import (
    END,
    WORD,
    Normalised,
    TokenisedText,
    find_tokens_after_breaks,
    find_unread_middle,
    normalise_and_tokenise,
    split_around_unread,
    split_into_word_keys,
)
from monitors.records.base import Language

_AT_MOST_BEFORE = split_into_word_keys(
    "upto maximum max maximally अधिकतम adhiktam within under below capped cap limited restricted ज्यादा_से"
)
_AT_LEAST_BEFORE = split_into_word_keys("minimum min over above exceeding exceeds beyond न्यूनतम nyuntam न्युनतम")
_NEGATIONS = split_into_word_keys("not no never without न नहीं nahi nahin")
_LINKS = split_into_word_keys("of age to a an the is be by at for period about around approximately of: : है hai")
_STOPS = frozenset(".;!?()|•\n")
_WINDOW = 4


def find_bound(reader: NumberReader, first: int, last: int) -> Bound:
    """Return the bound of the quantity between tokens ``first`` and ``last`` (inclusive)."""
    behind = _find_bound_behind(reader, last + 1)
    if behind is not Bound.EXACT:
        return behind
    return _find_bound_before(reader, first - 1)


def _find_bound_behind(reader: NumberReader, at: int) -> Bound:
    key, following = reader.token(at).key, reader.token(at + 1).key
    if key in {"तक", "tak"} or (key, following) in _AT_MOST_BEHIND:
        return Bound.AT_MOST
    if key in {"maximum", "max", "maximal", "अधिकतम"}:
        return Bound.AT_MOST
    if (
        key in {"onwards", "onward", "plus", "+", "upwards", "minimum", "न्यूनतम"}
        or (key, following) in _AT_LEAST_BEHIND
    ):
        return Bound.AT_LEAST
    if following == "at" and reader.token(at).kind == WORD and key not in _JOINTS_OR:
        return {"most": Bound.AT_MOST, "least": Bound.AT_LEAST}.get(reader.token(at + 2).key, Bound.EXACT)
    return Bound.EXACT


_JOINTS_OR = frozenset({"and", "or", "but"})
_REPEATED = {
    "कम": Bound.AT_LEAST, "kam": Bound.AT_LEAST, "ज्यादा": Bound.AT_MOST, "zyada": Bound.AT_MOST,
    "jyada": Bound.AT_MOST, "अधिक": Bound.AT_MOST, "adhik": Bound.AT_MOST,
}  # fmt: skip
"""Words that Hindi repeats with "से" between them, and the bound that they then mean.

कम से कम is "at least", and ज़्यादा से ज़्यादा is "at most".
"""
_AT_MOST_BEHIND = frozenset(
    {
        ("से", "कम"), ("se", "kam"), ("से", "छोटे"), ("se", "chhote"), ("or", "less"), ("or", "below"),
        ("and", "below"), ("or", "fewer"), ("or", "younger"), ("or", "lighter"), ("or", "shorter"),
        ("or", "smaller"), ("या", "कम"), ("ya", "kam"), ("at", "most"),
        ("के", "अंदर"), ("के", "भीतर"), ("ke", "andar"), ("ke", "bheetar"), ("ke", "bhitar"),
        ("and", "under"), ("or", "under"), ("and", "younger"),
    }
)  # fmt: skip
_AT_LEAST_BEHIND = frozenset(
    {
        ("से", "अधिक"), ("से", "ज्यादा"), ("से", "ऊपर"), ("se", "zyada"), ("se", "jyada"), ("se", "adhik"),
        ("se", "upar"), ("or", "more"), ("and", "above"), ("or", "above"), ("and", "over"), ("or", "over"),
        ("at", "least"), ("से", "बडे"), ("se", "bade"), ("or", "older"), ("and", "older"), ("and", "up"),
        ("or", "higher"), ("or", "longer"), ("or", "heavier"), ("या", "ज्यादा"), ("या", "अधिक"), ("या", "ऊपर"),
        ("ya", "zyada"), ("ya", "jyada"), ("ya", "adhik"), ("ya", "upar"), ("या", "बडे"),
    }
)  # fmt: skip


def _find_bound_before(reader: NumberReader, at: int) -> Bound:
    """Return the bound that the words before the quantity state, in the same clause."""
    for place in range(at, max(-1, at - _WINDOW), -1):
        key, earlier = reader.token(place).key, reader.token(place - 1).key
        if key == "." and earlier in {"max", "min"}:
            return Bound.AT_MOST if earlier == "max" else Bound.AT_LEAST
        if key in _STOPS or key == ",":
            return Bound.EXACT
        bound = _read_bound_phrase(reader, place, key, earlier)
        if bound is not Bound.EXACT:
            return bound
        if key not in _LINKS:
            return Bound.EXACT
    return Bound.EXACT


def _read_bound_phrase(reader: NumberReader, place: int, key: str, earlier: str) -> Bound:
    negated = earlier in _NEGATIONS
    if key == "to" and earlier == "up":
        return Bound.AT_MOST
    if key == "than":
        return _read_bound_before_than(reader, place - 1)
    if key in {"most", "least"} and earlier == "at":
        return Bound.AT_MOST if key == "most" else Bound.AT_LEAST
    if key == reader.token(place - 2).key and earlier in {"से", "se"} and key in _REPEATED:
        return _REPEATED[key]
    if earlier == "exceed" and key in _NEGATIONS:
        return Bound.AT_MOST  # "ne dépasse pas 6"
    if key in {"exceeding", "exceed", "above", "over", "beyond"}:
        negated = negated or reader.token(place - 2).key in _NEGATIONS or earlier == "cannot"
        return Bound.AT_MOST if negated else Bound.AT_LEAST
    if key in _AT_MOST_BEFORE:
        return Bound.AT_MOST
    return Bound.AT_LEAST if key in _AT_LEAST_BEFORE else Bound.EXACT


def _read_bound_before_than(reader: NumberReader, at: int) -> Bound:
    key = reader.token(at).key
    # "not more than", "will not pay more than", "shall not be more than".
    negated = any(reader.token(place).key in _NEGATIONS for place in range(at - 3, at))
    if key in _MORE:
        return Bound.AT_MOST if negated else Bound.AT_LEAST
    if key in _LESS:
        return Bound.AT_LEAST if negated else Bound.AT_MOST
    return Bound.EXACT


_MORE = split_into_word_keys(
    "more greater longer later higher older faster heavier larger bigger taller wider deeper thicker farther "
    "further hotter warmer louder"
)
_LESS = split_into_word_keys(
    "less fewer lower shorter younger earlier slower lighter smaller narrower shallower thinner nearer closer "
    "colder cooler quieter sooner"
)


_JOINTS = frozenset({"and", "और", "aur", ",", "&", "एवं", "व"})
_RANGES = frozenset(
    {"-", "–", "—", "to", "upto", "or", "से", "या", "se", "ya", "and", "और", "aur", "/", "through", "&", ","}
)
_ENDS_OF_RANGE = frozenset({"-", "–", "to", "upto", "से"})
_LOOSE = frozenset({"and", "और", "aur", ",", "/", "&"})
"""Words and signs between two numbers that form a range only in some cases.

For example, the comma in "in 2006, 95 %" does not form a range, because the first number may be a year.
"""

_FIRST_YEAR, _LAST_YEAR = 1900, 2099


def join_compounds_and_range_units(reader: NumberReader, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Join the parts of compounds, and copy units to both ends of a range. The order is unchanged."""
    joined: list[QuantityReading] = []
    for reading in readings:
        if joined:
            whole = _join_readings(reader, joined[-1], reading)
            if whole is not None:
                joined[-1] = whole
                continue
        joined.append(reading)
    return _spread_range_units(reader, joined)


def _list_keys_between_readings(reader: NumberReader, first: QuantityReading, second: QuantityReading) -> list[str]:
    if second.first - first.last > 3:  # noqa: PLR2004 - nothing that joins is longer
        return ["…"]
    gap = [reader.token(at).key for at in range(first.last + 1, second.first)]
    listed = not gap or reader.token(first.last + 1).kind != WORD
    return ["…"] if listed and reader.has_line_break_between(first.last, second.first) else gap


# --- compounds ------------------------------------------------------------------------------------------------


def _join_readings(reader: NumberReader, first: QuantityReading, second: QuantityReading) -> QuantityReading | None:
    gap = _list_keys_between_readings(reader, first, second)
    if len(gap) > 1 or (gap and gap[0] not in _JOINTS):
        return None
    if first.kind is FactKind.DURATION:
        return _join_durations(reader, first, second, gap)
    if first.kind is FactKind.MONEY:
        return _join_hundredths(reader, first, second, gap)
    return None


_FULL = {
    ("year", "month"): 12, ("year", "week"): 52, ("year", "day"): 365, ("month", "week"): 4, ("month", "day"): 30,
    ("week", "day"): 7, ("day", "hour"): 24, ("hour", "minute"): 60, ("minute", "second"): 60,
}  # fmt: skip
"""Number of smaller units in one larger unit, for example 12 months in a year.

If the second duration has at least this number, the two durations are not joined: "24 months and 30 days".
"""

_ANY = 1_000_000

_ORDER = ["century", "decade", "year", "month", "week", "day", "hour", "minute", "second"]


def _join_durations(
    reader: NumberReader, first: QuantityReading, second: QuantityReading, gap: list[str]
) -> QuantityReading | None:
    """Join durations: ``2 years, 3 months``; ``1 hour fifteen``; ``one year and a quarter``."""
    if second.kind is FactKind.DURATION:
        units = (first.original_unit, second.original_unit)
        if units[0] not in _ORDER or units[1] not in _ORDER or _ORDER.index(units[0]) >= _ORDER.index(units[1]):
            return None
        if (second.original_value or 0) >= _FULL.get((units[0] or "", units[1] or ""), _ANY):
            return None
        return first._replace(
            last=second.last,
            end=second.end,
            months=first.months + second.months,
            days=first.days + second.days,
            original_value=None,
            original_unit=second.original_unit,
        )
    minutes = second.kind is FactKind.NUMBER and first.original_unit == "hour" and 0 < second.value < 60  # noqa: PLR2004 - an hour has 60 minutes
    if minutes and not second.ordinal and _is_at_end_of_phrase(reader, second.last + 1) and gap != [","]:
        return first._replace(
            last=second.last,
            end=second.end,
            days=first.days + second.value / 1440,
            original_value=None,
            original_unit=None,
        )
    return None


def _is_at_end_of_phrase(reader: NumberReader, at: int) -> bool:
    token = reader.token(at)
    return token is END or token.text in {".", ",", ";", ")", "!", "?", "।"}


_BEHIND_AMOUNTS: Final = split_into_word_keys("is है more की a an per each for")


def _join_hundredths(
    reader: NumberReader, first: QuantityReading, second: QuantityReading, gap: list[str]
) -> QuantityReading | None:
    """Join an amount with the hundredths after it: ``3 dollars 50 cents``, ``15 dollars and 50``."""
    if first.scale > 1 or not is_multiple(first.value, 1):
        return None
    minor = second.kind is FactKind.MONEY and reader.token(second.last).key in MINOR and second.unit is None
    if minor and second.value < 1:
        return first._replace(value=first.value + second.value, last=second.last, end=second.end)
    if second.kind is not FactKind.NUMBER or gap == [","] or not 0 < second.value < 100 or second.value % 1:  # noqa: PLR2004 - a main unit has 100 minor ones
        return None
    if second.ordinal or (second.first != second.last and not second.worded):
        return None
    following = reader.token(second.last + 1)
    if following.key in MINOR and following.end - following.start == 1:
        return first._replace(value=first.value + second.value / 100, last=second.last + 1, end=following.end)
    behind = not first.prefixed or gap
    if behind and (_is_at_end_of_phrase(reader, second.last + 1) or following.key in _BEHIND_AMOUNTS):
        return first._replace(value=first.value + second.value / Decimal(100), last=second.last, end=second.end)
    return None


# --- ranges ---------------------------------------------------------------------------------------------------


def _spread_range_units(reader: NumberReader, readings: list[QuantityReading]) -> list[QuantityReading]:
    """Copy a unit or a leading currency to all values of a range or list: ``30 or 90 days``, ``$5 or 10``."""
    result = list(readings)
    for place in range(len(result) - 2, -1, -1):
        first, second = result[place], result[place + 1]
        gap = _list_keys_between_readings(reader, first, second)
        if len(gap) == 1 and gap[0] in _RANGES and first.kind is FactKind.NUMBER:
            result[place] = first if first.ordinal or first.attached else _copy_unit(first, second, gap[0])
    for place in range(1, len(result)):
        gap = _list_keys_between_readings(reader, result[place - 1], result[place])
        if len(gap) == 1 and gap[0] in _ENDS_OF_RANGE:
            result[place - 1 : place + 1] = _align_range_ends(result[place - 1], result[place], gap[0])
    return result


def _align_range_ends(
    first: QuantityReading, second: QuantityReading, joint: str
) -> tuple[QuantityReading, QuantityReading]:
    """Return both ends of a range with one unit: ``1648-51`` ends in 1651, ``₹5,000 - 10,000`` is in rupees."""
    if joint in {"-", "–"} and _is_short_year(first, second):
        return first, second._replace(value=Decimal(int(first.value) // 100 * 100) + second.value)
    if (
        first.kind is not FactKind.MONEY
        or not first.prefixed
        or second.kind is not FactKind.NUMBER
        or second.ordinal
        or second.value <= first.value
    ):
        return first, second
    second = second._replace(kind=FactKind.MONEY, unit=first.unit, prefixed=True)
    return _copy_scale_to_first(first, second), second


def _copy_scale_to_first(first: QuantityReading, second: QuantityReading) -> QuantityReading:
    """Copy the scale of the second value to the first value if the values form a range: "5 to 10 lakh"."""
    shared = (
        second.scale > 1
        and first.scale == 1
        and first.value < second.value / second.scale < MAX_VALUE / second.scale
    )
    return first._replace(value=first.value * second.scale, scale=second.scale) if shared else first


def _is_short_year(first: QuantityReading, second: QuantityReading) -> bool:
    """Return whether the second number is a shortened year: the 51 of ``1648-51``."""
    both = first.kind is FactKind.NUMBER and second.kind is FactKind.NUMBER and first.bare and second.bare
    years = 1000 <= first.value <= 2999 and first.value % 1 == 0  # noqa: PLR2004 - years have four digits, until 2999
    return both and years and second.end - second.start == 2 and second.value > first.value % 100  # noqa: PLR2004 - 1998-99 and 2024/25


def _copy_unit(first: QuantityReading, second: QuantityReading, joint: str) -> QuantityReading:
    looks_like_year = first.bare and _FIRST_YEAR <= first.value <= _LAST_YEAR and is_multiple(first.value, 1)
    if second.kind in {FactKind.NUMBER, FactKind.DATE} or second.prefixed or second.ordinal:
        plain = second.kind is FactKind.NUMBER and first.bare and joint not in _LOOSE and not looks_like_year
        return _copy_scale_to_first(first, second) if plain else first
    if joint in _LOOSE and (looks_like_year or second.kind is FactKind.MONEY or first.scale > second.scale):
        return first
    first = _copy_scale_to_first(first, second)
    factor = first.value / second.original_value if second.original_value else Decimal(0)
    return first._replace(
        kind=second.kind,
        unit=second.unit,
        original_value=first.value if second.original_value is not None else None,
        original_unit=second.original_unit,
        months=second.months * factor,
        days=second.days * factor,
    )


_NAMED = re.compile(
    # An address; a path, or a file, with its lines: auth/middleware.py:L142-150, pool.py#L10.
    r"https?://\S+"
    r"|(?<![\w./\\~-])(?:[\w.~-]{1,80}[/\\]){0,20}[\w~-]{1,80}\.[A-Za-z]\w{0,9}"
    r"(?:[:#]L?\d{1,7}(?:[-:]L?\d{1,7})?|\(\d{1,7}(?:,\d{1,7})?\))"
    r"|(?<![\w./\\~-])(?:[\w.~-]{0,80}[/\\]){1,20}[\w.~-]{0,80}\.[A-Za-z]\w{0,9}\b"
    r"|(?<![\w])[:#]?L\d{1,7}(?:-L?\d{1,7})?\b"
    # A version, a ticket, a hash, a UUID.
    r"|(?<![\w.])[vV]\d{1,5}(?:\.\d{1,6}){0,4}(?:-[A-Za-z][\w.]{0,20})?\b"
    r"|(?<![\w#])#\d{1,9}\b"
    r"|\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}\b"
)
"""Web addresses, paths, line references, versions and identifiers, whose numbers are not quantities.

The search takes linear time.
"""

_NAMED_HINT = re.compile(r"[/\\#\d](?:(?<=[/\\#])|(?<=[A-Za-z]\d)|(?=[a-f])|(?<=\w[:(]\d)|(?<=\w[:(]L\d))")
"""A pattern that matches a part of each match of `_NAMED`.

The search for this pattern is fast, because few characters can begin a match.
"""

_DAY_DIGITS = Decimal("1e-9")
"""The precision of durations in days: about a tenth of a millisecond. Durations in hours and seconds need it."""


class Scan(NamedTuple):
    """The quantities and tokens of a text, for graders that read the words around a quantity."""

    normalised: Normalised
    reader: NumberReader
    readings: list[QuantityReading]
    cut: bool = False
    """Whether the text exceeds `ReadLimits`, so that its quantities were not all read."""


class ReadLimits(NamedTuple):
    """The maximum number of tokens and of quantities that are read in a text. ``None`` means no limit."""

    tokens: int | None = None
    readings: int | None = None


EVERYTHING = ReadLimits()


def scan(
    text: str, *, reference_date: date | None = None, limits: ReadLimits = EVERYTHING, locale: Locale = PLAIN
) -> Scan:
    """Return the quantities and tokens of ``text``, in the number format of ``locale``.

    The function takes linear time.
    """
    read = normalise_and_tokenise(text, limits.tokens)
    return apply_locale(
        scan_without_locale(read, locale.writing, reference_date=reference_date, limits=limits), locale
    )


def scan_without_locale(
    read: TokenisedText,
    writing: Writing,
    *,
    reference_date: date | None = None,
    limits: ReadLimits = EVERYTHING,
) -> Scan:
    """Return the quantities of a text before a locale is applied.

    `apply_locale` then resolves decimal marks and currencies.
    """
    normalised, tokens = read
    at_limit = len(tokens) == limits.tokens
    if writing.is_unread or writing.speech:
        tokens = translate_or_hide_words(tokens, normalised.text, writing.speech)
    tokens = convert_decimal_commas(tokens, writing)
    breaks = find_tokens_after_breaks(tokens, normalised.text)
    reader = NumberReader(tokens, units=UNIT_KEYS, starts=STARTS, breaks=breaks)
    if at_limit:
        return Scan(normalised, reader, [], cut=True)
    readings = _read_quantities(reader, normalised.text, reference_date, limits.readings or len(tokens))
    cut = len(readings) == limits.readings
    readings = merge_times_of_day(reader, normalised.text, join_compounds_and_range_units(reader, readings))
    readings = add_measure_units(reader, normalised.text, readings)
    return Scan(normalised, reader, [_add_bound_period_and_noun(reader, reading) for reading in readings], cut)


def apply_locale(scanned: Scan, locale: Locale) -> Scan:
    """Return the scan, with ambiguous decimal marks and currencies resolved by the locale."""
    reader = scanned.reader
    readings = [resolve_reading_by_locale(reader, reading, locale) for reading in scanned.readings]
    if locale.is_unread:
        readings = [mark_unread_beside_unknown_word(reader, reading) for reading in readings]
    return scanned._replace(readings=readings)


def _read_quantities(
    reader: NumberReader, text: str, reference_date: date | None, limit: int
) -> list[QuantityReading]:
    readings: list[QuantityReading] = []
    at = 0
    for place in _find_starts_outside_addresses(reader, text):
        if place < at:
            continue
        if len(readings) >= limit:
            return readings[:limit]
        if reader.is_plain_number(place) and not reader.has_months:
            readings.append(build_plain_number(reader, place))
            at = place + 1
            continue
        day = _read_date_at(reader, text, place, reference_date)
        if day is None:
            read = read_quantities(reader, place)
            readings.extend(read)
            at = read[-1].last + 1 if read else at
            continue
        while readings and readings[-1].last >= day.first:
            readings.pop()
        readings.append(_build_date_reading(reader, day))
        at = day.after
    return readings


def _read_date_at(reader: NumberReader, text: str, place: int, reference_date: date | None) -> Day | None:
    """Read a date at a token, or after a hyphen at that token."""
    day = read_date(reader, text, place + 1 if reader.token(place).text == "-" else place)
    if day is None and reference_date is not None:
        return read_relative_date(reader, place, reference_date)
    return day


def _find_starts_outside_addresses(reader: NumberReader, text: str) -> Iterator[int]:
    """Yield the tokens that may start a quantity, outside addresses, paths and identifiers."""
    places = reader.list_possible_quantity_starts()
    if not places or _NAMED_HINT.search(text) is None:
        yield from places
        return
    addresses = _NAMED.finditer(text)
    address = next(addresses, None)
    for place in places:
        start = reader.token(place).start
        while address is not None and address.end() <= start:
            address = next(addresses, None)
        if address is None or start < address.start():
            yield place


def _build_date_reading(reader: NumberReader, day: Day) -> QuantityReading:
    start, end = reader.token(day.first).start, reader.token(day.after - 1).end
    return QuantityReading(FactKind.DATE, Decimal(0), day.first, day.after - 1, start, end, date=day.iso)


def _add_bound_period_and_noun(reader: NumberReader, reading: QuantityReading) -> QuantityReading:
    if reading.kind is FactKind.DATE:
        return reading
    reading = add_numbered_noun(reader, add_period(reader, reading))
    bound = find_bound(reader, reading.first, reading.last)
    return reading if bound is Bound.EXACT else reading._replace(bound=bound)


def read_facts(
    text: str,
    *,
    language: Language | None = None,
    reference_date: date | None = None,
    locale: str | None = None,
    currency: str | None = None,
) -> tuple[Fact, ...]:
    """Return the quantities of ``text`` in order, without overlaps.

    Spans are code-point offsets in the original ``text``.

    - ``language`` may be ``None`` for English and Hindi, which are read together. In other languages no words are
      read, and a number before an unread word ("24 Monate") is omitted.
    - ``locale`` (``de-DE``) and ``currency`` (ISO 4217) resolve ambiguous values such as "6.000" and "$".
    - ``reference_date`` is the date of "today". Without it, relative dates are not read.

    In a text of more than a million characters, only the two ends are read.
    `monitors.facts.text.find_unread_middle` returns the part that is not read.
    """
    written = build_locale(language, locale, currency)
    unread = find_unread_middle(text)
    if unread is None:
        return tuple(_read_facts_of_part(text, reference_date, written))
    head, tail, tail_start = split_around_unread(text, unread)
    last = (
        fact.model_copy(update={"start": fact.start + tail_start, "end": fact.end + tail_start})
        for fact in _read_facts_of_part(tail, reference_date, written)
    )
    first = (fact for fact in _read_facts_of_part(head, reference_date, written) if fact.end <= unread.start)
    return (*first, *(fact for fact in last if fact.start >= unread.end))


def _read_facts_of_part(text: str, reference_date: date | None, locale: Locale) -> Iterator[Fact]:
    scanned = scan(text, reference_date=reference_date, locale=locale)
    readings = (reading for reading in scanned.readings if not reading.attached and not reading.unread)
    return (to_fact(reading, text, scanned.normalised) for reading in readings)


def to_fact(reading: QuantityReading, text: str, normalised: Normalised) -> Fact:
    """Build the record of a reading, with its position in the original text."""
    start, end = normalised.find_original_span(reading.start, reading.end)
    original = reading.original_value
    return Fact(
        kind=reading.kind,
        value=reading.date or format_plain(compute_fact_value(reading)),
        unit=_find_fact_unit(reading),
        original_value=None if original is None else format_plain(original),
        original_unit="ordinal" if reading.ordinal else _find_original_unit(reading),
        bound=reading.bound,
        start=start,
        end=end,
        text=text[start:end],
    )


def compute_fact_value(reading: QuantityReading) -> Decimal:
    """Return the value of a fact. A duration is converted to days: 365 a year, 30 a month."""
    if reading.kind is not FactKind.DURATION:
        return reading.value
    years, months = EXACT.divmod(reading.months, Decimal(12))
    if reading.original_value is None:
        pass
    elif reading.original_unit in {"year", "decade", "century"}:
        years, months = EXACT.divide(reading.months, Decimal(12)), Decimal(0)
    elif reading.original_unit == "month":
        years, months = Decimal(0), reading.months
    days = years * DAYS_PER_YEAR + months * DAYS_PER_MONTH + reading.days
    return days if is_multiple(days, 1) else days.quantize(_DAY_DIGITS, context=EXACT)


def _find_original_unit(reading: QuantityReading) -> str | None:
    return reading.original_unit if reading.original_value is not None else None


def _find_fact_unit(reading: QuantityReading) -> str | None:
    match reading.kind:
        case FactKind.PERCENT:
            return "percent"
        case FactKind.DURATION:
            return "day"
        case FactKind.MONEY | FactKind.QUANTITY:
            return reading.unit
        case _:
            return None
