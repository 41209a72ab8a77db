"""One quantity at a time: an amount with what stands before and behind it decides its kind."""

from __future__ import annotations

from monitors.facts.bare_units import bare_unit
from monitors.facts.currencies import MINOR, NAMES
from monitors.facts.durations import unit_after
from monitors.facts.fact import FactKind
from monitors.facts.making import duration_with_half, money_reading, number_reading, reading_of
from monitors.facts.money import MILLION_CODES, Currency, currency_at, is_backtick_rupee, slash_dash
from monitors.facts.normalise import keys_of
from monitors.facts.number_words import NUMBER_WORDS, Part
from monitors.facts.percent import percent_after, percent_before
from monitors.facts.reading import Reading
from monitors.facts.tokens import NUMERAL, SIGN, WORD
from monitors.facts.words import Amount, Reader

_PRONOUN_BEFORE = keys_of("the this that which every any no each other another only last next same")
_SCALES_AFTER_CODE = frozenset({"million", "billion", "lakh", "lac", "crore", "mn", "bn", "trillion"})


def read_quantity(reader: Reader, at: int) -> list[Reading]:
    """The quantities that begin at token ``at``: none, one, or several for digits that are several numbers."""
    before = None if reader.token(at).kind == NUMERAL else _currency_before(reader, at)
    if before is not None:
        read = _with_currency_before(reader, at, before)
        if read:
            return read
    amounts = reader.read(at)
    if not amounts:
        return bare_unit(reader, at)
    if len(amounts) > 1:
        return [number_reading(reader, amount) for amount in amounts]
    return _typed(reader, _restated(reader, amounts[0]))


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
    code, last = _second_currency(reader, at, currency, amount)
    money = money_reading(reader, amount, code, first=at, last=last)
    return [money._replace(prefixed=True)]


def _second_currency(reader: Reader, at: int, currency: Currency, amount: Amount) -> tuple[str | None, int]:
    """A currency that stands behind as well (``$5 AUD``, ``£94 GBP``): the code it gives, and the last token."""
    behind = currency_at(reader, amount.last + 1)
    alone = currency.code, amount.last
    if behind is None:
        return alone
    of_next = reader.token(behind.after).kind == NUMERAL and (reader.token(at).kind == WORD or behind.code is None)
    two_signs = reader.token(at).kind == SIGN and reader.token(behind.first).kind == SIGN
    if of_next or two_signs or (currency.code is not None and behind.code not in {None, currency.code}):
        return alone
    return currency.code or behind.code, behind.after - 1


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
        return [reading_of(reader, FactKind.PERCENT, amount, last=percent - 1)]
    if amount.first in {2, 3} and percent_before(reader, amount.first):
        return [reading_of(reader, FactKind.PERCENT, amount, last=amount.last)]
    if slash_dash(reader, after):
        return [money_reading(reader, amount, "INR", first=amount.first, last=after + 1)]
    time = None if amount.ordinal else unit_after(reader, after)
    if time is not None:
        return [duration_with_half(reader, amount, time[0], time[1])]
    currency = None if amount.ordinal else _currency_behind(reader, after)
    if currency is not None:
        return [_money_behind(reader, amount, currency)]
    if not amount.ordinal and reader.token(after).key in MINOR and _minor_is_money(reader, after):
        value = amount.value / 100
        return [money_reading(reader, amount._replace(value=value), None, first=amount.first, last=after)]
    if amount.worded and _is_pronoun(reader, amount):
        return []
    return [number_reading(reader, amount)]


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
    return money_reading(reader, amount, code, first=amount.first, last=last)


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
