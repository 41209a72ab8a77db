"""Questions on financial tables: sign, scale, rounding. The label is the task's own exact match."""

from __future__ import annotations

from pathlib import Path

from tests.accuracy.figure import Measured, TellingError, share
from tests.accuracy.grading import grade, tallied, verdict_name
from tests.accuracy.rows import read_rows

NAME = "answers/tatqa"

LESSONS = {
    "false_pass": "exact match asks for the same words or decimals; a value that is equal after rounding zeros passes here",
    "false_fail": "a figure without its scale or unit is not the figure; exact match forgives what a reader would not",
}


def measure(data: Path) -> Measured:
    """Agreement with exact match by type of answer; spans of words are beside the point of this set."""
    names: dict[str, list[str]] = {}
    errors: list[TellingError] = []
    for row in read_rows(data / "answers" / "tatqa.jsonl"):
        verdict = grade(row["question"], [row["gold"]], row["answer"])
        name = verdict_name(verdict, row["correct"])
        names.setdefault(row["answer_type"], []).append(name)
        if name in LESSONS and row["answer_type"] == "arithmetic":
            what = f"{name.replace('_', ' ')}, arithmetic: {verdict.reason[:70]}"
            errors.append(TellingError(NAME, row["id"], what, LESSONS[name]))
    figures = [figure for kind, listed in sorted(names.items()) for figure in tallied(listed).figures(NAME, kind)]
    decided = [name for listed in names.values() for name in listed if name != "abstained"]
    right = sum(name.startswith("right") for name in decided)
    figures.insert(0, share(NAME, "all: agreement where decided", right, len(decided)))
    return Measured(tuple(figures), tuple(errors[:3]))
