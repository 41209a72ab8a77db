"""Powers and scientific notation: ``1.3e6``, ``6.23x10^-4``, ``2.5^-1``."""

from __future__ import annotations

from decimal import Decimal

from monitors.facts.lookup import Lookup
from monitors.facts.numbers import EXACT
from monitors.facts.tokens import NUMERAL, SIGN

_LARGEST_EXPONENT = 30
"""A larger one is not written about quantities, and would only cost digits."""

_LARGEST_BASE = Decimal(1_000_000)


def powered(found: Lookup, value: Decimal, at: int) -> tuple[Decimal, int]:
    """``value`` raised by the power that follows at token ``at``, and the token after it; unchanged without one."""
    token, before = found.token(at), found.token(at - 1)
    if token.start != before.end:
        return value, at
    if token.key == "e":
        exponent = _exponent(found, at + 1)
        return (EXACT.scaleb(value, exponent[0]), exponent[1]) if exponent else (value, at)
    if token.key == "x" and found.token(at + 1).text == "10" and found.token(at + 2).text == "^":
        exponent = _exponent(found, at + 3)
        return (EXACT.scaleb(value, exponent[0]), exponent[1]) if exponent else (value, at)
    if token.text == "^" and 0 < value < _LARGEST_BASE:
        exponent = _exponent(found, at + 1)
        return (EXACT.power(value, exponent[0]), exponent[1]) if exponent else (value, at)
    return value, at


def _exponent(found: Lookup, at: int) -> tuple[int, int] | None:
    """Signs and digits without spaces. Of doubled signs the last counts."""
    negative = False
    for place in range(at, at + 3):
        token = found.token(place)
        if token.start != found.token(place - 1).end:
            return None
        if token.kind == SIGN and token.text in {"+", "-"}:
            negative = token.text == "-"
        elif token.kind == NUMERAL and token.text.isdecimal() and len(token.text) <= 2:  # noqa: PLR2004
            exponent = int(token.text)
            return (-exponent if negative else exponent, place + 1) if exponent <= _LARGEST_EXPONENT else None
        else:
            return None
    return None
