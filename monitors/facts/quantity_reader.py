"""One quantity at a time: an amount with what stands before and behind it decides its kind."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.calendar_words import MONTHS
from monitors.facts.currencies import COUNTRIES, DOLLARS, MINOR, MONEY_WORDS, NAMES
from monitors.facts.durations import TIME_UNITS, WHOLE, TimeUnit, unit_after
from monitors.facts.fact import FactKind
from monitors.facts.money import MILLION_CODES, Currency, currency_at, is_backtick_rupee, slash_dash
from monitors.facts.number_words import NUMBER_WORDS, Part
from monitors.facts.percent import PERCENT_WORDS, percent_after, percent_before
from monitors.facts.reading import Reading
from monitors.facts.tokens import NUMERAL, SIGN, WORD
from monitors.facts.words import Amount, Reader

UNIT_KEYS = frozenset(TIME_UNITS) | PERCENT_WORDS | MONEY_WORDS
"""Words before which a shy number word is a number."""

STARTS = frozenset(
    set(NAMES)
    | set(COUNTRIES)
    | set(DOLLARS)
    | set(MONTHS)
    | WHOLE
    | {code.lower() for code in MILLION_CODES}
    | {"fortnight", "last", "l", "u", "today", "tomorrow", "yesterday", "आज", "aaj", "tonight"}
    | {word for word, unit in TIME_UNITS.items() if unit.name == "fortnight"}
)
"""Words that are no numbers and may begin a quantity."""

_PRONOUN_BEFORE = frozenset("the this that which every any no each other another only last next same".split())
_SCALES_AFTER_CODE = frozenset({"million", "billion", "lakh", "lac", "crore", "mn", "bn", "trillion"})


def read_quantity(reader: Reader, at: int) -> list[Reading]:
    """The quantities that begin at token ``at``: none, one, or several for digits that are several numbers."""
    before = _currency_before(reader, at)
    if before is not None:
        read = _with_currency_before(reader, at, before)
        if read:
            return read
    amounts = reader.read(at)
    if not amounts:
        return _bare_unit(reader, at)
    if len(amounts) > 1:
        return [_number(reader, amount) for amount in amounts]
    return _typed(reader, _restated(reader, amounts[0]))


def plain_number(reader: Reader, at: int) -> Reading:
    """The reading of digits that `Reader.is_plain_number` found, without the detours."""
    token = reader.token(at)
    return Reading(FactKind.NUMBER, Decimal(token.text), at, at, token.start, token.end, bare=True)


# --- a currency first -----------------------------------------------------------------------------------------


def _currency_before(reader: Reader, at: int) -> Currency | None:
    if is_backtick_rupee(reader, at):
        return Currency("INR", at + 1, at)
    token = reader.token(at)
    code = MILLION_CODES.get(token.text)
    if code is not None:
        return Currency(code, at + 1, at)
    return currency_at(reader, at)


def _with_currency_before(reader: Reader, at: int, currency: Currency) -> list[Reading]:
    place = currency.after
    while reader.token(place).text in {":", "."} and place < currency.after + 2:
        place += 1
    second = currency_at(reader, place)
    if second is not None and second.code is not None:
        currency, place = second, second.after
    elif second is not None:
        place = second.after
    amounts = reader.read(place) if _may_be_amount(reader, place) else []
    if len(amounts) != 1:
        return []
    amount = _restated(reader, amounts[0])
    if reader.token(at).text in MILLION_CODES:
        amount = amount._replace(value=amount.value * 10**6)
    if percent_after(reader, amount.last + 1) > amount.last + 1 and reader.token(at).kind == WORD:
        return []
    behind = currency_at(reader, amount.last + 1)
    if behind is not None and reader.token(at).kind == WORD and reader.token(behind.after).kind == NUMERAL:
        behind = None
    last = amount.last
    code = currency.code
    if behind is not None and behind.code is None and reader.token(behind.after).kind == NUMERAL:
        behind = None
    if behind is not None and (code is None or behind.code in {None, code}):
        code, last = code or behind.code, behind.after - 1
    money = _money(reader, amount, code, first=_minus_before(reader, at), last=last)
    return [money._replace(prefixed=True)]


def _minus_before(reader: Reader, at: int) -> int:
    return at


def _may_be_amount(reader: Reader, at: int) -> bool:
    token = reader.token(at)
    return token.kind == NUMERAL or token.text in {"-", "½", "¼", "¾"} or reader.word(at) is not None


# --- the amount, said twice -----------------------------------------------------------------------------------


def _restated(reader: Reader, amount: Amount) -> Amount:
    """``two (2)``, ``45 (forty five)``, ``Rs.5(five) lakh``: one number said twice."""
    opening = amount.last + 1
    if reader.token(opening).text != "(":
        return amount
    again = reader.read(opening + 1) if _may_be_amount(reader, opening + 1) else []
    if len(again) != 1 or again[0].value != amount.value or reader.token(again[0].last + 1).text != ")":
        return amount
    closing = again[0].last + 1
    scaled = NUMBER_WORDS.get(reader.token(closing + 1).key)
    if scaled is not None and scaled.part is Part.SCALE and amount.scale == 1:
        value = amount.value * scaled.value
        end = reader.token(closing + 1).end
        return amount._replace(value=value, last=closing + 1, end=end, scale=scaled.value, bare=False)
    return amount._replace(last=closing, end=reader.token(closing).end, bare=False)


# --- what stands behind ---------------------------------------------------------------------------------------


def _typed(reader: Reader, amount: Amount) -> list[Reading]:
    after = amount.last + 1
    percent = percent_after(reader, after + 1 if reader.token(after).key == "का" else after)
    if percent > after + 1 - (reader.token(after).key != "का") and not amount.ordinal:
        return [_reading(reader, FactKind.PERCENT, amount, last=percent - 1)]
    if amount.first in {2, 3} and percent_before(reader, amount.first):
        return [_reading(reader, FactKind.PERCENT, amount, last=amount.last)]
    if slash_dash(reader, after):
        return [_money(reader, amount, "INR", first=amount.first, last=after + 1)]
    time = None if amount.ordinal else unit_after(reader, after)
    if time is not None:
        return [_duration_with_half(reader, amount, time[0], time[1])]
    currency = None if amount.ordinal else _currency_behind(reader, after)
    if currency is not None:
        return [_money_behind(reader, amount, currency)]
    if not amount.ordinal and reader.token(after).key in MINOR and _minor_is_money(reader, after):
        value = amount.value / 100
        return [_money(reader, amount._replace(value=value), None, first=amount.first, last=after)]
    if amount.worded and _is_pronoun(reader, amount):
        return []
    return [_number(reader, amount)]


def _currency_behind(reader: Reader, at: int) -> Currency | None:
    """A currency behind an amount; one that belongs to the next amount (``rmb 10 usd 20``) is not this one's."""
    hyphen = reader.token(at).text == "-" and reader.token(at + 1).key in NAMES
    place = at + 1 if hyphen else at
    if reader.token(place).key == "of":
        return None
    mega = MILLION_CODES.get(reader.token(place).text)
    if mega is not None:
        return Currency(mega, place + 1, place)
    currency = currency_at(reader, place)
    if currency is None:
        return None
    following = reader.token(currency.after)
    if following.kind != NUMERAL:
        return currency
    glued = following.start == reader.token(currency.after - 1).end
    sign = reader.token(place).kind == SIGN or glued
    before = reader.token(at - 1)
    tight = before.end == reader.token(place).start
    return currency if tight or not sign else None


