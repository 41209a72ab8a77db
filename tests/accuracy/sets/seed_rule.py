"""Measures the code of `lookout grade` on real replies of an insurance bot.

This bot is the first one that Lookout was written for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deployments.cli.pipes.answers import grade_line
from tests.accuracy.figure import Measured, TellingError, Verdicts, build_share
from tests.accuracy.rows import read_rows

NAME = "the rule/seed replies"
REFUSALS = ("refusal", "refusal_phrased_as_not_in_document")
BASELINE_AGREEMENT, BASELINE_FALSE_PASS, BASELINE_FALSE_FAIL = 21 / 26, 2 / 14, 3 / 12
"""Figures of the bot's own grader on these rows."""
FIELDS = ("id", "question", "gold", "answer", "expected_refusal", "language")


def measure(data: Path) -> Measured:
    """Measure how often ``correct`` (on decided rows) and ``refused`` agree with the person's label."""
    counts = {"right_pass": 0, "right_fail": 0, "false_pass": 0, "false_fail": 0, "abstained": 0}
    refused_right = rows = 0
    errors: list[TellingError] = []
    for row in read_rows(data / "answers" / "seed_replies.jsonl"):
        verdict = grade_line({name: row[name] for name in FIELDS})
        outcome = _outcome(verdict["correct"], truth=row["correct"])
        counts[outcome] += 1
        rows += 1
        refused_right += verdict["refused"] == (row["label"] in REFUSALS)
        if outcome.startswith("false"):
            errors.append(TellingError(NAME, row["id"], f"{outcome}: labelled {row['label']}", _teaches(row)))
    figures = Verdicts(**counts).figures(
        NAME, "correct",
        baseline_agreement=BASELINE_AGREEMENT,
        baseline_false_pass=BASELINE_FALSE_PASS,
        baseline_false_fail=BASELINE_FALSE_FAIL,
    )  # fmt: skip
    return Measured(
        (*figures, build_share(NAME, "refused: agreement with the label", refused_right, rows)), tuple(errors)
    )


def _outcome(correct: bool | None, *, truth: bool) -> str:
    match correct:
        case None:
            return "abstained"
        case True:
            return "right_pass" if truth else "false_pass"
        case False:
            return "false_fail" if truth else "right_fail"


def _teaches(row: dict[str, Any]) -> str:
    if row["expected_refusal"]:
        return "the annotator decided where a refusal becomes an answer; a pattern cannot decide this"
    return "only a judge can grade a gold in words, or a number with a condition"
