"""Find ranges of weekdays in a text: ``Tuesday to Sunday``, ``Mon-Fri``, ``daily``."""

from __future__ import annotations

import re
from typing import Final

from monitors.facts.quantities.lexicon import WEEKDAYS

_DAY: Final = rf"({'|'.join(sorted(WEEKDAYS, key=len, reverse=True))})s?\.?"
_RANGE: Final = re.compile(
    rf"(?<!\w){_DAY}\s*(?:-|–|—|\b(?:to|till|until|through(?:\s+to)?|thru)\b|से)\s*{_DAY}(?!\w)", re.IGNORECASE
)
_EVERY: Final = re.compile(r"\b(?:daily|every ?day|all week|(?:7|seven) days a week)\b", re.IGNORECASE)
_WEEK: Final = 7


def find_day_ranges(text: str) -> frozenset[frozenset[int]]:
    """Return each range of weekdays as a set of days (Monday is 0). Single days and lists of days are ignored."""
    ranges = {
        _list_days_between(WEEKDAYS[match[1].lower()], WEEKDAYS[match[2].lower()])
        for match in _RANGE.finditer(text)
    }
    if _EVERY.search(text):
        ranges.add(frozenset(range(_WEEK)))
    return frozenset(ranges)


def _list_days_between(first: int, last: int) -> frozenset[int]:
    return frozenset((first + step) % _WEEK for step in range((last - first) % _WEEK + 1))