def _money_behind(reader: Reader, amount: Amount, currency: Currency) -> Reading:
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
    return _money(reader, amount, code, first=amount.first, last=last)


def _minor_is_money(reader: Reader, at: int) -> bool:
    return len(reader.token(at).key) > 1


def _is_pronoun(reader: Reader, amount: Amount) -> bool:
    """``the one you mentioned``: no number."""
    if amount.first != amount.last or amount.ordinal:
        return False
    token, before = reader.token(amount.first), reader.token(amount.first - 1)
    if token.key in {"single", "oh"}:
        return before.end >= 0 or reader.token(amount.first + 1).end >= 0
    if token.key != "one":
        return False
    word = NUMBER_WORDS.get(before.key)
    return before.key in _PRONOUN_BEFORE or (word is not None and word.part is Part.ORDINAL)


# --- no amount before the unit --------------------------------------------------------------------------------


def _bare_unit(reader: Reader, at: int) -> list[Reading]:
    """``a month``, ``an hour``, ``half an hour``, ``full week``, ``a dollar``, ``fortnight``, an ordinal by itself."""
    token, word = reader.token(at), reader.word(at)
    if word is not None and word.part is Part.ORDINAL:
        return _ordinal(reader, at)
    if word is not None and word.part is Part.FRACTION and word.english:
        return _part_of_unit(reader, at)
    one = (word is not None and word.part is Part.ARTICLE) or token.key in WHOLE
    if one and not _is_rate(reader, at):
        place = at + 2 if reader.token(at + 1).text == "-" else at + 1
        unit = TIME_UNITS.get(reader.token(place).key)
        if unit is not None and (token.key not in WHOLE or not reader.token(place).key.endswith("s")):
            return [_duration(reader, _one(reader, at), unit, place)]
        if word is not None and reader.token(at + 1).key in NAMES:
            currency = currency_at(reader, at + 1)
            if currency is not None and len(reader.token(at + 1).key) > 3:  # noqa: PLR2004 - no codes
                return [_money(reader, _one(reader, at), currency.code, first=at, last=currency.after - 1)]
    if TIME_UNITS.get(token.key) == _FORTNIGHT:
        return [_duration(reader, _one(reader, at), TIME_UNITS[token.key], at)]
    return []


