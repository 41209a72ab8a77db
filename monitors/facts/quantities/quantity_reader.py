"""Read one quantity. The text before and after an amount decides its kind.

Quantities without a number before the unit are read too: ``a month``, ``half an hour``, ``a dollar``, ``third``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from monitors.facts.quantities.currencies import MINOR, NAMES
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.lexicon import NUMBER_WORDS, NumberPart
from monitors.facts.quantities.number_reader import NumberReader, NumberSpan
from monitors.facts.quantities.numerals import is_multiple
from monitors.facts.quantities.units import (
    MILLION_CODES,
    TIME_UNITS,
    UNIT_KEYS,
    WHOLE,
    Currency,
    TimeUnit,
    is_after_leading_percent_of,
    is_backtick_rupee,
    is_rupee_slash_dash,
    read_currency,
    read_time_unit,
    skip_percent,
)
from monitors.facts.text import NUMERAL, SIGN, WORD, split_into_word_keys


def build_reading(
    reader: NumberReader, kind: FactKind, amount: NumberSpan, *, last: int, first: int | None = None
) -> QuantityReading:
    """Build the reading of an amount that reaches from token ``first`` to ``last`` (inclusive)."""
    first = amount.first if first is None else first
    start = amount.start if first == amount.first else reader.token(first).start
    end = amount.end if last == amount.last else reader.token(last).end
    return QuantityReading(
        kind,
        amount.value,
        first,
        last,
        start,
        end,
        ordinal=amount.ordinal,
        bare=amount.bare,
        worded=amount.worded,
        scale=amount.scale,
    )


def build_money_reading(
    reader: NumberReader, amount: NumberSpan, code: str | None, *, first: int, last: int
) -> QuantityReading:
    """Build a reading of money; ``code`` is an ISO 4217 code, or ``None`` if the country is unknown."""
    return build_reading(reader, FactKind.MONEY, amount, first=first, last=last)._replace(unit=code)


def build_duration_reading(reader: NumberReader, amount: NumberSpan, unit: TimeUnit, last: int) -> QuantityReading:
    """Build a duration with separate months and days."""
    if amount.value < 0:
        # No duration is negative: the hyphen was a dash ("Waiting period -36 months").
        start = reader.token(amount.first + 1).start
        amount = amount._replace(value=-amount.value, first=amount.first + 1, start=start)
    return build_reading(reader, FactKind.DURATION, amount, last=last)._replace(
        original_value=amount.value,
        original_unit=unit.name,
        months=amount.value * unit.months,
        days=amount.value * unit.days,
    )


def build_duration_with_optional_fraction(
    reader: NumberReader, amount: NumberSpan, unit: TimeUnit, after: int
) -> QuantityReading:
    """Build a duration with an added fraction: ``one hour and a half``, ``one year and three quarters``."""
    if reader.part(after) is NumberPart.AND:
        place = after + 1 + (reader.part(after + 1) is NumberPart.ARTICLE)
        times = Decimal(1)
        if reader.token(place).key in _THREE:
            place, times = place + 1, Decimal(3)
        word = reader.word(place)
        if word is not None and word.part is NumberPart.FRACTION and reader.token(place + 1).key not in TIME_UNITS:
            amount = amount._replace(value=amount.value + times * word.value)
            after = place + 1
    return build_duration_reading(reader, amount, unit, after - 1)


_THREE: Final = frozenset({"three", "3"})


def build_number_reading(reader: NumberReader, amount: NumberSpan) -> QuantityReading:
    """Build the reading of a number. Decades, centuries, and digits directly before a letter are marked as such."""
    reading = build_reading(reader, FactKind.NUMBER, amount, last=amount.last)
    following = reader.token(amount.last + 1)
    glued = following.kind == WORD and following.start == amount.end and not amount.ordinal
    if amount.ordinal and following.key in _CENTURIES:
        return reading._replace(original_unit="century_of")
    if (
        glued
        and amount.bare
        and following.key == "s"
        and is_multiple(amount.value, 10)
        and amount.value >= _FIRST_DECADE
    ):
        return reading._replace(original_unit="decade_of", last=amount.last + 1, end=following.end)
    if (
        following.key in {"के", "का", "की"}
        and reader.token(amount.last + 2).key == "दशक"
        and amount.value >= _FIRST_DECADE
    ):
        return reading._replace(original_unit="decade_of")
    return reading._replace(attached=glued and following.key != "x" and amount.bare)


_CENTURIES = frozenset({"century", "शताब्दी", "सदी", "sadi"})
_FIRST_DECADE = 1000


def build_plain_number(reader: NumberReader, at: int) -> QuantityReading:
    """Build the reading of digits for which `NumberReader.is_plain_number` is true."""
    token = reader.token(at)
    return QuantityReading(FactKind.NUMBER, Decimal(token.text), at, at, token.start, token.end, bare=True)


def read_quantity_without_number(reader: NumberReader, at: int) -> list[QuantityReading]:
    """Read a quantity that begins with a unit or an ordinal at token ``at``, such as "a month" or "third"."""
    token, word = reader.token(at), reader.word(at)
    if word is not None and word.part is NumberPart.ORDINAL:
        return _read_ordinal(reader, at)
    if word is not None and word.part is NumberPart.FRACTION and word.english:
        return _read_fraction_of_unit(reader, at)
    is_single = (word is not None and word.part is NumberPart.ARTICLE) or token.key in WHOLE
    if is_single and not _is_unit_of_rate(reader, at):
        place = at + 2 if reader.token(at + 1).text == "-" else at + 1
        unit = TIME_UNITS.get(reader.token(place).key)
        if unit is not None and (token.key not in WHOLE or not reader.token(place).key.endswith("s")):
            return [
                build_duration_with_optional_fraction(
                    reader, _build_span_of_one(reader, at)._replace(last=place), unit, place + 1
                )
            ]
        if word is not None and reader.token(at + 1).key in NAMES:
            currency = read_currency(reader, at + 1)
            if currency is not None and len(reader.token(at + 1).key) > 3:  # noqa: PLR2004 - no codes
                return [
                    build_money_reading(
                        reader, _build_span_of_one(reader, at), currency.code, first=at, last=currency.after - 1
                    )
                ]
    if TIME_UNITS.get(token.key) == _FORTNIGHT:
        return [build_duration_reading(reader, _build_span_of_one(reader, at), TIME_UNITS[token.key], at)]
    return []


_FORTNIGHT = TIME_UNITS["fortnight"]
_RATED = split_into_word_keys("per once twice times time every each % किमी bar baar")


def _is_unit_of_rate(reader: NumberReader, at: int) -> bool:
    """Return whether a unit belongs to a rate (``₹500 a day``, ``once a year``) and is not a duration."""
    before = reader.token(at - 1)
    return before.kind == NUMERAL or before.key in _RATED or before.key in UNIT_KEYS or before.key in NUMBER_WORDS


def _read_fraction_of_unit(reader: NumberReader, at: int) -> list[QuantityReading]:
    word = reader.word(at)
    place = at + 1
    if reader.token(place).text == "-" or reader.token(place).key in {"a", "an", "of"}:
        place += 1
    unit = TIME_UNITS.get(reader.token(place).key)
    if unit is None or word is None:
        return []
    return [build_duration_reading(reader, _build_span_of_one(reader, at)._replace(value=word.value), unit, place)]


def _build_span_of_one(reader: NumberReader, at: int) -> NumberSpan:
    token = reader.token(at)
    return NumberSpan(Decimal(1), at, at, token.start, token.end, worded=True)


def _read_ordinal(reader: NumberReader, at: int) -> list[QuantityReading]:
    token, word = reader.token(at), reader.word(at)
    if word is None or (word.english and token.key.endswith("s") and token.key != "seconds"):
        return []
    if token.key == "seconds" or (token.key in {"पहले", "pehle"} and _is_word_for_before(reader, at)):
        return []
    amount = NumberSpan(word.value, at, at, token.start, token.end, ordinal=True, worded=True)
    return [build_number_reading(reader, amount)]


def _is_word_for_before(reader: NumberReader, at: int) -> bool:
    """Return whether पहले means "before" (``आठ महीने पहले``, ``से पहले``) and not "first"."""
    before = reader.token(at - 1)
    return before.key in UNIT_KEYS or before.key in {"से", "se", "के", "ke", "इससे", "isse"} or before.kind != WORD


_PRONOUN_BEFORE = split_into_word_keys("the this that which every any no each other another only last next same")
_SCALES_AFTER_CODE = frozenset({"million", "billion", "lakh", "lac", "crore", "mn", "bn", "trillion"})


def read_quantities(reader: NumberReader, at: int) -> list[QuantityReading]:
    """Return the quantities that begin at token ``at``. Digits such as 192.168.1.2 are several quantities."""
    before = None if reader.token(at).kind == NUMERAL else _read_currency_before(reader, at)
    if before is not None:
        read = _read_prefixed_money(reader, at, before)
        if read:
            return read
    amounts = reader.read_number_spans(at)
    if not amounts:
        return read_quantity_without_number(reader, at)
    if len(amounts) > 1:
        return [build_number_reading(reader, amount) for amount in amounts]
    return _build_readings_of_amount(reader, _merge_repetition_in_brackets(reader, amounts[0]))


# --- a currency first -----------------------------------------------------------------------------------------


def _read_currency_before(reader: NumberReader, at: int) -> Currency | None:
    if is_backtick_rupee(reader, at):
        return Currency("INR", at + 1, at)
    token = reader.token(at)
    code = MILLION_CODES.get(token.text)
    if code is not None:
        return Currency(code, at + 1, at)
    return read_currency(reader, at)


def _read_prefixed_money(reader: NumberReader, at: int, currency: Currency) -> list[QuantityReading]:
    place = currency.after
    while reader.token(place).text in {":", "."} and place < currency.after + 2:
        place += 1
    second = read_currency(reader, place)
    if second is not None and second.code is not None:
        currency, place = second, second.after
    elif second is not None:
        place = second.after
    amounts = reader.read_number_spans(place) if _can_begin_amount(reader, place) else []
    if len(amounts) != 1:
        return []
    amount = _merge_repetition_in_brackets(reader, amounts[0])
    if reader.token(at).text in MILLION_CODES:
        amount = amount._replace(value=amount.value * 10**6)
    if skip_percent(reader, amount.last + 1) > amount.last + 1 and reader.token(at).kind == WORD:
        return []
    code, last = _resolve_second_currency(reader, at, currency, amount)
    money = build_money_reading(reader, amount, code, first=at, last=last)
    return [money._replace(prefixed=True)]


def _resolve_second_currency(
    reader: NumberReader, at: int, currency: Currency, amount: NumberSpan
) -> tuple[str | None, int]:
    """Return the code and the last token of an amount that may have two currencies (``$5 AUD``, ``£94 GBP``)."""
    behind = read_currency(reader, amount.last + 1)
    alone = currency.code, amount.last
    if behind is None or reader.has_line_break_between(amount.last, behind.first):
        return alone
    of_next = reader.token(behind.after).kind == NUMERAL and (reader.token(at).kind == WORD or behind.code is None)
    two_signs = reader.token(at).kind == SIGN and reader.token(behind.first).kind == SIGN
    if of_next or two_signs or (currency.code is not None and behind.code not in {None, currency.code}):
        return alone
    return currency.code or behind.code, behind.after - 1


def _can_begin_amount(reader: NumberReader, at: int) -> bool:
    token = reader.token(at)
    return token.kind == NUMERAL or token.text in {"-", "½", "¼", "¾"} or reader.word(at) is not None


# --- the amount, stated twice ---------------------------------------------------------------------------------


def _merge_repetition_in_brackets(reader: NumberReader, amount: NumberSpan) -> NumberSpan:
    """Merge a number that is repeated in brackets: ``two (2)``, ``45 (forty five)``, ``Rs.5(five) lakh``."""
    opening = amount.last + 1
    if reader.token(opening).text != "(":
        return amount
    again = reader.read_number_spans(opening + 1) if _can_begin_amount(reader, opening + 1) else []
    if len(again) != 1 or again[0].value != amount.value or reader.token(again[0].last + 1).text != ")":
        return amount
    closing = again[0].last + 1
    scaled = NUMBER_WORDS.get(reader.token(closing + 1).key)
    if scaled is not None and scaled.part is NumberPart.SCALE and amount.scale == 1:
        value = amount.value * scaled.value
        end = reader.token(closing + 1).end
        return amount._replace(value=value, last=closing + 1, end=end, scale=scaled.value, bare=False)
    return amount._replace(last=closing, end=reader.token(closing).end, bare=False)


# --- text after the amount ------------------------------------------------------------------------------------


def _build_readings_of_amount(reader: NumberReader, amount: NumberSpan) -> list[QuantityReading]:
    after = amount.last + 1
    percent = skip_percent(reader, after + 1 if reader.token(after).key == "का" else after)
    if percent > after + 1 - (reader.token(after).key != "का") and not amount.ordinal:
        return [build_reading(reader, FactKind.PERCENT, amount, last=percent - 1)]
    if amount.first in {2, 3} and is_after_leading_percent_of(reader, amount.first):
        return [build_reading(reader, FactKind.PERCENT, amount, last=amount.last)]
    if is_rupee_slash_dash(reader, after):
        return [build_money_reading(reader, amount, "INR", first=amount.first, last=after + 1)]
    if amount.worded and 0 < amount.value < 1 and reader.token(after).key == "of":
        after += 1 + (reader.token(after + 1).key in {"a", "an", "one"})  # three quarters of an hour
        if read_time_unit(reader, after) is None:
            after = amount.last + 1
    time = None if amount.ordinal else read_time_unit(reader, after)
    if time is not None:
        return [build_duration_with_optional_fraction(reader, amount, time[0], time[1])]
    currency = None if amount.ordinal else _read_currency_behind(reader, after)
    if currency is not None:
        return [_build_money_with_currency_behind(reader, amount, currency)]
    if not amount.ordinal and reader.token(after).key in MINOR and len(reader.token(after).key) > 1:
        value = amount.value / 100
        return [build_money_reading(reader, amount._replace(value=value), None, first=amount.first, last=after)]
    if amount.worded and _is_number_word_without_value(reader, amount):
        return []
    return [build_number_reading(reader, amount)]


def _read_currency_behind(reader: NumberReader, at: int) -> Currency | None:
    """Read the currency after an amount, unless this currency belongs to the next amount (``rmb 10 usd 20``)."""
    hyphen = reader.token(at).text == "-" and reader.token(at + 1).key in NAMES
    place = at + 1 if hyphen else at
    if reader.token(place).key == "of":
        return None
    mega = MILLION_CODES.get(reader.token(place).text)
    if mega is not None:
        return Currency(mega, place + 1, place)
    currency = read_currency(reader, place)
    if currency is None:
        return None
    following = reader.token(currency.after)
    if following.kind != NUMERAL:
        return currency
    if reader.has_line_break_between(at - 1, currency.first):
        return None
    glued = following.start == reader.token(currency.after - 1).end
    sign = reader.token(place).kind == SIGN or glued
    before = reader.token(at - 1)
    tight = before.end == reader.token(place).start
    return currency if tight or not sign else None


def _build_money_with_currency_behind(
    reader: NumberReader, amount: NumberSpan, currency: Currency
) -> QuantityReading:
    last = currency.after - 1
    if reader.token(currency.first).text in MILLION_CODES:
        amount = amount._replace(value=amount.value * 10**6)
    scale = NUMBER_WORDS.get(reader.token(currency.after).key)
    if scale is not None and reader.token(currency.after).key in _SCALES_AFTER_CODE and amount.scale == 1:
        amount = amount._replace(value=amount.value * scale.value, scale=scale.value)
        last += 1
    code = currency.code
    if code is None:
        named = reader.token(currency.after)
        second = NAMES.get(named.key) if named.text.isupper() else None
        code, last = (second, last + 1) if second else (code, last)
    if reader.token(last + 1).key in _CENTS and reader.token(last).key in _OF_CENTS:
        return build_money_reading(
            reader, amount._replace(value=amount.value / 100), code, first=amount.first, last=last + 1
        )
    return build_money_reading(reader, amount, code, first=amount.first, last=last)


_CENTS: Final = split_into_word_keys("cent cents")
_OF_CENTS: Final = split_into_word_keys("euro dollar us")
"""Words that name the currency before "cents": the "euro" in ``16 euro cents``."""


def _is_number_word_without_value(reader: NumberReader, amount: NumberSpan) -> bool:
    """Return whether a number word states no number: "one" in ``the one you mentioned``.

    Another example is ``oh`` beside other words.
    """
    if amount.first != amount.last or amount.ordinal:
        return False
    token, before = reader.token(amount.first), reader.token(amount.first - 1)
    if token.key in {"single", "oh"}:
        return before.end >= 0 or reader.token(amount.first + 1).end >= 0
    if token.key != "one":
        return False
    word = NUMBER_WORDS.get(before.key)
    if before.key in _PRONOUN_BEFORE or (word is not None and word.part is NumberPart.ORDINAL):
        return True
    is_last = reader.token(amount.last + 1).kind != WORD
    return is_last and word is None and before.kind == WORD and reader.token(amount.first - 2).key == "the"
