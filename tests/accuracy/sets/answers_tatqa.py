"""Measures the factual grader on questions about financial tables: sign, scale and rounding.

The label states whether the answer passes the exact match that the task itself defines.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.grading import count_verdicts, grade, verdict_name
from tests.accuracy.rows import read_rows

NAME = "answers/tatqa"

NOTE = (
    "A span is an answer that is copied from the text. Its label requires an exact match: if the gold is *2018*, the "
    "reply *In 2018,* has the label wrong. Therefore the last figure does not count replies that differ from the gold "
    "only in small words, in words of the question, or in the day and month of a year."
)

YEAR = re.compile(r"[12]\d\d\d")
DAY = re.compile(
    r"\b(?:year[- ]ended )?(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October"
    r"|November|December)(?: \d{1,2},)?",
    re.IGNORECASE,
)
"""Matches a day and month. If the gold is a year, a reply that also states a day and month equals the gold."""
SMALL = frozenset(
    [
        "had",
        "has",
        "have",
        "in",
        "of",
        "was",
        "were",
        "is",
        "are",
        "for",
        "at",
        "to",
        "by",
        "on",
        "as",
        "the",
        "a",
        "an",
        "and",
        "which",
        "from",
        "with",
        "about",
        "approximately",
    ]
)

LESSONS = {
    "false_pass": "the label requires the same words or decimals; Lookout also passes the same value without its final zeros",
    "false_fail": "a figure without its scale or unit is another figure, although the label accepts it",
}


def measure(data: Path) -> Measured:
    """Measure how often the grader agrees with exact match, for each type of answer.

    Answers that are spans of a text are also measured, but they are not the purpose of this set.
    """
    names: dict[str, list[str]] = {}
    errors: list[TellingError] = []
    for row in read_rows(data / "answers" / "tatqa.jsonl"):
        verdict = grade(row["question"], [row["gold"]], row["answer"])
        name = verdict_name(verdict, row["correct"])
        names.setdefault(row["answer_type"], []).append(name)
        if name in LESSONS and row["answer_type"] == "arithmetic":
            label = f"{name.replace('_', ' ')}, arithmetic: {verdict.reason[:70]}"
            errors.append(TellingError(NAME, row["id"], label, LESSONS[name]))
    figures = [
        figure for kind, listed in sorted(names.items()) for figure in count_verdicts(listed).figures(NAME, kind)
    ]
    decided = [name for listed in names.values() for name in listed if name != "abstained"]
    right = sum(name.startswith("right") for name in decided)
    figures.append(_count_reader_false_passes(data))
    figures.insert(0, build_share(NAME, "all: agreement where decided", right, len(decided)))
    return Measured(tuple(figures), tuple(errors[:3]), (NOTE,))


def _count_reader_false_passes(data: Path) -> Figure:
    """Measure how many wrong answers the grader passes, among answers that are spans of a text.

    Replies that exact match rejects only because of small words ("In 2018,") are not counted.
    """
    passed = decided = 0
    for row in read_rows(data / "answers" / "tatqa.jsonl"):
        if row["answer_type"] != "span" or row["correct"] or _says_the_same_words(row):
            continue
        name = verdict_name(grade(row["question"], [row["gold"]], row["answer"]), row["correct"])
        passed += name == "false_pass"
        decided += name != "abstained"
    what = "span: false pass, without replies that differ from the gold only in small words"
    return build_share(NAME, what, passed, decided, target=0.10, at_most=True)


def _says_the_same_words(row: dict[str, Any]) -> bool:
    """Return whether the reply and the gold of a row have the same words and figures.

    Small words and words of the question are ignored. If the gold is a year, a day and month in the reply are
    ignored too.
    """
    answer = DAY.sub(" ", row["answer"]) if YEAR.fullmatch(row["gold"]) else row["answer"]
    gold, answer_words = _list_words(row["gold"]), _list_words(answer)
    asked = {word for word in _list_words(row["question"]) if word.isalpha()}
    return not (answer_words - gold - asked - SMALL) and not (gold - answer_words - asked - SMALL)


def _list_words(text: str) -> set[str]:
    return set(re.findall(r"[\d.,]*\d|[a-z]+", text.lower()))
