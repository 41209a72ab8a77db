"""Quantities without a number before the unit: ``a month``, ``half an hour``, ``a dollar``, ``third``."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.currencies import NAMES
from monitors.facts.durations import TIME_UNITS, WHOLE
from monitors.facts.making import duration_reading, duration_with_half, money_reading, number_reading
from monitors.facts.money import currency_at
from monitors.facts.normalise import keys_of
from monitors.facts.number_words import NUMBER_WORDS, Part
from monitors.facts.reading import Reading
from monitors.facts.tokens import NUMERAL, WORD
from monitors.facts.unit_keys import UNIT_KEYS
from monitors.facts.words import Amount, Reader


def bare_unit(reader: Reader, at: int) -> list[Reading]:
    """The quantity that begins at token ``at`` without a number; an ordinal by itself is one."""
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
            return [duration_with_half(reader, _one(reader, at)._replace(last=place), unit, place + 1)]
        if word is not None and reader.token(at + 1).key in NAMES:
            currency = currency_at(reader, at + 1)
            if currency is not None and len(reader.token(at + 1).key) > 3:  # noqa: PLR2004 - no codes
                return [money_reading(reader, _one(reader, at), currency.code, first=at, last=currency.after - 1)]
    if TIME_UNITS.get(token.key) == _FORTNIGHT:
        return [duration_reading(reader, _one(reader, at), TIME_UNITS[token.key], at)]
    return []


_FORTNIGHT = TIME_UNITS["fortnight"]
_RATED = keys_of("per once twice times time every each % किमी bar baar")


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
    return [duration_reading(reader, _one(reader, at)._replace(value=word.value), unit, place)]


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
    return [number_reading(reader, amount)]


def _is_earlier(reader: Reader, at: int) -> bool:
    """``आठ महीने पहले``, ``से पहले``: before, not first."""
    before = reader.token(at - 1)
    return before.key in UNIT_KEYS or before.key in {"से", "se", "के", "ke", "इससे", "isse"} or before.kind != WORD
