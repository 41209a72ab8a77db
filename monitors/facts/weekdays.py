"""Which days of the week a text names as a stretch: ``Tuesday to Sunday``, ``Mon-Fri``, ``daily``."""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = r"(mon|tue|wed|thu|fri|sat|sun)(?:day|sday|s|nesday|rsday|rs|urday)?s?\b\.?"
_STRETCH: Final = re.compile(rf"\b{_DAY}\s*(?:-|–|—|to|till|until|through|thru)\s*{_DAY}", re.IGNORECASE)
_EVERY: Final = re.compile(r"\b(?:daily|every ?day|all week|(?:7|seven) days a week)\b", re.IGNORECASE)


def stretches_of_days(text: str) -> frozenset[frozenset[int]]:
    """Each stretch as its days, Monday is 0; single days and lists of days are none."""
    found = {_between(match[1].lower(), match[2].lower()) for match in _STRETCH.finditer(text)}
    if _EVERY.search(text):
        found.add(frozenset(range(len(_NAMES))))
    return frozenset(found)


def _between(first: str, last: str) -> frozenset[int]:
    start, end = _NAMES.index(first), _NAMES.index(last)
    return frozenset((start + step) % len(_NAMES) for step in range((end - start) % len(_NAMES) + 1))
