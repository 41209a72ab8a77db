"""What single errors teach, by row: written by a person who read the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.accuracy.figure import TellingError

LESSONS = {
    # quantities/texts
    "c5a8dc636175": "the label makes three of a few; a monitor must not invent an exact figure, so it reads none",
    "78304f1d6e21": "a holiday with a year is a date; only calendar dates are read, feasts are not",
    "f3c1584315c4": "Hindi says 'the second day' and 'another day' with one word; the ordinal is read, the day is not",
    "6877d1034a10": "the label splits digits in groups of three in Hindi, the English row of the same form joins them",
    "f34f7a22255d": "after an ordinal the label drops the number; 'first two' keeps both here, since two are meant",
    "57c2b9b429c0": "an old currency with a country before it: the currency names are a table, and tables end",
    "064d7f2ae85f": "coins by name are money in one country only; they are left out on purpose",
    # quantities/pairs
    "08d6a6c8c2e0": "a decade in words is read as its first number; in digits it is a decade",
    "bcd83dfdbe4e": "the label says unequal, both say the same day: pairs made by shuffling can collide",
    "f7d4bad51d5e": "month and year in bare digits look like any two numbers",
    # quantities/clauses
    "7644f044ab56": "the clause says two years, the label three: silver labels made by a model err",
    "8a619ad56a46": "a zero is labelled where options are listed: the label tells the base plan, the clause does not",
    "fe540537d114": "the clause says up to 90 days, the label the first day after: a derived fact, not a stated one",
    "693d2aa296ca": "a clause cut off before its unit states a bare number",
    "faa1cc7c63f9": "a figure said twice and then no unit at all: text taken from a page loses words",
    # answers/evouna
    "NQ-2813-newbing": "a footnote's digit glued to a word hides the unit; the figure alone is not passed",
    "NQ-3067-newbing": "a footnote's digit glued to a sum makes another sum of it",
    "NQ-860-gpt4": "the judge accepts 07 for 0: leading digits are text, not quantity",
    "TQ-571-gpt35": "a range in the gold can mean any year within; here every end must be stated",
    "NQ-2517-chatgpt": "an accepted name stands in the reply inside another name",
    "NQ-3449-chatgpt": "one accepted name is enough for the set, a person wanted all three: lists need their own rule",
    "NQ-3509-chatgpt": "the reply denies the premise and names the gold on the way: containment cannot see it",
}
"""By the id of the row; an empty lesson is none."""


def add_lessons(errors: Sequence[TellingError], most: int) -> tuple[TellingError, ...]:
    """The errors with a lesson, in their order; then others, until ``most``."""
    taught_errors = [replace(error, teaches=LESSONS[error.row_id]) for error in errors if LESSONS.get(error.row_id)]
    others = [error for error in errors if not LESSONS.get(error.row_id) and error.teaches]
    return tuple((taught_errors + others)[:most])
