"""Do two texts say the same quantity? Pairs of spoken and written forms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.accuracy.figure import Figure, Measured, TellingError, share
from tests.accuracy.lessons import taught
from tests.accuracy.rows import read_rows
from tests.accuracy.values import say_the_same

NAME = "quantities/pairs"

TARGETS = {"duckling": 0.95}
BASELINE = {"duckling": 0.75, "nemo": 0.49, "xquad": 1.00}
"""Same digits in both, as the set's own notes have it."""


def measure(data: Path) -> Measured:
    """Accuracy per source; measures (20 km) are no kind of fact and are left out."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    errors: list[TellingError] = []
    for row in read_rows(data / "quantities" / "pairs.jsonl"):
        if row["kind"] == "measure":
            continue
        source = row["source"].split()[0]
        said = say_the_same(row["a"], row["b"])
        for group in ((source, "all"), (source, f"{row['language']} {row['kind']}")):
            tally = counts.setdefault(group, Counter())
            tally["right" if said == row["equal"] else "wrong"] += 1
            tally[f"{row['equal']}-{said}"] += 1
        if said != row["equal"]:
            what = "taken for the same" if said else "not found to be the same"
            errors.append(TellingError(NAME, row["id"], f"{source}, {row['language']} {row['kind']}: {what}", ""))
    figures = [figure for group, tally in sorted(counts.items()) for figure in _figures(group, tally)]
    return Measured(
        tuple(figures),
        taught(errors, 4),
        ("Pairs of kind `measure` are left out. Improper fractions in digits (25/7) are two numbers, on purpose.",),
    )


def _figures(group: tuple[str, str], tally: Counter[str]) -> list[Figure]:
    source, which = group
    total = tally["right"] + tally["wrong"]
    if which != "all":
        return [share(NAME, f"{source}, {which}: accuracy", tally["right"], total)]
    equal = tally["True-True"] + tally["True-False"]
    unequal = tally["False-False"] + tally["False-True"]
    return [
        share(
            NAME,
            f"{source}: accuracy",
            tally["right"],
            total,
            target=TARGETS.get(source),
            baseline=BASELINE.get(source),
        ),
        share(NAME, f"{source}: equal pairs found", tally["True-True"], equal),
        share(NAME, f"{source}: unequal pairs kept apart", tally["False-False"], unequal),
    ]
