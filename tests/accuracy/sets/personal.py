"""Measures the masking of personal data in support answers.

The rows contain values to mask, values that must not be masked, and texts without personal data. They come from the
data folder and from the project. The pipe `lookout redact` masks values in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitors.alerts.redact import redact_with_findings
from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.rows import read_rows

NAME = "personal"
OWN_ROWS = Path("tests/monitors/facts/disclosures/personal.jsonl")
MASKED_TARGET, PERSONAL_TARGET, STAYING_TARGET, UNTOUCHED_TARGET = 0.85, 0.95, 0.97, 0.95
SHOWN = 6
LESSON = "a value counts where a word beside it says whose it is"


def measure(data: Path) -> Measured:
    """Measure the shares of masked values, right detections, unchanged values and unchanged texts.

    A value counts as masked if all of its letters and digits are masked. A detection is right if it overlaps
    personal data. Values that are not personal data, and texts without personal data, must stay unchanged.
    """
    figures, errors = _measure_rows("", list(read_rows(data / "owners" / "personal.jsonl")))
    own_figures, own_errors = _measure_rows("own rows: ", list(read_rows(OWN_ROWS)))
    return Measured(
        (*figures, *own_figures),
        (*errors, *own_errors)[:SHOWN],
        notes=("A value counts as masked only if all its letters and digits are masked.",),
    )


def _measure_rows(prefix: str, rows: Sequence[dict[str, Any]]) -> tuple[list[Figure], list[TellingError]]:
    counts: Counter[str] = Counter()
    errors: list[TellingError] = []
    for row in rows:
        text = row["text"]
        finds = redact_with_findings(text).found
        masked = {at for find in finds for at in range(find.start, find.end)}
        personal: set[int] = set()
        for value in row["pii"]:
            letters = find_letters(text, value["value"])
            personal |= letters
            counts["values"] += 1
            counts["masked"] += letters <= masked
            if not letters <= masked:
                errors.append(TellingError(NAME, row["id"], f"{value['kind']} missed", LESSON))
        for find in finds:
            counts["finds"] += 1
            counts["right finds"] += not personal.isdisjoint(range(find.start, find.end))
        counts["keepable"] += len(row["keep"])
        counts["staying"] += sum(masked.isdisjoint(find_letters(text, staying)) for staying in row["keep"])
        counts["harmless"] += not row["pii"]
        counts["untouched"] += not row["pii"] and not finds
    return [
        build_share(NAME, f"{prefix}masked whole", counts["masked"], counts["values"], target=MASKED_TARGET),
        build_share(
            NAME, f"{prefix}finds that are personal", counts["right finds"], counts["finds"], target=PERSONAL_TARGET
        ),
        build_share(
            NAME, f"{prefix}what must stay stays", counts["staying"], counts["keepable"], target=STAYING_TARGET
        ),
        build_share(
            NAME,
            f"{prefix}texts without personal data left alone",
            counts["untouched"],
            counts["harmless"],
            target=UNTOUCHED_TARGET,
        ),
    ], errors


def find_letters(text: str, value: str) -> set[int]:
    """Return the positions of all letters and digits in the occurrences of ``value`` in ``text``."""
    places: set[int] = set()
    start = text.find(value)
    while start >= 0:
        places |= {at for at in range(start, start + len(value)) if text[at].isalnum()}
        start = text.find(value, start + 1)
    return places
