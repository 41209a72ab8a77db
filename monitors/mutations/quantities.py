"""Build mutants that differ from the gold in one quantity: its number, unit, scale, currency, period or bound.

If the currency is changed, the number stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from monitors.facts.quantities.fact import Bound, Fact, FactKind
from monitors.facts.quantities.scan import read_facts

_SIGNS: Final = (
    (re.compile(r"(?:US|CA|AU|HK|NZ|[ACS])?\$"), "€"),
    (re.compile(r"[€£¥₩₺₽]"), "US$"),
    (re.compile(r"₹|\b(?:Rs\.? ?|INR ?)(?=[0-9०-९])"), "$"),
)
_CODES: Final = re.compile(r"\b(?:INR|USD|EUR|GBP|CHF|AUD|CAD|SGD|AED|JPY|PKR|LKR|NPR|BDT)\b")
_NAMES: Final = (
    (re.compile(r"(?i)\b(?:rupees?|rupaye|rupay|rs\.?)(?![\w.])|रुपये|रुपए|रुपया"), "dollars"),
    (
        re.compile(r"(?i)\b(?:(?:us |american |australian |canadian )?dollars?|pounds?|francs?|yen|dirhams?)\b"),
        "euros",
    ),
    (re.compile(r"(?i)\beuros?\b"), "dollars"),
)


def change_currency_of_amount(amount: str) -> str:
    """Return one amount with another currency sign, code or name.

    The result is empty if the amount has no currency.
    """
    for pattern, instead in _SIGNS:
        changed, count = pattern.subn(instead, amount, count=1)
        if count:
            return changed
    code = _CODES.search(amount)
    if code is not None:
        return amount.replace(code[0], "USD" if code[0] == "EUR" else "EUR", 1)
    for pattern, instead in _NAMES:
        changed, count = pattern.subn(instead, amount, count=1)
        if count:
            return changed
    return ""


_NUMERAL = re.compile(r"[0-9०-९]+(?:,[0-9०-९]+)*(?:\.[0-9०-९]+)?")
_DEVANAGARI = str.maketrans("0123456789", "०१२३४५६७८९")
_LATIN = str.maketrans("०१२३४५६७८९", "0123456789")

Change = Callable[[Decimal], Decimal]
"""A function that takes a number and returns the changed number."""

_OTHER_NUMBER_WORDS = {
    "one": "two", "two": "three", "three": "four", "four": "six", "five": "seven", "six": "nine", "seven": "ten",
    "eight": "twelve", "nine": "six", "ten": "fifteen", "twelve": "eighteen", "thirty": "sixty", "sixty": "ninety",
    "ninety": "thirty", "twice": "four times", "once": "twice",
    "ek": "do", "do": "teen", "teen": "paanch", "char": "chhe", "paanch": "saat", "chhe": "das",
    "एक": "दो", "दो": "तीन", "तीन": "पाँच", "चार": "छह", "पाँच": "सात", "पांच": "सात", "छह": "दस",
}  # fmt: skip
"""Number words, each with its replacement. The replacement is a number of similar size."""


def increase_last_number_by_half(gold: str) -> str:
    """Return the gold with its last quantity increased by half: 24 months become 36 months, and 20% becomes 30%."""
    return _change_last_number(gold, lambda number: number + max(Decimal(1), (number / 2).to_integral_value()))


def increase_last_period_by_one(gold: str) -> str:
    """Return the gold with its last duration or date increased by one: 24 months become 25, 2026 becomes 2027."""
    return _change_last_number(gold, lambda number: number + 1, kinds=(FactKind.DURATION, FactKind.DATE))


def change_order_of_magnitude(gold: str) -> str:
    """Return the gold with an amount multiplied by ten, or with another scale: crore becomes lakh."""
    for fact in _list_facts_from_last(gold, (FactKind.MONEY, FactKind.NUMBER, FactKind.PERCENT)):
        for word, other in _SCALES.items():
            if re.search(rf"(?i)\b{word}\b", fact.text):
                return _replace_fact(gold, fact, re.sub(rf"(?i)\b{word}\b", other, fact.text))
    kinds = (FactKind.MONEY, FactKind.NUMBER, FactKind.PERCENT)
    return _change_last_number(gold, lambda number: number * 10, kinds=kinds, words=False)


_SCALES = {
    "lakhs?": "crore", "crores?": "lakh", "thousand": "lakh", "million": "billion", "hazaa?r": "lakh",
    "लाख": "करोड़", "करोड़": "लाख", "हज़ार": "लाख", "हजार": "लाख",
}  # fmt: skip


def change_currency_of_last_amount(gold: str) -> str:
    """Return the gold with its last amount in another currency: rupees become dollars, and dollars become euros."""
    for fact in _list_facts_from_last(gold, (FactKind.MONEY,)):
        other = change_currency_of_amount(fact.text)
        if other:
            return _replace_fact(gold, fact, other)
    return ""


_UNITS = (
    {"hour": "day", "day": "month", "month": "day", "year": "month"},
    {"hours": "days", "days": "months", "months": "days", "years": "months"},
    {"ghanta": "din", "ghante": "din", "din": "mahine", "mahina": "din", "mahine": "din", "saal": "mahine"},
    {"घंटा": "दिन", "घंटे": "दिन", "दिन": "महीने", "महीना": "दिन", "महीने": "दिन", "साल": "महीने", "वर्ष": "महीने"},
)


def change_duration_or_percentage_unit(gold: str) -> str:
    """Return the gold with another unit in its last duration or percentage.

    For example, months become days, and percent becomes rupees. A quantity of 0 is not changed.
    """
    for fact in _list_facts_from_last(gold, (FactKind.DURATION, FactKind.PERCENT)):
        if fact.kind is FactKind.PERCENT:
            bare = _NUMERAL.search(fact.text)
            if bare and bare[0].strip("0.०"):
                return _replace_fact(gold, fact, f"₹{bare[0]}")
            continue
        for units in _UNITS:
            for unit, other in units.items():
                if re.search(rf"(?i)(?<![^\W\d_]){unit}(?![\w\u0900-\u0963])", fact.text):
                    changed = re.sub(rf"(?i)(?<![^\W\d_]){unit}(?![\w\u0900-\u0963])", other, fact.text, count=1)
                    return _replace_fact(gold, fact, changed)
    return ""


_TO_LEAST = (
    (re.compile(r"(?i)\b(?:up ?to|at most|not more than|no more than|a maximum of|maximum|within|no later than)\b"),
     "at least"),
    (re.compile(r"अधिकतम"), "न्यूनतम"),
    (re.compile(r"(\S+(?: \S+)?) तक\b"), r"कम से कम \1"),
    (re.compile(r"(?i)(\S+(?: \S+)?) tak\b"), r"kam se kam \1"),
)  # fmt: skip
_TO_MOST = (
    (re.compile(r"(?i)\b(?:at least|not less than|no less than|a minimum of|minimum)\b"), "up to"),
    (re.compile(r"कम से कम (\S+(?: \S+)?)"), r"\1 तक"),
    (re.compile(r"न्यूनतम"), "अधिकतम"),
    (re.compile(r"(?i)kam se kam (\S+(?: \S+)?)"), r"\1 tak"),
)


def flip_bound(gold: str) -> str:
    """Return the gold with its bound reversed: "at least" becomes "at most", or the reverse.

    The result is empty if the gold does not have exactly one clear bound.
    """
    bounds = {fact.bound for fact in read_facts(gold)} - {Bound.EXACT}
    if len(bounds) != 1:
        return ""
    (bound,) = bounds
    for pattern, instead in _TO_LEAST if bound is Bound.AT_MOST else _TO_MOST:
        flipped, count = pattern.subn(instead, gold)
        if count:
            after = {fact.bound for fact in read_facts(flipped)} - {Bound.EXACT}
            return flipped if after and bound not in after else ""
    return ""


# --- changing one quantity ------------------------------------------------------------------------------------


def _list_facts_from_last(gold: str, kinds: tuple[FactKind, ...]) -> list[Fact]:
    """Return the quantities of a gold from the last to the first.

    The word "one" is omitted, because it is often an article.
    """
    facts = (fact for fact in reversed(read_facts(gold)) if fact.kind in kinds)
    return [
        fact for fact in facts if fact.kind is not FactKind.NUMBER or fact.value != "1" or fact.text.isdecimal()
    ]


def _replace_fact(gold: str, fact: Fact, instead: str) -> str:
    return gold[: fact.start] + instead + gold[fact.end :] if instead != fact.text else ""


def _change_last_number(
    gold: str, change: Change, *, kinds: tuple[FactKind, ...] = tuple(FactKind), words: bool = True
) -> str:
    """Return the gold with another number in its last quantity, in the same script and grouping.

    The result is empty if the gold has no quantity of ``kinds``.
    """
    for fact in _list_facts_from_last(gold, kinds):
        digits = list(_NUMERAL.finditer(fact.text))
        if digits:
            place = digits[-1] if fact.kind is FactKind.DATE else digits[0]
            other = _rewrite_numeral(place[0], change)
            return _replace_fact(gold, fact, fact.text[: place.start()] + other + fact.text[place.end() :])
        if words:
            for word in re.findall(r"[^\W\d_][\w\u0900-\u0963]*", fact.text):
                if word.lower() in _OTHER_NUMBER_WORDS:
                    return _replace_fact(gold, fact, fact.text.replace(word, _OTHER_NUMBER_WORDS[word.lower()], 1))
    return ""


def _rewrite_numeral(numeral: str, change: Change) -> str:
    plain = numeral.translate(_LATIN)
    number = change(Decimal(plain.replace(",", ""))).normalize()
    written = group_digits(number) if "," in plain else f"{number:f}"
    return written.translate(_DEVANAGARI) if numeral != plain else written


_INDIAN_GROUP, _GROUP = 2, 3


def group_digits(number: Decimal, *, indian: bool = True) -> str:
    """Format a number with commas: 1,50,000 if ``indian`` is True, otherwise 150,000."""
    whole, _, rest = f"{number:f}".partition(".")
    head, tail = whole[:-3], whole[-3:]
    groups = [tail]
    while head:
        size = _INDIAN_GROUP if indian else _GROUP
        groups.insert(0, head[-size:])
        head = head[:-size]
    return ",".join(groups) + (f".{rest}" if rest else "")