_FORTNIGHT = TIME_UNITS["fortnight"]
_RATED = frozenset("per once twice times time every each % किमी bar baar".split())


def _is_rate(reader: Reader, at: int) -> bool:
    """``₹500 a day``, ``once a year``: how often, not how long."""
    before = reader.token(at - 1)
    return before.kind == NUMERAL or before.key in _RATED or before.key in UNIT_KEYS or before.key in NUMBER_WORDS


def _part_of_unit(reader: Reader, at: int) -> list[Reading]:
    word = reader.word(at)
    place = at + 1
    if reader.token(place).text == "-" or reader.token(place).key in {"a", "an", "of"}:
        place += 1
    unit = TIME_UNITS.get(reader.token(place).key)
    if unit is None or word is None:
        return []
    return [_duration(reader, _one(reader, at)._replace(value=word.value), unit, place)]


def _one(reader: Reader, at: int) -> Amount:
    token = reader.token(at)
    return Amount(Decimal(1), at, at, token.start, token.end, worded=True)


def _ordinal(reader: Reader, at: int) -> list[Reading]:
    token, word = reader.token(at), reader.word(at)
    if word is None or (word.english and token.key.endswith("s") and token.key != "seconds"):
        return []
    if token.key == "seconds" or (token.key in {"पहले", "pehle"} and _is_earlier(reader, at)):
        return []
    amount = Amount(word.value, at, at, token.start, token.end, ordinal=True, worded=True)
    return [_number(reader, amount)]


def _duration_with_half(reader: Reader, amount: Amount, unit: TimeUnit, after: int) -> Reading:
    """``one hour and a half``, ``one year and a quarter``."""
    if reader.part(after) is Part.AND and reader.part(after + 1) is Part.ARTICLE:
        word = reader.word(after + 2)
        if word is not None and word.part is Part.FRACTION and reader.token(after + 3).key not in TIME_UNITS:
            amount = amount._replace(value=amount.value + word.value)
            after += 3
    return _duration(reader, amount, unit, after - 1)


def _is_earlier(reader: Reader, at: int) -> bool:
    """``आठ महीने पहले``, ``से पहले``: before, not first."""
    before = reader.token(at - 1)
    return before.key in UNIT_KEYS or before.key in {"से", "se", "के", "ke", "इससे", "isse"} or before.kind != WORD


# --- making readings ------------------------------------------------------------------------------------------


def _reading(reader: Reader, kind: FactKind, amount: Amount, *, last: int, first: int | None = None) -> Reading:
    first = amount.first if first is None else first
    start = amount.start if first == amount.first else reader.token(first).start
    end = amount.end if last == amount.last else reader.token(last).end
    return Reading(
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


def _money(reader: Reader, amount: Amount, code: str | None, *, first: int, last: int) -> Reading:
    return _reading(reader, FactKind.MONEY, amount, first=first, last=last)._replace(unit=code)


def _duration(reader: Reader, amount: Amount, unit: TimeUnit, last: int) -> Reading:
    if amount.value < 0:
        # No duration is negative: the hyphen was a dash ("Waiting period -36 months").
        start = reader.token(amount.first + 1).start
        amount = amount._replace(value=-amount.value, first=amount.first + 1, start=start)
    return _reading(reader, FactKind.DURATION, amount, last=last)._replace(
        original_value=amount.value,
        original_unit=unit.name,
        months=amount.value * unit.months,
        days=amount.value * unit.days,
    )


def _number(reader: Reader, amount: Amount) -> Reading:
    reading = _reading(reader, FactKind.NUMBER, amount, last=amount.last)
    following = reader.token(amount.last + 1)
    glued = following.kind == WORD and following.start == amount.end and not amount.ordinal
    if amount.ordinal and following.key in _CENTURIES:
        return reading._replace(original_unit="century_of")
    if glued and amount.bare and following.key == "s" and amount.value % 10 == 0 and amount.value >= _FIRST_DECADE:
        return reading._replace(original_unit="decade_of", last=amount.last + 1, end=following.end)
    return reading._replace(attached=glued and following.key != "x" and amount.bare)


_CENTURIES = frozenset({"century", "शताब्दी", "सदी", "sadi"})
_FIRST_DECADE = 1000
