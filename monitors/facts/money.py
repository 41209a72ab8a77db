"""Money: the currency before or behind an amount, and its hundredths."""

from __future__ import annotations

from typing import NamedTuple

from monitors.facts.currencies import COUNTRIES, DOLLARS, NAMES, SIGNS
from monitors.facts.tokens import NUMERAL, WORD
from monitors.facts.words import Reader


class Currency(NamedTuple):
    """A currency in the text. ``code`` is ISO 4217 or ``None``; ``after`` is the token behind it."""

    code: str | None
    after: int
    first: int


_LOWER_CASE_TOO = frozenset({"rs", "inr", "usd", "eur", "gbp", "aud", "cad", "sgd", "rmb", "le", "aed"})
_MEGA = {f"M{code}": code for code in ("USD", "EUR", "GBP", "AUD", "CAD", "INR", "JPY", "CHF")}
MILLION_CODES = _MEGA
"""``30 MUSD``: thirty million."""


def currency_at(reader: Reader, at: int) -> Currency | None:
    """The currency that stands at token ``at``: ``₹``, ``Rs.``, ``US$``, ``c $``, ``INR``, ``Swiss francs``."""
    token = reader.token(at)
    if token.text in SIGNS:
        return _sign(reader, at)
    if token.kind != WORD:
        return None
    following = reader.token(at + 1)
    if following.text == "$" and token.key in DOLLARS:
        return Currency(DOLLARS[token.key], at + 2, at)
    if token.key in NAMES and _is_name(token.text, token.key):
        after = at + 1
        if following.text == "." and following.start == token.end:
            after += 1
        return Currency(NAMES[token.key], after, at)
    if token.key in COUNTRIES:
        return _of_country(reader, at)
    if token.key in {"l", "u"} and following.text == ".":
        return _dotted(reader, at)
    return None


def _sign(reader: Reader, at: int) -> Currency:
    """A sign, and a code right beside it that says which dollar: ``$ SGD``."""
    code, after = SIGNS[reader.token(at).text], at + 1
    following = reader.token(after)
    if following.text == "ur" and reader.token(at).text == "€":
        return Currency("EUR", after + 1, at)
    if code is None and following.text.isupper() and NAMES.get(following.key):
        return Currency(NAMES[following.key], after + 1, at)
    return Currency(code, after, at)


def _is_name(text: str, key: str) -> bool:
    """Codes are upper case, except the few that people type in small letters; names may be either."""
    return len(key) != 3 or not key.isascii() or key in _LOWER_CASE_TOO or text.isupper() or key == "yen"  # noqa: PLR2004


def _of_country(reader: Reader, at: int) -> Currency | None:
    code, after = COUNTRIES[reader.token(at).key], at + 1
    if reader.token(after).key in {"states", "kong", "zealand", "islands"}:
        after += 1
    named = reader.token(after)
    return Currency(code, after + 1, at) if named.key in NAMES and named.key != "le" else None


def _dotted(reader: Reader, at: int) -> Currency | None:
    """``L.E``, ``U.S. $``."""
    second = reader.token(at + 2)
    if reader.token(at).key == "l" and second.key == "e":
        after = at + 4 if reader.token(at + 3).text == "." else at + 3
        return Currency("EGP", after, at)
    if second.key == "s":
        after = at + 4 if reader.token(at + 3).text == "." else at + 3
        if reader.token(after).text == "$":
            return Currency("USD", after + 1, at)
    return None


def is_backtick_rupee(reader: Reader, at: int) -> bool:
    """A backtick before digits: what the rupee sign becomes in text drawn from some PDFs."""
    token, following = reader.token(at), reader.token(at + 1)
    if token.text != "`" or following.kind != NUMERAL:
        return False
    closing = reader.token(at + 2)
    return not (closing.text == "`" and closing.start == following.end)


def slash_dash(reader: Reader, at: int) -> bool:
    """``5000/-``: rupees in India."""
    return reader.token(at).text == "/" and reader.token(at + 1).text == "-" and _adjacent(reader, at)


def _adjacent(reader: Reader, at: int) -> bool:
    return reader.token(at).start == reader.token(at - 1).end
