"""Which words make or begin a quantity, gathered from the readers' tables."""

from __future__ import annotations

from monitors.facts.calendar_words import MONTHS
from monitors.facts.currencies import COUNTRIES, DOLLARS, MONEY_WORDS, NAMES, SIGNS
from monitors.facts.durations import TIME_UNITS, WHOLE
from monitors.facts.money import MILLION_CODES
from monitors.facts.percent import PERCENT_WORDS

UNIT_KEYS = frozenset(TIME_UNITS) | PERCENT_WORDS | MONEY_WORDS
"""Words before which a shy number word is a number."""

_NAMED = frozenset(NAMES) | {"states", "kong", "zealand", "islands", "rupee", "rupees"}
_DAYS = {"today", "tomorrow", "yesterday", "tonight", "आज", "aaj"}
_ANYTHING = frozenset(MONTHS) | frozenset(NAMES) | {"fortnight", "last", *_DAYS}
_FORTNIGHTS = frozenset(word for word, unit in TIME_UNITS.items() if unit.name == "fortnight")

STARTS: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(COUNTRIES, _NAMED),
    **dict.fromkeys(WHOLE, frozenset(TIME_UNITS) | {"-"}),
    **dict.fromkeys(_ANYTHING | _FORTNIGHTS | {code.lower() for code in MILLION_CODES}),
    **{
        key: frozenset({"$"}) | (_NAMED if key in COUNTRIES else frozenset()) for key in DOLLARS if key not in NAMES
    },
    **dict.fromkeys([*SIGNS, "`"]),
    "l": frozenset({"."}),
    "u": frozenset({"."}),
}
"""Words that are no numbers and may begin a quantity, each with what must follow it (``None``: anything)."""
