"""Measures the factual grader on answers of five systems to questions from two public sets.

People labelled the answers.
"""

from __future__ import annotations

from pathlib import Path

from tests.accuracy.figure import Measured, TellingError
from tests.accuracy.grading import count_verdicts, grade, verdict_name
from tests.accuracy.lessons import add_lessons
from tests.accuracy.rows import read_rows

NAME = "answers/evouna"

WORST = ("false_pass", "false_fail")


def measure(data: Path) -> Measured:
    """Measure how often the grader agrees with people, and the rates of false passes and false fails.

    Golds that are quantities and all other golds are measured separately.
    """
    names: dict[bool, list[str]] = {True: [], False: []}
    errors: list[TellingError] = []
    for row in read_rows(data / "answers" / "evouna.jsonl"):
        verdict = grade(row["question"], row["gold"], row["answer"])
        name = verdict_name(verdict, row["correct"])
        names[row["numeric_gold"]].append(name)
        if name in WORST:
            errors.append(TellingError(NAME, row["id"], f"{name.replace('_', ' ')}: {verdict.reason[:80]}", ""))
    numeric = count_verdicts(names[True]).figures(
        NAME,
        "gold is a quantity",
        target_agreement=0.90,
        target_false_pass=0.06,
        baseline_agreement=0.875,
        baseline_false_pass=0.036,
        baseline_false_fail=0.161,
    )
    others = count_verdicts(names[False]).figures(NAME, "other gold", target_agreement=0.92)
    return Measured((*numeric, *others), add_lessons(errors, 7))
