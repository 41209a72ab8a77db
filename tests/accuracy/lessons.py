"""Lessons from rows with a wrong result, keyed by row id.

A person wrote each lesson after reading the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.accuracy.figure import TellingError

LESSONS = {
    # quantities/texts
    "c5a8dc636175": "the label reads 'a few' as three; a monitor must not invent an exact figure, so it reads none",
    "78304f1d6e21": "the label reads a holiday with a year as a date; Lookout reads only calendar dates",
    "f3c1584315c4": "Hindi has one word for 'the second day' and 'another day'; Lookout reads the ordinal, but not the day",
    "6877d1034a10": "the Hindi label splits groups of three digits; the English label of the same text joins them",
    "f34f7a22255d": "the label drops a number after an ordinal; Lookout keeps both numbers of 'first two'",
    "57c2b9b429c0": "this is an old currency with its country; the table of currencies does not contain it",
    "064d7f2ae85f": "the name of a coin means money in one country only, so Lookout deliberately does not read it",
    # quantities/pairs
    "08d6a6c8c2e0": "Lookout reads a decade in words as a number, and a decade in digits as a decade",
    "bcd83dfdbe4e": "both texts name the same day, but the label says unequal: shuffled pairs can be equal by chance",
    "f7d4bad51d5e": "a month and a year in digits look like two other numbers",
    # quantities/clauses
    "7644f044ab56": "the clause says two years, but the label says three: a model wrote this label",
    "8a619ad56a46": "the clause lists options, but the label has the zero of the base plan, which the clause does not state",
    "fe540537d114": "the clause says up to 90 days; the label has the first day after that, which the clause does not state",
    "693d2aa296ca": "the clause is cut off before its unit, so only a number is left",
    "faa1cc7c63f9": "the text repeats the figure without a unit, because words were lost when it was copied from a page",
    # answers/evouna
    "NQ-2813-newbing": "the digit of a footnote follows a word directly and hides the unit; a figure alone does not pass",
    "NQ-3067-newbing": "the digit of a footnote follows an amount directly, so the amount looks like a larger one",
    "NQ-860-gpt4": "the person accepted 07 for 0; Lookout reads 07 as 7",
    "TQ-571-gpt35": "the person accepted any year within the gold's range; Lookout requires both ends of the range",
    "NQ-2517-chatgpt": "the reply contains an accepted name only as a part of another name",
    "NQ-3449-chatgpt": "the set accepts one of three names, but the person wanted all three: a list needs a separate rule",
    "NQ-3509-chatgpt": "the reply denies the premise and also names the gold; a search for the gold does not detect this",
}
"""Lessons, keyed by row id. An empty text means that the row has no lesson."""


def add_lessons(errors: Sequence[TellingError], most: int) -> tuple[TellingError, ...]:
    """Return up to ``most`` errors that have a lesson.

    Errors whose row has a lesson in `LESSONS` come first, with this lesson. Errors with a lesson from the code that
    measured them follow. Errors without a lesson are omitted.
    """
    taught_errors = [replace(error, teaches=LESSONS[error.row_id]) for error in errors if LESSONS.get(error.row_id)]
    others = [error for error in errors if not LESSONS.get(error.row_id) and error.teaches]
    return tuple((taught_errors + others)[:most])
