"""Measures the reading of numbers, money, percentages, durations and dates in other libraries' test texts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from monitors.facts.quantities.scan import read_facts
from monitors.records.base import Language
from tests.accuracy.figure import Detection, Figure, Measured, TellingError
from tests.accuracy.lessons import add_lessons
from tests.accuracy.rows import read_rows
from tests.accuracy.values import count_inside_other_kinds, match_facts

NAME = "quantities/texts"

TARGETS = {"en": 0.90, "hi": 0.80}
BASELINE_F1 = {
    ("en", "number"): 0.16, ("hi", "number"): 0.17, ("en", "money"): 0.66, ("hi", "money"): 0.30,
    ("en", "percent"): 0.36, ("hi", "percent"): 0.18, ("en", "duration"): 0.31, ("hi", "duration"): 0.31,
    ("en", "date"): 0.39, ("hi", "date"): 0.29,
}  # fmt: skip
"""F1 of a method that reads only digits and always assumes the right kind, keyed by language and kind.

The values are from the set's own notes.
"""

NOTES = (
    (
        "In this set, ordinals count as numbers, and are marked as ordinals. A number inside another quantity counts "
        "neither as missed nor as made up. Durations in years or months may differ by 1.6 %. If the label has no "
        "currency, any currency is right."
    ),
    """\
These libraries were tried on the same rows in November 2026:

| library | kind and language | F1 over all sources | F1 over Recognizers-Text alone |
| --- | --- | ---: | ---: |
| price-parser 0.5.1 | money, en | .70 | .28 |
| price-parser 0.5.1 | money, hi | .33 | .33 |
| price-parser 0.5.1 | money, other | 1.00 | |
| number-parser 0.3.2 | number, en | .66 | .30 |
| number-parser 0.3.2 | number, hi | .50 | .28 |
| quantulum3 0.10.0 | number, en | .55 | .45 |
| quantulum3 0.10.0 | money, en | .59 | .33 |
| quantulum3 0.10.0 | percent, en | .80 | .80 |
| quantulum3 0.10.0 | duration, en | .60 | .66 |
| quantulum3 0.10.0 | all kinds, hi | .36 and less | |
| dateparser 1.5.0 | date, en | .57 | .65 |
| dateparser 1.5.0 | date, hi | .69 | .67 |

quantulum3 and dateparser read 2,000 to 60,000 characters a second, which is too slow for
[P3](performance.md#what-the-figures-mean). No library has a higher F1 than Lookout for any kind, so Lookout uses none of
them.""",
    (
        "A monitor must not make up figures. Therefore Lookout deliberately does not read these phrases as quantities: "
        '"a few" and "some", names of coins, names of feasts, and fractions with a spoken denominator of two words.'
    ),
)

Counts = dict[tuple[str, str, str], Counter[str]]


def measure(data: Path) -> Measured:
    """Measure F1 for each kind and language.

    The targets apply to the rows from Recognizers-Text, one of the sources. The figures over all sources have no
    target.
    """
    counts: Counts = {}
    errors: list[TellingError] = []
    for row in read_rows(data / "quantities" / "texts.jsonl"):
        _count_detections(row, counts, errors)
    figures: list[Figure] = []
    for (source, language, kind), tally in sorted(counts.items()):
        figures += _build_figures(source, language, kind, tally)
    return Measured(tuple(figures), add_lessons(errors, 7), NOTES)


def _count_detections(row: dict[str, Any], counts: Counts, errors: list[TellingError]) -> None:
    language = Language.OTHER if row["language"] == "other" else None
    everything = read_facts(row["text"], language=language)
    facts = [fact for fact in everything if fact.kind.value == row["kind"]]
    matched, made_up, missed = match_facts(facts, row["expected"])
    if row["kind"] == "number":
        elsewhere = count_inside_other_kinds([fact for fact in everything if fact.kind.value != "number"], missed)
        missed = missed[elsewhere:]
    sources = ["all sources"] + (["Recognizers-Text"] if "recognizers" in row["source"] else [])
    for source in sources:
        tally = counts.setdefault((source, row["language"], row["kind"]), Counter())
        tally.update(found=matched, missed=len(missed), made_up=len(made_up) if row["complete"] else 0)
    if made_up or missed:
        label = f"{row['kind']}: {len(missed)} missed, {len(made_up)} made up"
        errors.append(TellingError(NAME, row["id"], label, ""))


def _build_figures(source: str, language: str, kind: str, tally: Counter[str]) -> tuple[Figure, ...]:
    counted = Detection(tally["found"], tally["made_up"], tally["missed"])
    aimed = TARGETS.get(language) if source == "Recognizers-Text" else None
    baseline = BASELINE_F1.get((language, kind)) if source == "all sources" else None
    return counted.figures(NAME, f"{source}, {language}, {kind}", target_f1=aimed, baseline_f1=baseline)
