"""Measures whether Lookout recognises that a spoken form and a written form state the same quantity."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.lessons import add_lessons
from tests.accuracy.rows import read_rows
from tests.accuracy.values import say_the_same

NAME = "quantities/pairs"

TARGETS = {"duckling": 0.95}
BASELINE = {"duckling": 0.75, "nemo": 0.49, "xquad": 1.00}
"""Accuracy of a method that compares only the digits of both texts, keyed by source.

The values are from the set's own notes.
"""


def measure(data: Path) -> Measured:
    """Measure the accuracy for each source.

    Measures such as 20 km are skipped, because no kind of fact contains them.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    errors: list[TellingError] = []
    for row in read_rows(data / "quantities" / "pairs.jsonl"):
        if row["kind"] == "measure":
            continue
        source = row["source"].split()[0]
        verdict = say_the_same(row["a"], row["b"])
        for group in ((source, "all"), (source, f"{row['language']} {row['kind']}")):
            tally = counts.setdefault(group, Counter())
            tally["right" if verdict == row["equal"] else "wrong"] += 1
            tally[f"{row['equal']}-{verdict}"] += 1
        if verdict != row["equal"]:
            label = "different texts, read as equal" if verdict else "equal texts, read as different"
            errors.append(TellingError(NAME, row["id"], f"{source}, {row['language']} {row['kind']}: {label}", ""))
    figures = [figure for group, tally in sorted(counts.items()) for figure in _build_figures(group, tally)]
    return Measured(
        tuple(figures),
        add_lessons(errors, 4),
        (
            (
                "Each row is a pair of texts, and its label says whether the two texts state the same quantity. Pairs of "
                "kind `measure`, such as 20 km, are not counted. Lookout deliberately reads an improper fraction in digits "
                "(25/7) as two numbers."
            ),
        ),
    )


def _build_figures(group: tuple[str, str], tally: Counter[str]) -> list[Figure]:
    source, rows = group
    total = tally["right"] + tally["wrong"]
    if rows != "all":
        return [build_share(NAME, f"{source}, {rows}: accuracy", tally["right"], total)]
    equal = tally["True-True"] + tally["True-False"]
    unequal = tally["False-False"] + tally["False-True"]
    return [
        build_share(
            NAME,
            f"{source}: accuracy",
            tally["right"],
            total,
            target=TARGETS.get(source),
            baseline=BASELINE.get(source),
        ),
        build_share(NAME, f"{source}: equal pairs found", tally["True-True"], equal),
        build_share(NAME, f"{source}: unequal pairs distinguished", tally["False-False"], unequal),
    ]
