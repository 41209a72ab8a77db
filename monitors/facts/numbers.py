"""Digits: what a numeral with its separators says, and the notations that digits come in.

Thousands groups of both systems (``1,50,000``, ``150,000``), continental ones (``1.234,56``) and thin spaces.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

EXACT = Context(prec=60)
"""Arithmetic on quantities: 60 digits, so that no number a person writes is rounded."""

LARGEST = Decimal("1e36")
"""A larger number is not a quantity; it would only cost time and space."""

_GROUP = 3
_LONGEST = 36
_MOST_PARTS = 40
"""Digits in more parts without a space are no list of numbers that anyone reads."""

_WESTERN_OR_INDIAN = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}")
_DOTTED_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+")


def numeral_values(text: str) -> list[tuple[Decimal, int, int]]:
    """The numbers in a numeral with their places in it: several where the dots are no separators of one number.

    ``1,50,000`` → 150000; ``33,90`` → 33.90; ``1.234,56`` → 1234.56; ``192.168.1.2`` → four numbers.
    """
    if text.isdecimal():
        return [(Decimal(text), 0, len(text))] if len(text) <= _LONGEST else []
    value = _one_number(text)
    if value is not None:
        return [(value, 0, len(text))]
    if text.count(",") + text.count(".") > _MOST_PARTS:
        return []
    return [
        (Decimal(run.group()), run.start(), run.end())
        for run in re.finditer(r"\d+", text)
        if run.end() - run.start() <= _LONGEST
    ]


def _one_number(text: str) -> Decimal | None:
    if len(text) > _LONGEST:
        return None
    commas, dots = text.count(","), text.count(".")
    if commas and dots:
        return _mixed(text)
    if commas:
        return _with_commas(text, commas)
    if dots == 1:
        return Decimal(text)
    return Decimal(text.replace(".", "")) if _DOTTED_GROUPS.fullmatch(text) else None


def _with_commas(text: str, commas: int) -> Decimal | None:
    if _WESTERN_OR_INDIAN.fullmatch(text):
        return Decimal(text.replace(",", ""))
    return Decimal(text.replace(",", ".")) if commas == 1 else None


def _mixed(text: str) -> Decimal | None:
    whole, mark, part = _last_split(text)
    other = "." if mark == "," else ","
    groups = whole.split(other)
    grouped = len(groups) > 1 and mark not in whole and len(groups[-1]) == _GROUP
    if grouped and all(2 <= len(group) <= _GROUP for group in groups[1:]):  # noqa: PLR2004 - Indian groups have two
        return Decimal(f"{whole.replace(other, '')}.{part}")
    return None


def _last_split(text: str) -> tuple[str, str, str]:
    at = max(text.rfind(","), text.rfind("."))
    return text[:at], text[at], text[at + 1 :]


def plain(value: Decimal) -> str:
    """A value as a plain decimal string: no exponent, no trailing zeros (``1500000``, ``0.25``)."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"", "-0"} else text


def is_multiple(value: Decimal, of: int) -> bool:
    """Whether ``value`` is a whole multiple of ``of``; a number beyond `LARGEST` is none."""
    return abs(value) < LARGEST and EXACT.remainder(value, Decimal(of)) == 0
