"""A value in the words of a language: "24 months", "24 महीने", "₹15,00,000", "up to 20%"."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.fact import Bound
from monitors.goldset.fact_schema import FactField, FieldKind, TimeUnit
from monitors.goldset.fact_values import Amount, Chosen, FreeWords, Several, Single
from monitors.records.base import Language

_UNITS: dict[Language, dict[TimeUnit, tuple[str, str]]] = {
    Language.ENGLISH: {
        TimeUnit.HOUR: ("hour", "hours"),
        TimeUnit.DAY: ("day", "days"),
        TimeUnit.MONTH: ("month", "months"),
        TimeUnit.YEAR: ("year", "years"),
    },
    Language.HINDI: {
        TimeUnit.HOUR: ("घंटा", "घंटे"),
        TimeUnit.DAY: ("दिन", "दिन"),
        TimeUnit.MONTH: ("महीना", "महीने"),
        TimeUnit.YEAR: ("साल", "साल"),
    },
    Language.HINGLISH: {
        TimeUnit.HOUR: ("ghanta", "ghante"),
        TimeUnit.DAY: ("din", "din"),
        TimeUnit.MONTH: ("mahina", "mahine"),
        TimeUnit.YEAR: ("saal", "saal"),
    },
}
"""One and more than one of each."""

_BOUNDS = {
    Language.ENGLISH: {Bound.AT_MOST: "up to {}", Bound.AT_LEAST: "at least {}"},
    Language.HINDI: {Bound.AT_MOST: "{} तक", Bound.AT_LEAST: "कम से कम {}"},
    Language.HINGLISH: {Bound.AT_MOST: "{} tak", Bound.AT_LEAST: "kam se kam {}"},
}
_AND = {Language.ENGLISH: "and", Language.HINDI: "और", Language.HINGLISH: "aur"}


def worded(value: Single | Several, field: FactField, language: Language) -> str:
    """The value in words; a yes or no has its words in the template, so it gives none here."""
    match value:
        case Amount():
            return _amount(value, language)
        case Chosen(word):
            return field.choices[word].get(language) or field.choices[word][Language.ENGLISH]
        case FreeWords(text):
            return text
        case Several(values):
            words = [worded(one, field, language) for one in values]
            return f"{', '.join(words[:-1])} {_AND[language]} {words[-1]}"
        case _:
            return ""


def _amount(amount: Amount, language: Language) -> str:
    return _BOUNDS[language].get(amount.bound, "{}").format(_number_with_unit(amount, language))


def _number_with_unit(amount: Amount, language: Language) -> str:
    number = grouped(amount.number)
    if amount.kind is FieldKind.MONEY:
        return f"₹{number}"
    if amount.kind is FieldKind.PERCENT:
        return f"{number}%"
    if amount.unit is None:
        return number
    one, more = _UNITS[language][amount.unit]
    return f"{number} {one if amount.number == 1 else more}"


def grouped(number: Decimal) -> str:
    """Digits in Indian groups: 9,800 and 1,50,000."""
    whole, _, rest = f"{number:f}".partition(".")
    head, tail = whole[:-3], whole[-3:]
    groups = [tail]
    while head:
        groups.insert(0, head[-2:])
        head = head[:-2]
    return ",".join(groups) + (f".{rest}" if rest else "")
