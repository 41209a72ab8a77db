"""Numbers, money, percentages, durations and dates in texts that other libraries are tested with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from monitors.facts.scan import read_facts
from tests.accuracy.figure import Detection, Figure, Measured, TellingError
from tests.accuracy.rows import read_rows
from tests.accuracy.values import inside_other_kinds, match

NAME = "quantities/texts"

TARGETS = {"en": 0.90, "hi": 0.80}
BASELINE_F1 = {
    ("en", "number"): 0.16, ("hi", "number"): 0.17, ("en", "money"): 0.66, ("hi", "money"): 0.30,
    ("en", "percent"): 0.36, ("hi", "percent"): 0.18, ("en", "duration"): 0.31, ("hi", "duration"): 0.31,
    ("en", "date"): 0.39, ("hi", "date"): 0.29,
}  # fmt: skip
"""F1 of bare digits with the right kind given for nothing, as the set's own notes have it."""

Counts = dict[tuple[str, str, str], Counter[str]]


def measure(data: Path) -> Measured:
    """F1 per kind and language; the rows of Recognizers-Text have the targets, all sources together are beside."""
    counts: Counts = {}
    errors: list[TellingError] = []
    for row in read_rows(data / "quantities" / "texts.jsonl"):
        _count(row, counts, errors)
    figures: list[Figure] = []
    for (source, language, kind), tally in sorted(counts.items()):
        figures += _figures(source, language, kind, tally)
    return Measured(tuple(figures), tuple(errors[:6]))


def _count(row: dict[str, Any], counts: Counts, errors: list[TellingError]) -> None:
    everything = read_facts(row["text"])
    facts = [fact for fact in everything if fact.kind.value == row["kind"]]
    found, made_up, missed = match(facts, row["expected"])
    if row["kind"] == "number":
        elsewhere = inside_other_kinds([fact for fact in everything if fact.kind.value != "number"], missed)
        missed = missed[elsewhere:]
    sources = ["all sources"] + (["Recognizers-Text"] if "recognizers" in row["source"] else [])
    for source in sources:
        tally = counts.setdefault((source, row["language"], row["kind"]), Counter())
        tally.update(found=found, missed=len(missed), made_up=len(made_up) if row["complete"] else 0)
    if made_up or missed:
        what = f"{row['kind']}: {len(missed)} missed, {len(made_up)} made up"
        errors.append(TellingError(NAME, row["id"], what, "see the notes on conventions"))


def _figures(source: str, language: str, kind: str, tally: Counter[str]) -> tuple[Figure, ...]:
    counted = Detection(tally["found"], tally["made_up"], tally["missed"])
    aimed = TARGETS.get(language) if source == "Recognizers-Text" else None
    baseline = BASELINE_F1.get((language, kind)) if source == "all sources" else None
    return counted.figures(NAME, f"{source}, {language}, {kind}", target_f1=aimed, baseline_f1=baseline)
