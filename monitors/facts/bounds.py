"""Bounds: "up to", "at least", "not exceeding", "तक", "se kam" around a quantity."""

from __future__ import annotations

from monitors.facts.fact import Bound
from monitors.facts.normalise import keys_of
from monitors.facts.words import Reader

_MOST_BEFORE = keys_of(
    "upto maximum max maximally अधिकतम adhiktam within under below capped cap limited restricted ज्यादा_से"
)
_LEAST_BEFORE = keys_of("minimum min over above exceeding exceeds beyond न्यूनतम nyuntam न्युनतम")
_NEGATIONS = keys_of("not no never without न नहीं nahi nahin")
_LINKS = keys_of("of to a an the is be by at for period about around approximately of: : है hai")
_STOPS = frozenset(".;!?()|•\n")
_WINDOW = 4


def bound_of(reader: Reader, first: int, last: int) -> Bound:
    """How the quantity between tokens ``first`` and ``last`` (inclusive) limits."""
    behind = _behind(reader, last + 1)
    if behind is not Bound.EXACT:
        return behind
    return _before(reader, first - 1)


def _behind(reader: Reader, at: int) -> Bound:
    key, following = reader.token(at).key, reader.token(at + 1).key
    if key in {"तक", "tak"} or (key, following) in _MOST_BEHIND:
        return Bound.AT_MOST
    if key in {"onwards", "onward", "plus", "+", "upwards"} or (key, following) in _LEAST_BEHIND:
        return Bound.AT_LEAST
    return Bound.EXACT


_MOST_BEHIND = frozenset(
    {("से", "कम"), ("se", "kam"), ("or", "less"), ("or", "below"), ("and", "below"), ("or", "fewer"), ("at", "most")}
)
_LEAST_BEHIND = frozenset(
    {
        ("से", "अधिक"), ("से", "ज्यादा"), ("से", "ऊपर"), ("se", "zyada"), ("se", "jyada"), ("se", "adhik"),
        ("se", "upar"), ("or", "more"), ("and", "above"), ("or", "above"), ("and", "over"), ("or", "over"),
        ("at", "least"),
    }
)  # fmt: skip


def _before(reader: Reader, at: int) -> Bound:
    """The nearest bounding words in the few tokens before, in the same sentence."""
    for place in range(at, max(-1, at - _WINDOW), -1):
        key, earlier = reader.token(place).key, reader.token(place - 1).key
        if key in _STOPS or key == ",":
            return Bound.EXACT
        found = _phrase(reader, place, key, earlier)
        if found is not Bound.EXACT:
            return found
        if key not in _LINKS:
            return Bound.EXACT
    return Bound.EXACT


def _phrase(reader: Reader, place: int, key: str, earlier: str) -> Bound:
    negated = earlier in _NEGATIONS
    if key == "to" and earlier == "up":
        return Bound.AT_MOST
    if key == "than":
        return _than(reader, place - 1)
    if key in {"most", "least"} and earlier == "at":
        return Bound.AT_MOST if key == "most" else Bound.AT_LEAST
    if key == "कम" and earlier == "से" and reader.token(place - 2).key == "कम":
        return Bound.AT_LEAST
    if key == "kam" and earlier == "se" and reader.token(place - 2).key == "kam":
        return Bound.AT_LEAST
    if key in {"exceeding", "exceed", "above", "over", "beyond"}:
        return Bound.AT_MOST if negated or key == "exceed" else Bound.AT_LEAST
    if key in _MOST_BEFORE:
        return Bound.AT_MOST
    return Bound.AT_LEAST if key in _LEAST_BEFORE else Bound.EXACT


def _than(reader: Reader, at: int) -> Bound:
    key = reader.token(at).key
    # "not more than", "will not pay more than", "shall not be more than".
    negated = any(reader.token(place).key in _NEGATIONS for place in range(at - 3, at))
    if key in {"more", "greater", "longer", "later", "higher", "older"}:
        return Bound.AT_MOST if negated else Bound.AT_LEAST
    if key in {"less", "fewer", "lower", "shorter", "younger", "earlier"}:
        return Bound.AT_LEAST if negated else Bound.AT_MOST
    return Bound.EXACT
