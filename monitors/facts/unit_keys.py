"""Which words make or begin a quantity, gathered from the readers' tables."""

from __future__ import annotations

from monitors.facts.calendar_words import MONTHS
from monitors.facts.currencies import COUNTRIES, DOLLARS, MONEY_WORDS, NAMES
from monitors.facts.durations import TIME_UNITS, WHOLE
from monitors.facts.money import MILLION_CODES
from monitors.facts.percent import PERCENT_WORDS

UNIT_KEYS = frozenset(TIME_UNITS) | PERCENT_WORDS | MONEY_WORDS
"""Words before which a shy number word is a number."""

STARTS = frozenset(
    set(NAMES)
    | set(COUNTRIES)
    | set(DOLLARS)
    | set(MONTHS)
    | WHOLE
    | {code.lower() for code in MILLION_CODES}
    | {"fortnight", "last", "l", "u", "today", "tomorrow", "yesterday", "आज", "aaj", "tonight"}
    | {word for word, unit in TIME_UNITS.items() if unit.name == "fortnight"}
)
"""Words that are no numbers and may begin a quantity."""
