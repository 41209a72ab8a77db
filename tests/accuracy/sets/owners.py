"""Measures the results that the owner of an application gets without a judge.

The sets contain answers outside insurance, pairs of a right and a wrong answer, and kinds of refusal. The
rates are those that matter to an owner: how many of all wrong answers pass, and how many of all right
answers pass.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.accuracy.figure import Figure, Measured, build_share
from tests.accuracy.rows import read_rows
from tests.accuracy.verdicts import Row, collect_verdicts, select_sets

NAME = "owners"
COMMAND = (str(Path(sys.executable).parent / "lookout"),)
PASSES = frozenset({"passed", "refused: yes"})
FAILS = frozenset({"failed", "refused: no"})
CLASSES = {"answered_not_asked": "answered"}
"""Maps a label to Lookout's class where the names differ. Both names mean that the reply does not decline."""


def measure(data: Path) -> Measured:
    """Measure the rates of `owners.jsonl`, `pairs.jsonl` and `refusals.jsonl` with the pipe `lookout grade`."""
    verdicts = collect_verdicts(
        [each for each in select_sets(["owners/"]) if each.name != "owners/personal"], data, COMMAND
    )
    folder = data / "owners"
    return Measured(
        (
            *_measure_answers(folder, verdicts),
            *_measure_pairs(folder, verdicts),
            *_measure_refusals(folder, verdicts),
        ),
        notes=(
            (
                "These figures are measured without a judge, with the domain pack `general`. A grader should neither pass "
                "nor fail an unclear answer: the answer should stay ungraded."
            ),
        ),
    )


def _measure_answers(folder: Path, verdicts: dict[Row, str]) -> list[Figure]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in read_rows(folder / "owners.jsonl"):
        counts[row["verdict"], _decide(verdicts["owners/answers", row["id"]])] += 1
    total = Counter[str]()
    for (label, _), count in counts.items():
        total[label] += count
    return [
        build_share(
            NAME, "wrong answers that pass", counts["wrong", "pass"], total["wrong"], target=0.04, at_most=True
        ),
        build_share(
            NAME, "right answers that fail", counts["right", "fail"], total["right"], target=0.04, at_most=True
        ),
        build_share(NAME, "right answers that pass", counts["right", "pass"], total["right"], target=0.35),
        build_share(NAME, "wrong answers that fail", counts["wrong", "fail"], total["wrong"], target=0.50),
        build_share(NAME, "unclear answers that stay ungraded", counts["open", "open"], total["open"], target=0.90),
    ]


def _decide(verdict: str) -> str:
    return "pass" if verdict in PASSES else "fail" if verdict in FAILS else "open"


def _measure_pairs(folder: Path, verdicts: dict[Row, str]) -> list[Figure]:
    passed = misjudged = apart = rows = 0
    for row in read_rows(folder / "pairs.jsonl"):
        right, wrong = (_decide(verdicts["owners/pairs", f"{row['id']}/{side}"]) for side in ("right", "wrong"))
        rows += 1
        passed += wrong == "pass"
        misjudged += wrong == "pass" or right == "fail"
        apart += (right, wrong) == ("pass", "fail")
    return [
        build_share(NAME, "of two answers, the wrong one passes", passed, rows, target=0.03, at_most=True),
        build_share(NAME, "of two answers, neither is misjudged", rows - misjudged, rows, target=0.95),
        build_share(NAME, "of two answers, the right one passes and the wrong one fails", apart, rows, target=0.40),
    ]


def _measure_refusals(folder: Path, verdicts: dict[Row, str]) -> list[Figure]:
    wrong = decided = rows = 0
    for row in read_rows(folder / "refusals.jsonl"):
        kind = verdicts["owners/refusals", row["id"]]
        rows += 1
        if kind == "open":
            continue
        decided += 1
        wrong += kind != CLASSES.get(row["verdict"], row["verdict"])
    return [
        build_share(NAME, "kinds of refusals that are misread", wrong, rows, target=0.05, at_most=True),
        build_share(NAME, "kinds of refusals that are read", decided, rows, target=0.70),
    ]
