"""What an owner without a judge gets: answers of suites outside insurance, pairs of answers, kinds of refusals.

The rates are those that an owner reads: of all wrong answers, how many pass; of all right ones, how many pass.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.accuracy.figure import Figure, Measured, share
from tests.accuracy.rows import read_rows
from tests.accuracy.verdicts import Row, chosen, verdicts_of

NAME = "owners"
COMMAND = (str(Path(sys.executable).parent / "lookout"),)
PASSES = frozenset({"passed", "refused: yes"})
FAILS = frozenset({"failed", "refused: no"})
CLASSES = {"answered_not_asked": "answered"}
"""The class that a label stands for, where it has another name: neither declines."""


def measure(data: Path) -> Measured:
    """The rates of `owners.jsonl`, `pairs.jsonl` and `refusals.jsonl`, by the pipe `lookout grade`."""
    verdicts = verdicts_of([each for each in chosen(["owners/"]) if each.name != "owners/personal"], data, COMMAND)
    folder = data / "owners"
    return Measured(
        (*_answers(folder, verdicts), *_pairs(folder, verdicts), *_refusals(folder, verdicts)),
        notes=("No judge, domain pack `general`. An open case is neither passed nor failed: it stays ungraded.",),
    )


def _answers(folder: Path, verdicts: dict[Row, str]) -> list[Figure]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in read_rows(folder / "owners.jsonl"):
        counts[row["verdict"], _decision(verdicts["owners/answers", row["id"]])] += 1
    total = Counter[str]()
    for (label, _), count in counts.items():
        total[label] += count
    return [
        share(NAME, "wrong answers that pass", counts["wrong", "pass"], total["wrong"], target=0.04, at_most=True),
        share(NAME, "right answers that fail", counts["right", "fail"], total["right"], target=0.04, at_most=True),
        share(NAME, "right answers that pass", counts["right", "pass"], total["right"], target=0.35),
        share(NAME, "wrong answers that fail", counts["wrong", "fail"], total["wrong"], target=0.50),
        share(NAME, "unclear answers that stay ungraded", counts["open", "open"], total["open"], target=0.90),
    ]


def _decision(verdict: str) -> str:
    return "pass" if verdict in PASSES else "fail" if verdict in FAILS else "open"


def _pairs(folder: Path, verdicts: dict[Row, str]) -> list[Figure]:
    passed = misjudged = apart = rows = 0
    for row in read_rows(folder / "pairs.jsonl"):
        right, wrong = (_decision(verdicts["owners/pairs", f"{row['id']}/{side}"]) for side in ("right", "wrong"))
        rows += 1
        passed += wrong == "pass"
        misjudged += wrong == "pass" or right == "fail"
        apart += (right, wrong) == ("pass", "fail")
    return [
        share(NAME, "of two answers, the wrong one passes", passed, rows, target=0.03, at_most=True),
        share(NAME, "of two answers, neither is misjudged", rows - misjudged, rows, target=0.95),
        share(NAME, "of two answers, the right one passes and the wrong one fails", apart, rows, target=0.40),
    ]


def _refusals(folder: Path, verdicts: dict[Row, str]) -> list[Figure]:
    wrong = decided = rows = 0
    for row in read_rows(folder / "refusals.jsonl"):
        kind = verdicts["owners/refusals", row["id"]]
        rows += 1
        if kind == "open":
            continue
        decided += 1
        wrong += kind != CLASSES.get(row["verdict"], row["verdict"])
    return [
        share(NAME, "kinds of refusals that are misread", wrong, rows, target=0.05, at_most=True),
        share(NAME, "kinds of refusals that are read", decided, rows, target=0.70),
    ]
