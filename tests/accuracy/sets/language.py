"""Measures the detection of a sentence's language: English, Hindi, Hinglish or another language."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from monitors.facts.language import identify_language
from monitors.records.base import Language
from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.rows import read_rows

NAME = "language/sentences"
TARGET = 0.92
BASELINE = 0.65
"""Mean recall of a method that looks only at the script, such as Latin or Devanagari.

The value is from the set's own notes.
"""
OURS = ("en", "hi", "hinglish")
SHOWN = 4


def measure(data: Path) -> Measured:
    """Measure the accuracy over English, Hindi and Hinglish, the recall of each class, and the mean recall."""
    seen: Counter[tuple[str, str]] = Counter()
    errors: list[TellingError] = []
    for row in read_rows(data / "language" / "sentences.jsonl"):
        language = identify_language(row["text"])
        identified = (
            language if language.is_english_hindi_or_hinglish else Language.OTHER
        ).value  # the labels know no other
        seen[row["language"], identified] += 1
        if identified != row["language"]:
            teaches = "the text is short and has names; it has no function words that show its language, or words of two languages"
            errors.append(TellingError(NAME, row["id"], f"label {row['language']}, detected {identified}", teaches))
    languages = sorted({language for language, _ in seen})
    totals = {language: sum(n for (is_, _), n in seen.items() if is_ == language) for language in languages}
    recalls = [
        build_share(NAME, f"recall of {language}", seen[language, language], totals[language])
        for language in languages
    ]
    right = sum(seen[language, language] for language in OURS)
    accuracy = build_share(
        NAME, "accuracy over en, hi, hinglish", right, sum(totals[o] for o in OURS), target=TARGET
    )
    return Measured((accuracy, *recalls, _compute_mean(recalls)), tuple(errors[:SHOWN]))


def _compute_mean(recalls: list[Figure]) -> Figure:
    """Compute the mean of ``recalls``.

    The returned interval is the mean of the recalls' intervals. It is wider than the true interval of the mean.
    """
    count = len(recalls)
    return Figure(
        NAME,
        "mean recall of the four",
        sum(figure.value for figure in recalls) / count,
        sum(figure.low for figure in recalls) / count,
        sum(figure.high for figure in recalls) / count,
        sum(figure.count for figure in recalls),
        baseline=BASELINE,
    )
