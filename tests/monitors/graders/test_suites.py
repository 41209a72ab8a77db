"""Tests of the error rate of the factual grader, on suites for many different trades.

The suites were written without regard to the grader's rules. `suites.jsonl` has about thirty trades, eighteen kinds
of difficulty and six languages. The grader still misjudges some rows, but its error rates must not get worse. Add a
row that shows a new kind of mistake to `trades.jsonl`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from monitors.domains.pack import load_domain
from monitors.facts.language import find_case_language
from monitors.graders.base import GraderSettings
from monitors.graders.factual import FactualGrader
from monitors.records.grades import Judged
from tests.builders import exchange, gold_case

GRADER = FactualGrader(GraderSettings(), load_domain(("general",)))
LINES = (Path(__file__).parent / "suites.jsonl").read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
MAX_FALSE_PASS, MAX_FALSE_FAIL = 0.04, 0.03
MIN_RIGHT_PASSED, MIN_WRONG_FAILED, MIN_OPEN_LEFT_OPEN = 0.45, 0.40, 0.85


def grade(row: dict[str, Any]) -> bool | None:
    language = find_case_language(row["question"], row["gold"])
    case = gold_case(turns=(row["question"],), gold=row["gold"], language=language)
    verdict = GRADER.grade(case, exchange(case, row["answer"]))
    return verdict.passed if isinstance(verdict, Judged) else None


def test_few_answers_are_misjudged_and_enough_are_decided() -> None:
    graded = [(row["verdict"], grade(row)) for row in ROWS]
    counts = Counter(graded)
    right, wrong, left_open = (sum(verdict == name for verdict, _ in graded) for name in ("right", "wrong", "open"))
    assert min(right, wrong, left_open) > 50, "each verdict has enough rows for a rate"
    assert counts["wrong", True] <= MAX_FALSE_PASS * wrong
    assert counts["right", False] <= MAX_FALSE_FAIL * right
    assert counts["right", True] >= MIN_RIGHT_PASSED * right
    assert counts["wrong", False] >= MIN_WRONG_FAILED * wrong
    assert counts["open", None] >= MIN_OPEN_LEFT_OPEN * left_open
