"""For many trades and each kind of mistake, wrong answers never pass and correct answers never fail.

`trades.jsonl` contains the rows; add a row there for each word that you add to the data files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monitors.domains.pack import load_domain
from monitors.facts.language import find_case_language
from monitors.graders.base import GraderSettings
from monitors.graders.factual import FactualGrader
from monitors.records.grades import Judged
from tests.builders import exchange, gold_case

GRADER = FactualGrader(GraderSettings(), load_domain(("general",)))
LINES = (Path(__file__).parent / "trades.jsonl").read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
MIN_ROWS, MIN_RIGHT_PASSED, MIN_WRONG_FAILED = 240, 0.80, 0.50


def passed(row: dict[str, Any]) -> bool | None:
    case = gold_case(
        turns=(row["question"],), gold=row["gold"], language=find_case_language(row["question"], row["gold"])
    )
    grade = GRADER.grade(case, exchange(case, row["answer"]))
    return grade.passed if isinstance(grade, Judged) else None


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['kind']}-{at}" for at, row in enumerate(ROWS)])
def test_no_row_is_misjudged(row: dict[str, Any]) -> None:
    """No row is misjudged. A row with ``decided`` is not left open either."""
    allowed = {"right": {True, None}, "wrong": {False, None}, "open": {None}}[row["verdict"]]
    assert passed(row) in (allowed - {None} if row.get("decided") else allowed)


def test_most_rows_are_decided() -> None:
    """Most rows are decided. Without this test, a grader that leaves every row open would seem to make no mistake.

    A row with ``"decided": false`` only shows that a correct answer does not fail.
    """
    right = [passed(row) for row in ROWS if row["verdict"] == "right" and row.get("decided", True)]
    wrong = [passed(row) for row in ROWS if row["verdict"] == "wrong"]
    assert len(ROWS) >= MIN_ROWS
    assert right.count(True) >= MIN_RIGHT_PASSED * len(right)
    assert wrong.count(False) >= MIN_WRONG_FAILED * len(wrong)


def test_a_failure_names_both_figures() -> None:
    """The reason of a failed grade contains the figure of the gold and the figure of the reply."""
    case = gold_case(turns=("What does a haircut for men cost?",), gold="€24")
    grade = GRADER.grade(case, exchange(case, "Women pay €24 for a haircut, men €19."))
    assert isinstance(grade, Judged)
    assert "€24" in grade.reason
    assert "€19" in grade.reason
